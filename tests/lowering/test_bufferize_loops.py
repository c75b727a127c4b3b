from __future__ import annotations

import guarded
import numpy as np
import pytest
from native_code import native_function
from native_harness import F32, ID, bufferized, compiled, count, run, scratch_bytes, unary

from mind_mlir.lowering.buffers.arena import place_buffers
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.target.abi import SCRATCH_ATTRIBUTE

INSERTS = """
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %l = scf.for %i = %c0 to %c7 step %c1 iter_args(%acc = %a) -> tensor<8xf32> {
    %next = arith.addi %i, %c1 : index
    %v = tensor.extract %acc[%i] : tensor<8xf32>
    %w = tensor.extract %acc[%next] : tensor<8xf32>
    %s = arith.addf %v, %w : f32
    %n = tensor.insert %s into %acc[%next] : tensor<8xf32>
    scf.yield %n : tensor<8xf32>
  }
  return %l : tensor<8xf32>
}"""


def test_loop_that_inserts() -> None:
    a = np.arange(8, dtype=F32)
    (result,) = run(INSERTS, [a], ((8,), F32))
    assert np.array_equal(result, np.cumsum(a))


def for_loop(trips: int, yielded: str, body: str) -> str:
    """A loop that carries %x and %y, from %a and %b."""
    t = "tensor<8xf32>"
    return f"""func.func @main(%a: {t}, %b: {t}) -> ({t}, {t}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {trips} : index
      %p, %q = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> ({t}, {t}) {{
        {body}
        scf.yield {yielded} : {t}, {t}
      }}
      return %p, %q : {t}, {t} }}"""


SUM = """
%e = tensor.empty() : tensor<8xf32>
%s = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>"""


@pytest.mark.parametrize("trips", [0, 1, 5])
@pytest.mark.parametrize("yielded", ["%x, %y", "%y, %x", "%s, %x", "%y, %s", "%s, %s", "%y, %y", "%b, %s"])
def test_loops_permute_what_they_carry(yielded: str, trips: int) -> None:
    a, b = np.arange(8, dtype=F32), np.ones(8, F32)
    first, second = run(for_loop(trips, yielded, SUM), [a, b], ((8,), F32), ((8,), F32))
    x, y = a, b
    for _ in range(trips):
        values = {"%x": x, "%y": y, "%s": x + y, "%b": b}
        x, y = (values[name] for name in yielded.split(", "))
    assert np.array_equal(first, x)
    assert np.array_equal(second, y)


def test_elementwise_update_of_a_carried_tensor_needs_no_copy_in_the_loop() -> None:
    body = f"""
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.generic {{indexing_maps = [{ID}, {ID}, {ID}], iterator_types = ["parallel"]}}
        ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {{
    ^bb0(%v: f32, %w: f32, %o: f32):
      %z = arith.addf %v, %w : f32
      linalg.yield %z : f32
    }} -> tensor<8xf32>"""
    text = bufferized(for_loop(5, "%s, %y", body))
    assert scratch_bytes(text) == 0  # the outputs carry the state
    assert count(text, "memref.copy") == 2


def test_while_loop_with_regions_of_different_types() -> None:
    source = """
    func.func @main(%a: tensor<8xf32>, %limit: tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<index>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %l = tensor.extract %limit[] : tensor<f32>
      %r:3 = scf.while (%x = %a, %i = %c0) : (tensor<8xf32>, index) -> (index, tensor<4xf32>, tensor<8xf32>) {
        %e = tensor.empty() : tensor<8xf32>
        %s = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
        %h = tensor.extract_slice %s[4] [4] [1] : tensor<8xf32> to tensor<4xf32>
        %v = tensor.extract %s[%c1] : tensor<8xf32>
        %c = arith.cmpf olt, %v, %l : f32
        scf.condition(%c) %i, %h, %s : index, tensor<4xf32>, tensor<8xf32>
      } do {
      ^bb0(%j: index, %h: tensor<4xf32>, %s: tensor<8xf32>):
        %k = arith.addi %j, %c1 : index
        %f = tensor.insert_slice %h into %s[2] [4] [1] : tensor<4xf32> into tensor<8xf32>
        scf.yield %f, %k : tensor<8xf32>, index
      }
      %z = tensor.empty() : tensor<index>
      %n = tensor.insert %r#0 into %z[] : tensor<index>
      return %r#2, %r#1, %n : tensor<8xf32>, tensor<4xf32>, tensor<index>
    }"""
    x, limit = np.arange(8, dtype=F32), np.array(20, F32)
    whole, half, trips = run(source, [x, limit], ((8,), F32), ((4,), F32), ((), np.int64))
    expected = 0
    while True:
        x = x + x
        if not x[1] < limit:
            break
        x[2:6] = x[4:].copy()
        expected += 1
    assert np.array_equal(whole, x)
    assert np.array_equal(half, x[4:])
    assert trips == expected


