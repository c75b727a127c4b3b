"""Where temporaries lie: sizes and offsets of hand-written buffers."""

from __future__ import annotations

import re

import pytest

from mind_mlir.lowering.buffers.arena import place_buffers
from mind_mlir.mlir.bindings import ir, new_context

CONSTANTS = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %f = arith.constant 1.0 : f32"""


def placed(body: str, *, always: bool = True) -> tuple[int | None, list[int]]:
    """Return the size of the arena, and the offset of each buffer in the order of their views."""
    source = f"func.func @main(%flag: i1) {{ {CONSTANTS}\n{body}\nreturn }}"
    with new_context():
        module = ir.Module.parse(source)
        size = place_buffers(module.body.operations[0], always=always)
        assert module.operation.verify()
        text = str(module)
    numbers = {name: int(value) for name, value in re.findall(r"(%\S+) = arith.constant (\d+) : index", text)}
    return size, [numbers[name] for name in re.findall(r"memref.view %\w+\[(%\w+)\]", text)]


def buffer(name: str, count: int) -> str:
    return f"%{name} = memref.alloc() : memref<{count}xf32>\n"


def use(name: str, count: int) -> str:
    return f"memref.store %f, %{name}[%c0] : memref<{count}xf32>\n"


def test_no_buffers() -> None:
    assert placed("") == (0, [])
    assert placed("", always=False) == (None, [])


def test_sizes_are_rounded_up_to_64_bytes() -> None:
    assert placed(buffer("a", 1) + use("a", 1)) == (64, [0])
    assert placed(buffer("a", 16) + use("a", 16)) == (64, [0])
    assert placed(buffer("a", 17) + use("a", 17)) == (128, [0])


def test_buffers_of_one_time_lie_side_by_side_and_of_several_in_one_place() -> None:
    together = buffer("a", 16) + buffer("b", 16) + use("a", 16) + use("b", 16)
    assert placed(together) == (128, [0, 64])
    apart = buffer("a", 16) + use("a", 16) + buffer("b", 16) + use("b", 16)
    assert placed(apart) == (64, [0, 0])


def test_the_smallest_gap_that_fits_is_taken() -> None:
    body = "".join(buffer(name, count) for name, count in [("a", 48), ("x", 16), ("b", 32), ("y", 16)])
    body += use("a", 48) + use("b", 32)
    body += buffer("c", 32) + use("c", 32) + use("x", 16) + use("y", 16)
    size, offsets = placed(body)
    assert size == 192 + 64 + 128 + 64
    assert offsets == [0, 192, 256, 384, 256]


def test_free_neighbours_become_one_gap() -> None:
    for first, second, third in (("a", "b", "c"), ("c", "b", "a"), ("a", "c", "b"), ("b", "a", "c")):
        body = "".join(buffer(name, 16) for name in ("a", "b", "c", "end"))
        body += use(first, 16) + use(second, 16) + use(third, 16)
        body += buffer("whole", 48) + use("whole", 48) + use("end", 16)
        assert placed(body) == (256, [0, 64, 128, 192, 0])


def test_a_gap_at_the_end_grows() -> None:
    body = buffer("a", 16) + buffer("b", 16) + use("b", 16) + buffer("c", 48) + use("c", 48) + use("a", 16)
    assert placed(body) == (64 + 192, [0, 64, 64])


def test_what_is_left_of_a_gap_is_used() -> None:
    body = buffer("a", 48) + buffer("end", 16) + use("a", 48)
    body += buffer("b", 16) + buffer("c", 32) + use("b", 16) + use("c", 32) + use("end", 16)
    assert placed(body) == (256, [0, 192, 0, 64])


def test_a_loop_keeps_what_it_uses_to_its_end() -> None:
    body = buffer("a", 16) + "scf.for %i = %c0 to %c3 step %c1 {\n" + use("a", 16)
    body += buffer("b", 16) + use("b", 16) + "}\n" + buffer("c", 16) + use("c", 16)
    assert placed(body) == (128, [0, 64, 0])


@pytest.mark.parametrize(("sizes", "size"), [((16, 16), 64), ((48, 16), 192), ((16, 48), 192)])
def test_alternatives_share_memory(sizes: tuple[int, int], size: int) -> None:
    first, second = (buffer("b", count) + use("b", count) for count in sizes)
    assert placed(f"scf.if %flag {{\n{first}}} else {{\n{second}}}\n") == (size, [0, 0])


def test_buffers_of_several_blocks_share_nothing() -> None:
    """A block may run again before one that comes after it."""
    body = "".join(buffer(name, 16) + use(name, 16) for name in "abc") + "cf.br ^next\n^next:\n"
    body += buffer("d", 16) + use("d", 16) + use("a", 16)
    size, offsets = placed(body)
    assert size == 256
    assert sorted(offsets) == [0, 64, 128, 192]
