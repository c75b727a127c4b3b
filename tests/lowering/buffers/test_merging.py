"""Neighbouring parallel loops as one: where that is sound, and what becomes memory of a chunk."""

from __future__ import annotations

import numpy as np
import pytest
from native_harness import F32, lowered_loops

from mind_mlir.lowering.buffers.merging import merge_parallel_loops
from mind_mlir.mlir.bindings import ir, new_context

ROWS = 60


def function(body: str, arguments: str = "%a: memref<60x8xf32>, %o: memref<60x8xf32>") -> str:
    return f"""
    func.func @main({arguments}, %none: memref<0xi8>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %c6 = arith.constant 6 : index
      %c8 = arith.constant 8 : index
      %c12 = arith.constant 12 : index
      %c15 = arith.constant 15 : index
      %c20 = arith.constant 20 : index
      %c30 = arith.constant 30 : index
      %c57 = arith.constant 57 : index
      %c59 = arith.constant 59 : index
      %c60 = arith.constant 60 : index
      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2.0 : f32
      {body}
      return
    }}"""


def rows(chunks: int, body: str) -> str:
    """A parallel loop over so many chunks of the 60 rows, with ``body`` for row %r and column %j."""
    size = -(-ROWS // chunks)
    return f"""
      scf.for %c = %c0 to %c{chunks} step %c1 {{
        %first = arith.muli %c, %c{size} : index
        %next = arith.addi %first, %c{size} : index
        %end = arith.minui %next, %c60 : index
        scf.for %r = %first to %end step %c1 {{
          scf.for %j = %c0 to %c8 step %c1 {{
            {body}
          }}
        }}
      }} {{mind.parallel}}"""


def move(source: str, target: str, row: str = "%r", column: str = "%j") -> str:
    """Store twice an element of the source in the same place of the target."""
    return f"""
            %x = memref.load {source}[{row}, {column}] : memref<60x8xf32>
            %y = arith.mulf %x, %two : f32
            memref.store %y, {target}[%r, %j] : memref<60x8xf32>"""


def merged(source: str) -> tuple[str, str]:
    """Return ``source`` before and after its loops have been merged."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        before = str(module)
        merge_parallel_loops(module)
        assert module.operation.verify()
        return before, str(module)


def loops(text: str) -> int:
    return text.count("mind.parallel")


def run(text: str, threads: int | None = None) -> np.ndarray:
    """Run a module of one input and one output of 60 rows of 8."""
    _, native = lowered_loops(text, threads)
    a, out = np.arange(480, dtype=F32).reshape(60, 8), np.full((60, 8), np.nan, F32)
    native.call([a.ctypes.data, out.ctypes.data])
    return out


@pytest.mark.parametrize(
    ("chunks", "together"),
    [
        ((15, 15), 15),
        ((30, 15), 15),
        ((15, 30), 15),
        ((8, 15), 8),  # the last chunk is shorter
        ((15, 20), None),  # 4 rows and 3: five chunks would be too few
        ((12, 30), None),
    ],
    ids=str,
)
def test_rows_that_a_chunk_wrote_itself(chunks: tuple[int, int], together: int | None) -> None:
    first, second = rows(chunks[0], move("%a", "%t")), rows(chunks[1], move("%t", "%o"))
    before, after = merged(function("%t = memref.alloc() : memref<60x8xf32>" + first + second))
    if together is None:
        assert after == before
        return
    assert loops(after) == 1
    assert f"arith.constant {together} : index" in after
    assert "memref.alloca() {alignment = 64 : i64, mind.private} : memref<" in after
    assert "memref.alloc()" not in after
    for threads in (None, 1):
        assert np.array_equal(run(after, threads), np.arange(480, dtype=F32).reshape(60, 8) * 4)


@pytest.mark.parametrize(("form", "private"), [("480x1", "32x1"), ("120x4", "8x4"), ("3x160", None)], ids=str)
def test_a_temporary_that_is_seen_in_another_shape(form: str, private: str | None) -> None:
    """Each chunk has 32 elements, which are rows of some shapes and not of others."""
    height, width = form.split("x")
    view = f"""
      %width = arith.constant {width} : index
      %flat = memref.collapse_shape %t [[0, 1]] : memref<60x8xf32> into memref<480xf32>
      %s = memref.expand_shape %flat [[0, 1]] output_shape [{height}, {width}]
        : memref<480xf32> into memref<{form}xf32>"""
    read = f"""
            %before = arith.muli %r, %c8 : index
            %at = arith.addi %before, %j : index
            %m = arith.divui %at, %width : index
            %n = arith.remui %at, %width : index
            %x = memref.load %s[%m, %n] : memref<{form}xf32>
            memref.store %x, %o[%r, %j] : memref<60x8xf32>"""
    source = "%t = memref.alloc() : memref<60x8xf32>" + rows(15, move("%a", "%t")) + view + rows(15, read)
    _, after = merged(function(source))
    assert ("memref.alloc()" in after) == (private is None)
    if private is not None:
        assert loops(after) == 1
        assert f"to memref<{private}xf32>" in after
    a = np.arange(480, dtype=F32).reshape(60, 8)
    assert np.array_equal(run(after.replace("memref.alloc()", "memref.alloca()")), a * 2)


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(
            rows(
                15,
                "%n = arith.addi %r, %c1 : index\n %k = arith.minui %n, %c59 : index"
                + move("%t", "%o", row="%k"),
            ),
            id="the row below",
        ),
        pytest.param(
            rows(15, "%k = arith.subi %c59, %r : index" + move("%t", "%o", row="%k")), id="from the end"
        ),
        pytest.param(rows(15, move("%t", "%o", row="%j", column="%c3")), id="the same rows in each"),
        pytest.param(
            """
      scf.for %c = %c0 to %c15 step %c1 {
        %first = arith.muli %c, %c3 : index
        %r = arith.addi %first, %c3 : index
        scf.for %j = %c0 to %c8 step %c1 {"""
            + move("%t", "%o")
            + "}} {mind.parallel}",
            id="another distance",
        ),
    ],
)
def test_rows_of_other_chunks(second: str) -> None:
    source = function("%t = memref.alloc() : memref<60x8xf32>" + rows(15, move("%a", "%t")) + second)
    before, after = merged(source)
    assert after == before


def test_a_loop_that_overwrites_what_another_chunk_still_reads() -> None:
    shifted = "%n = arith.addi %r, %c1 : index\n %k = arith.minui %n, %c59 : index" + move(
        "%o", "%t", row="%k"
    )
    source = function(
        "%t = memref.alloc() : memref<60x8xf32>" + rows(15, shifted) + rows(15, move("%a", "%o"))
    )
    before, after = merged(source)
    assert after == before


@pytest.mark.parametrize(("divisor", "sound"), [(3, True), (2, False)])
def test_chunks_of_two_loops_at_once(divisor: int, sound: bool) -> None:
    """Chunk 3 i + k takes rows 5 k to 5 k + 4 of block i, which are rows 15 i + 5 k and on of the whole."""
    source = function(
        f"""
      %t = memref.alloc() : memref<4x15x8xf32>
      scf.for %c = %c0 to %c12 step %c1 {{
        %i = arith.divui %c, %c{divisor} : index
        %k = arith.remui %c, %c{divisor} : index
        %first = arith.muli %k, %c5 : index
        %end = arith.addi %first, %c5 : index
        scf.for %r = %first to %end step %c1 {{
          scf.for %j = %c0 to %c8 step %c1 {{
            %block = arith.muli %i, %c15 : index
            %row = arith.addi %block, %r : index
            %x = memref.load %a[%row, %j] : memref<60x8xf32>
            memref.store %x, %t[%i, %r, %j] : memref<4x15x8xf32>
          }}
        }}
      }} {{mind.parallel}}
      %s = memref.collapse_shape %t [[0, 1], [2]] : memref<4x15x8xf32> into memref<60x8xf32>"""
        + rows(12, move("%s", "%o"))
    )
    before, after = merged(source)
    assert (after != before) == sound
    assert loops(after) == (1 if sound else 2)
    if sound:
        a = np.arange(480, dtype=F32).reshape(60, 8)
        assert np.array_equal(run(after.replace("memref.alloc()", "memref.alloca()")), a * 2)


SMALL = """
      scf.for %i = %c0 to %c60 step %c6 {
        %v = vector.load %s[%i] : memref<60xf32>, vector<6xf32>
        %w = arith.addf %v, %v : vector<6xf32>
        vector.store %w, %u[%i] : memref<60xf32>, vector<6xf32>
      }"""
FIRST = rows(
    20,
    """
            %x = memref.load %a[%r, %j] : memref<60x8xf32>
            memref.store %x, %t[%r, %j] : memref<60x8xf32>
            memref.store %x, %s[%r] : memref<60xf32>""",
)
LAST = rows(
    20,
    """
            %x = memref.load %t[%r, %j] : memref<60x8xf32>
            %f = memref.load %e[%r, %c0] : memref<60x1xf32>
            %y = arith.addf %x, %f : f32
            memref.store %y, %o[%r, %j] : memref<60x8xf32>""",
)
TEMPORARIES = """
      %t = memref.alloc() : memref<60x8xf32>
      %s = memref.alloc() : memref<60xf32>
      %u = memref.alloc() : memref<60xf32>"""
EXPANDED = "%e = memref.expand_shape %u [[0, 1]] output_shape [60, 1] : memref<60xf32> into memref<60x1xf32>"


def test_a_small_loop_between_two_is_split_as_they_are() -> None:
    """Of 3 rows, 6 rows and 3 rows: chunks of 6."""
    before, after = merged(function(TEMPORARIES + FIRST + SMALL + EXPANDED + LAST))
    assert (loops(before), loops(after)) == (2, 1)
    assert "memref.alloca() {alignment = 64 : i64, mind.private} : memref<6x8xf32>" in after
    a = np.arange(480, dtype=F32).reshape(60, 8)
    assert np.array_equal(run(after.replace("memref.alloc()", "memref.alloca()")), a + 2 * a[:, 7:])


def test_small_loops_at_the_end_are_shared_as_well() -> None:
    """They were too little work for threads by themselves."""
    before, after = merged(
        function(TEMPORARIES + FIRST + SMALL + EXPANDED + LAST.replace("{mind.parallel}", ""))
    )
    assert (loops(before), loops(after)) == (1, 1)
    assert after.rindex("memref.store") < after.index("mind.parallel")
    a = np.arange(480, dtype=F32).reshape(60, 8)
    assert np.array_equal(run(after.replace("memref.alloc()", "memref.alloca()")), a + 2 * a[:, 7:])


def test_small_loops_at_the_beginning_are_shared_as_well() -> None:
    before, after = merged(
        function(TEMPORARIES + FIRST.replace("{mind.parallel}", "") + SMALL + EXPANDED + LAST)
    )
    assert (loops(before), loops(after)) == (1, 1)
    assert after.rindex("memref.store") < after.index("mind.parallel")
    a = np.arange(480, dtype=F32).reshape(60, 8)
    assert np.array_equal(run(after.replace("memref.alloc()", "memref.alloca()")), a + 2 * a[:, 7:])


def test_small_loops_alone_stay_what_they_are() -> None:
    source = function(TEMPORARIES + FIRST + SMALL + EXPANDED + LAST).replace("{mind.parallel}", "")
    before, after = merged(source)
    assert after == before


def test_two_loops_that_have_nothing_to_do_with_one_another_meet_in_a_third() -> None:
    """Of chunks of 4 rows, 2 rows and 6 rows: chunks of 12 for all, in the place of the last."""
    both = """
            %x = memref.load %t[%r, %j] : memref<60x8xf32>
            %y = memref.load %u[%r, %j] : memref<60x8xf32>
            %z = arith.subf %x, %y : f32
            memref.store %z, %o[%r, %j] : memref<60x8xf32>"""
    alloc = "%{} = memref.alloc() : memref<60x8xf32>"
    source = function(
        alloc.format("t")
        + rows(15, move("%a", "%t"))
        + alloc.format("u")
        + rows(30, move("%a", "%u"))
        + rows(60, both)
    )
    _, after = merged(source)
    assert loops(after) == 1
    assert "memref.alloc()" not in after
    assert np.array_equal(run(after), np.zeros((60, 8), F32))


def test_loops_that_only_one_of_two_runs_can_take_in() -> None:
    """The last loop reads all rows of the first temporary, and its own of the second."""
    both = """
            %n = arith.subi %c59, %r : index
            %x = memref.load %t[%n, %j] : memref<60x8xf32>
            %y = memref.load %u[%r, %j] : memref<60x8xf32>
            %z = arith.subf %x, %y : f32
            memref.store %z, %o[%r, %j] : memref<60x8xf32>"""
    alloc = "%{} = memref.alloc() : memref<60x8xf32>\n"
    source = function(
        alloc.format("t")
        + alloc.format("u")
        + rows(15, move("%a", "%t"))
        + rows(15, move("%a", "%u"))
        + rows(15, both)
    )
    _, after = merged(source)
    assert loops(after) == 2
    assert after.count("memref.alloc()") == 1
    a = np.arange(480, dtype=F32).reshape(60, 8)
    got = run(after.replace("memref.alloc()", "memref.alloca()"))
    assert np.array_equal(got, 2 * a[::-1] - 2 * a)


def test_a_small_loop_whose_iterations_depend_on_one_another() -> None:
    chain = """
      scf.for %i = %c0 to %c60 step %c1 {
        %p = arith.addi %i, %c1 : index
        %k = arith.minui %p, %c59 : index
        %v = memref.load %u[%i] : memref<60xf32>
        %w = memref.load %s[%i] : memref<60xf32>
        %x = arith.addf %v, %w : f32
        memref.store %x, %u[%k] : memref<60xf32>
      }"""
    before, after = merged(function(TEMPORARIES + FIRST + chain + EXPANDED + LAST))
    assert after == before


@pytest.mark.parametrize(
    "between",
    [
        "memref.store %two, %o[%c0, %c0] : memref<60x8xf32>",
        "%z = memref.load %t[%c0, %c0] : memref<60x8xf32>",
        "memref.copy %a, %t : memref<60x8xf32> to memref<60x8xf32>",
    ],
)
def test_other_operations_keep_loops_apart(between: str) -> None:
    first, second = rows(15, move("%a", "%t")), rows(15, move("%t", "%o"))
    source = function("%t = memref.alloc() : memref<60x8xf32>" + first + between + second)
    before, after = merged(source)
    assert after == before


def test_a_temporary_that_is_used_further_on_stays_what_it_is() -> None:
    source = function(
        "%t = memref.alloc() : memref<60x8xf32>"
        + rows(15, move("%a", "%t"))
        + rows(15, move("%t", "%o"))
        + "memref.copy %t, %o : memref<60x8xf32> to memref<60x8xf32>"
    )
    _, after = merged(source)
    assert loops(after) == 1
    assert "memref.alloca" not in after


def test_buffers_that_may_be_the_same_keep_loops_apart() -> None:
    source = function(
        """
      %t = memref.alloc() : memref<60x8xf32>
      %f = memref.load %flag[] : memref<i1>
      %p = arith.select %f, %t, %o : memref<60x8xf32>"""
        + rows(15, move("%a", "%t"))
        + rows(15, move("%p", "%o")),
        "%a: memref<60x8xf32>, %flag: memref<i1>, %o: memref<60x8xf32>",
    )
    before, after = merged(source)
    assert after == before