def test_parallel_iterations_have_temporaries_of_their_own() -> None:
    inner = f"""
        %row = tensor.extract_slice %a[%i, 0] [1, 8] [1, 1] : tensor<6x8xf32> to tensor<8xf32>
        {unary("%s", "addf", "%row", 8)}
        {unary("%u", "mulf", "%s", 8)}
        %flip = linalg.generic {{indexing_maps = [affine_map<(i) -> (7 - i)>, {ID}],
            iterator_types = ["parallel"]}} ins(%u : tensor<8xf32>) outs(%u_e : tensor<8xf32>) {{
        ^bb0(%v: f32, %o: f32):
          linalg.yield %v : f32
        }} -> tensor<8xf32>"""
    source = f"""func.func @main(%a: tensor<6x8xf32>) -> tensor<6x8xf32> {{
      %e = tensor.empty() : tensor<6x8xf32>
      %r = scf.forall (%i) in (6) shared_outs(%shared = %e) -> tensor<6x8xf32> {{ {inner}
        scf.forall.in_parallel {{
          tensor.parallel_insert_slice %flip into %shared[%i, 0] [1, 8] [1, 1]
              : tensor<8xf32> into tensor<6x8xf32>
        }}
      }}
      return %r : tensor<6x8xf32> }}"""
    text = bufferized(source)
    assert scratch_bytes(text) >= 6 * 64
    a = np.arange(48, dtype=F32).reshape(6, 8)
    (result,) = run(source, [a], ((6, 8), F32))
    assert np.array_equal(result, ((2 * a) ** 2)[:, ::-1])


def test_arena_of_a_parallel_loop_with_bounds_and_steps() -> None:
    source = """
    func.func @main(%a: memref<2x6xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c6 = arith.constant 6 : index
      scf.parallel (%i, %j) = (%c0, %c2) to (%c2, %c6) step (%c1, %c2) {
        %t = memref.alloc() : memref<20xf32>
        %x = arith.index_cast %j : index to i64
        %y = arith.sitofp %x : i64 to f32
        memref.store %y, %t[%j] : memref<20xf32>
        %z = memref.load %t[%j] : memref<20xf32>
        memref.store %z, %a[%i, %j] : memref<2x6xf32>
      }
      return
    }"""
    with new_context():
        module = ir.Module.parse(source)
        size = place_buffers(module.body.operations[0])
        assert size == 2 * 2 * 128
        module.operation.attributes[SCRATCH_ATTRIBUTE] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), size
        )
        to_llvm(module, verify=True)
        native = native_function(module)
    result = np.zeros((2, 6), F32)
    native.call([result.ctypes.data])
    assert result.tolist() == [[0, 0, 2, 0, 4, 0]] * 2


def test_branches_share_memory() -> None:
    t = "tensor<16xf32>"
    flip = f"""linalg.generic {{indexing_maps = [affine_map<(i) -> (15 - i)>, {ID}],
        iterator_types = ["parallel"]}}"""
    branch = """
        {0}
        {1}
        %f = {2} ins({3} : {4}) outs(%a : {4}) {{
        ^bb0(%v: f32, %o: f32):
          linalg.yield %v : f32
        }} -> {4}
        scf.yield %f : {4}"""
    source = f"""func.func @main(%a: {t}, %c: tensor<i1>) -> {t} {{
      %flag = tensor.extract %c[] : tensor<i1>
      %r = scf.if %flag -> ({t}) {{ {branch.format(unary("%p", "addf", "%a", 16), "", flip, "%p", t)} }}
      else {{ {branch.format(unary("%s", "mulf", "%a", 16), unary("%u", "addf", "%s", 16), flip, "%u", t)} }}
      return %r : {t} }}"""
    a = np.arange(16, dtype=F32)
    for flag, expected in ((True, 2 * a), (False, 2 * a * a)):
        (result,) = run(source, [a, np.array(flag)], ((16,), F32))
        assert np.array_equal(result, expected[::-1])


def test_conditional_update_needs_no_copy() -> None:
    body = f"""
    %c = tensor.extract %y[%i] : tensor<8xf32>
    %zero = arith.constant 0.0 : f32
    %flag = arith.cmpf ogt, %c, %zero : f32
    %z = scf.if %flag -> tensor<8xf32> {{
      {unary("%s", "addf", "%x", 8)}
      scf.yield %s : tensor<8xf32>
    }} else {{
      scf.yield %x : tensor<8xf32>
    }}"""
    source = for_loop(8, "%z, %y", body)
    text = bufferized(source)
    assert scratch_bytes(text) == 0
    assert count(text, "memref.copy") == 2  # of the arguments
    a, b = np.arange(8, dtype=F32), np.array([1, -1, 0, 2, 3, -4, 0, 1], F32)
    first, second = run(source, [a, b], ((8,), F32), ((8,), F32))
    assert np.array_equal(first, a * 2 ** (b > 0).sum())
    assert np.array_equal(second, b)


def test_conditional_update_of_a_value_that_is_read_afterwards() -> None:
    body = f"""
    %c = tensor.extract %y[%i] : tensor<8xf32>
    %zero = arith.constant 0.0 : f32
    %flag = arith.cmpf ogt, %c, %zero : f32
    %z = scf.if %flag -> tensor<8xf32> {{
      {unary("%s", "addf", "%x", 8)}
      scf.yield %s : tensor<8xf32>
    }} else {{
      scf.yield %x : tensor<8xf32>
    }}
    %e = tensor.empty() : tensor<8xf32>
    %d = linalg.sub ins(%z, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>"""
    a, b = np.arange(8, dtype=F32), np.array([1, -1, 0, 2, 3, -4, 0, 1], F32)
    first, second = run(for_loop(8, "%z, %d", body), [a, b], ((8,), F32), ((8,), F32))
    x, y = a, b
    for i in range(8):
        z = x + x if y[i] > 0 else x
        x, y = z, z - x
    assert np.array_equal(first, x)
    assert np.array_equal(second, y)


def test_update_that_reads_the_carried_tensor_elsewhere_is_not_in_place() -> None:
    """Element [i, j] of the next value needs [j, i] of this one."""
    t = "tensor<5x5xf32>"
    source = f"""func.func @main(%a: {t}, %b: {t}) -> {t} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %r = scf.for %k = %c0 to %c3 step %c1 iter_args(%x = %a) -> ({t}) {{
        %e = tensor.empty() : {t}
        %s = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>,
            affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
            ins(%x, %b : {t}, {t}) outs(%e : {t}) {{
        ^bb0(%v: f32, %w: f32, %o: f32):
          %z = arith.addf %v, %w : f32
          linalg.yield %z : f32
        }} -> {t}
        scf.yield %s : {t}
      }}
      return %r : {t} }}"""
    a, b = np.arange(25, dtype=F32).reshape(5, 5), np.arange(25, 50, dtype=F32).reshape(5, 5)
    (result,) = run(source, [a, b], ((5, 5), F32))
    expected = a
    for _ in range(3):
        expected = expected.T + b
    assert np.array_equal(result, expected)


_TEMPORARY = """
      %one = arith.constant 1.0 : f32
      %t = tensor.insert %one into %a[%c0] : tensor<8xf32>"""


def test_two_values_that_a_loop_carries_from_one_temporary_are_kept_apart() -> None:
    source = for_loop(4, "%s, %x", SUM).replace("%x = %a, %y = %b", "%x = %t, %y = %t")
    source = source.replace("%p, %q =", f"{_TEMPORARY}\n%p, %q =")
    first, second = run(source, [np.arange(8, dtype=F32), np.ones(8, F32)], ((8,), F32), ((8,), F32))
    x = y = np.array([1, *range(1, 8)], F32)
    for _ in range(4):
        x, y = x + y, x
    assert np.array_equal(first, x)
    assert np.array_equal(second, y)


def test_two_values_that_a_loop_carries_from_one_empty_tensor_are_kept_apart() -> None:
    body = f"""
    {unary("%s", "addf", "%a", 8)}
    {unary("%u", "mulf", "%b", 8)}"""
    source = for_loop(4, "%s, %u", body).replace("%x = %a, %y = %b", "%x = %t, %y = %t")
    source = source.replace("%p, %q =", "%t = tensor.empty() : tensor<8xf32>\n%p, %q =")
    a, b = np.arange(8, dtype=F32), np.full(8, 3, F32)
    first, second = run(source, [a, b], ((8,), F32), ((8,), F32))
    assert np.array_equal(first, a + a)
    assert np.array_equal(second, b * b)


@pytest.mark.parametrize("again", ["linalg.add", "linalg.mul"])
def test_a_temporary_that_is_read_after_the_loop_stays_as_it_was(again: str) -> None:
    source = for_loop(4, "%s, %x", SUM).replace("%x = %a, %y = %b", "%x = %t, %y = %b")
    source = source.replace("%p, %q =", f"{_TEMPORARY}\n%p, %q =")
    source = source.replace(
        "return %p, %q",
        f"""%u = tensor.empty() : tensor<8xf32>
        %w = {again} ins(%t, %q : tensor<8xf32>, tensor<8xf32>) outs(%u : tensor<8xf32>) -> tensor<8xf32>
        return %p, %w""",
    )
    b = np.full(8, 2, F32)
    first, second = run(source, [np.arange(8, dtype=F32), b], ((8,), F32), ((8,), F32))
    t = np.array([1, *range(1, 8)], F32)
    x, y = t, b
    for _ in range(4):
        x, y = x + y, x
    assert np.array_equal(first, x)
    assert np.array_equal(second, t + y if again == "linalg.add" else t * y)


def test_a_temporary_that_a_loop_in_a_loop_starts_from_again() -> None:
    t = "tensor<8xf32>"
    source = f"""func.func @main(%a: {t}, %b: {t}) -> {t} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index {_TEMPORARY}
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%z = %b) -> ({t}) {{
        %s = scf.for %j = %c0 to %c3 step %c1 iter_args(%x = %t) -> ({t}) {{
          {unary("%d", "addf", "%x", 8)}
          scf.yield %d : {t}
        }}
        %e = tensor.empty() : {t}
        %n = linalg.add ins(%s, %z : {t}, {t}) outs(%e : {t}) -> {t}
        scf.yield %n : {t}
      }}
      return %r : {t} }}"""
    a, b = np.arange(8, dtype=F32), np.ones(8, F32)
    (result,) = run(source, [a, b], ((8,), F32))
    assert np.array_equal(result, 3 * 8 * np.array([1, *range(1, 8)], F32) + b)


def test_a_carried_value_that_is_read_after_the_branches_that_replace_it() -> None:
    body = f"""
    %c = tensor.extract %y[%i] : tensor<8xf32>
    %zero = arith.constant 0.0 : f32
    %flag = arith.cmpf ogt, %c, %zero : f32
    %z = scf.if %flag -> tensor<8xf32> {{
      {unary("%s", "addf", "%x", 8)}
      scf.yield %s : tensor<8xf32>
    }} else {{
      scf.yield %x : tensor<8xf32>
    }}
    %v = tensor.extract %x[%i] : tensor<8xf32>
    %w = tensor.insert %v into %y[%i] : tensor<8xf32>"""
    a, b = np.arange(1, 9, dtype=F32), np.array([1, -1, 0, 2, 3, -4, 0, 1], F32)
    first, second = run(for_loop(8, "%z, %w", body), [a, b], ((8,), F32), ((8,), F32))
    x, y = a, b.copy()
    for i in range(8):
        z = x + x if y[i] > 0 else x
        y[i] = x[i]
        x = z
    assert np.array_equal(first, x)
    assert np.array_equal(second, y)


def while_loop(start: str, forwarded: str, yielded: str) -> str:
    """A loop that carries %x and %y from %a and %b while the first element of %x is below that of %limit.

    The body calls what the condition hands on %p and %q, and may yield their sum %s.
    """
    t = "tensor<8xf32>"
    return f"""func.func @main(%a: {t}, %b: {t}, %limit: tensor<f32>) -> ({t}, {t}) {{
      %c0 = arith.constant 0 : index
      %l = tensor.extract %limit[] : tensor<f32>
      {unary("%d", "addf", "%a", 8)}
      %r:2 = scf.while (%x = {start}, %y = %b) : ({t}, {t}) -> ({t}, {t}) {{
        %v = tensor.extract %x[%c0] : {t}
        %c = arith.cmpf olt, %v, %l : f32
        scf.condition(%c) {forwarded} : {t}, {t}
      }} do {{
      ^bb0(%p: {t}, %q: {t}):
        %e = tensor.empty() : {t}
        %s = linalg.add ins(%p, %q : {t}, {t}) outs(%e : {t}) -> {t}
        scf.yield {yielded} : {t}, {t}
      }}
      return %r#0, %r#1 : {t}, {t} }}"""


@pytest.mark.parametrize("limit", [0, 20, 200])
@pytest.mark.parametrize("start", ["%a", "%d"])
@pytest.mark.parametrize("forwarded", ["%x, %y", "%y, %x", "%x, %x", "%y, %y"])
@pytest.mark.parametrize("yielded", ["%s, %q", "%p, %s", "%s, %p", "%s, %s", "%q, %s"])
def test_while_loops_permute_what_they_carry(yielded: str, forwarded: str, start: str, limit: int) -> None:
    a, b = np.arange(1, 9, dtype=F32), np.full(8, 3, F32)
    x, y = (a if start == "%a" else a + a), b
    for _ in range(100):  # programs that would go on for ever are none
        handed = {"%x": x, "%y": y}
        p, q = (handed[name] for name in forwarded.split(", "))
        if not x[0] < limit:
            break
        values = {"%p": p, "%q": q, "%s": p + q}
        x, y = (values[name] for name in yielded.split(", "))
    else:
        return
    source = while_loop(start, forwarded, yielded)
    first, second = run(source, [a, b, np.array(limit, F32)], ((8,), F32), ((8,), F32))
    assert np.array_equal(first, p)
    assert np.array_equal(second, q)


WHOLE = "memref<2x3x5xf32>"


def strided_loop(layout: str, body: str, source: str = f"memref.cast %a : {WHOLE} to") -> str:
    """A loop over a buffer %x of a layout of its own, which is that of %t in the end."""
    t = f"memref<2x3x5xf32, {layout}>"
    return f"""func.func @main(%a: {WHOLE}, %r: {WHOLE}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %v = {source} {t}
      %l = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %v) -> ({t}) {{
        {body.format(t=t)}
        scf.yield %n : {t}
      }}
      memref.copy %l, %r : {t} to {WHOLE}
      return }}"""


@pytest.mark.parametrize(
    "layout",
    [
        "strided<[?, ?, ?], offset: ?>",
        "strided<[?, ?, 1], offset: ?>",
        "strided<[15, ?, 1], offset: ?>",
        "strided<[?, 5, 1], offset: 0>",
        "strided<[15, 5, ?], offset: ?>",
        "strided<[15, 5, 1], offset: ?>",
    ],
)
def test_loops_carry_buffers_of_any_layout(layout: str) -> None:
    body = f"""
        %t = memref.alloc() : {WHOLE}
        linalg.add ins(%x, %a : {{t}}, {WHOLE}) outs(%t : {WHOLE})
        %n = memref.cast %t : {WHOLE} to {{t}}"""
    a = np.arange(30, dtype=F32).reshape(2, 3, 5)
    result = np.zeros((2, 3, 5), F32)
    guarded.call(compiled(strided_loop(layout, body)), [a], [result])
    assert np.array_equal(result, 4 * a)


def test_loops_carry_parts_of_larger_buffers() -> None:
    layout = "strided<[40, 8, 1], offset: 3>"
    part = f"[0, 0, 3] [2, 3, 5] [1, 1, 1] : memref<2x5x8xf32> to memref<2x3x5xf32, {layout}>"
    body = f"""
        %m = memref.alloc() : memref<2x5x8xf32>
        %n = memref.subview %m{part}
        linalg.add ins(%x, %a : {{t}}, {WHOLE}) outs(%n : {{t}})"""
    begin = f"""memref.alloc() : memref<2x5x8xf32>
      %w = memref.subview %whole{part}
      memref.copy %a, %w : {WHOLE} to memref<2x3x5xf32, {layout}>
      %v ="""
    source = strided_loop(layout, body, "memref.cast %w : memref<2x3x5xf32, " + layout + "> to")
    source = source.replace("%v = ", f"%whole = {begin} ", 1)
    a = np.arange(30, dtype=F32).reshape(2, 3, 5)
    result = np.zeros((2, 3, 5), F32)
    guarded.call(compiled(source), [a], [result])
    assert np.array_equal(result, 4 * a)


def test_a_buffer_that_comes_back_as_another_type_of_itself_has_its_home() -> None:
    layout = "strided<[?, ?, 1], offset: ?>"
    body = f"""
        %one = arith.constant 1.0 : f32
        %old = memref.load %x[%c0, %c1, %i] : {{t}}
        %new = arith.addf %old, %one : f32
        memref.store %new, %x[%c0, %c1, %i] : {{t}}
        %d = memref.cast %x : {{t}} to {WHOLE}
        %n = memref.cast %d : {WHOLE} to {{t}}"""
    source = strided_loop(layout, body, f"memref.cast %r : {WHOLE} to")
    source = source.replace("%v = ", f"memref.copy %a, %r : {WHOLE} to {WHOLE}\n%v = ", 1)
    text = bufferized(source)
    assert scratch_bytes(text) == 0
    a = np.arange(30, dtype=F32).reshape(2, 3, 5)
    result = np.zeros((2, 3, 5), F32)
    guarded.call(compiled(source), [a], [result])
    a[0, 1, :3] += 1
    assert np.array_equal(result, a)
