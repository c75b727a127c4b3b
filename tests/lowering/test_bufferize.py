from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from native_code import put_on_memory
from native_harness import F32, ID, bufferized, compiled, run, scratch_bytes, unary

from mind_mlir.lowering.tiling import BufferizationError
from mind_mlir.mlir.bindings import ir, new_context

if TYPE_CHECKING:
    from collections.abc import Callable


def chain(length: int, extent: int = 16) -> str:
    t = f"tensor<{extent}xf32>"
    steps = "\n".join(unary(f"%v{i + 1}", ("addf", "mulf")[i % 2], f"%v{i}", extent) for i in range(length))
    return f"func.func @main(%v0: {t}) -> {t} {{ {steps}\n return %v{length} : {t} }}"


def test_single_operation_writes_the_output_directly() -> None:
    text = bufferized(chain(1))
    assert scratch_bytes(text) == 0
    assert "memref.copy" not in text
    assert "memref.alloc" not in text


def test_a_chain_needs_two_buffers_however_long_it_is() -> None:
    text = bufferized(chain(20))
    assert scratch_bytes(text) == 2 * 64
    assert "memref.copy" not in text


def test_chain() -> None:
    a = np.linspace(0.1, 0.2, 16, dtype=F32)
    expected = a
    for i in range(6):
        expected = expected * expected if i % 2 else expected + expected
    (result,) = run(chain(6), [a], ((16,), F32))
    assert np.array_equal(result, expected)


def test_offsets_are_multiples_of_64() -> None:
    steps = unary("%p", "addf", "%a", 5) + unary("%q", "mulf", "%a", 5)
    t = "tensor<5xf32>"
    source = f"""func.func @main(%a: {t}) -> {t} {{ {steps}
      %e = tensor.empty() : {t}
      %r = linalg.generic {{indexing_maps = [{ID}, {ID}, {ID}], iterator_types = ["parallel"]}}
          ins(%p, %q : {t}, {t}) outs(%e : {t}) {{
      ^bb0(%x: f32, %y: f32, %o: f32):
        %s = arith.subf %x, %y : f32
        linalg.yield %s : f32
      }} -> {t}
      return %r : {t} }}"""
    text = bufferized(source)
    assert scratch_bytes(text) == 128
    a = np.array([1, 2, 3, 4, 5], F32)
    (result,) = run(source, [a], ((5,), F32))
    assert np.array_equal(result, 2 * a - a * a)


def test_argument_as_result() -> None:
    t = "tensor<3x2xf32>"
    a = np.arange(6, dtype=F32).reshape(3, 2)
    results = run(
        f"func.func @main(%a: {t}) -> ({t}, {t}) {{ return %a, %a : {t}, {t} }}", [a], *[((3, 2), F32)] * 2
    )
    for result in results:
        assert np.array_equal(result, a)


def test_same_result_twice_is_computed_once() -> None:
    t = "tensor<16xf32>"
    source = f"""func.func @main(%a: {t}) -> ({t}, {t}) {{ {unary("%v", "mulf", "%a", 16)}
      return %v, %v : {t}, {t} }}"""
    assert bufferized(source).count("linalg.generic") == 1
    a = np.arange(16, dtype=F32)
    for result in run(source, [a], ((16,), F32), ((16,), F32)):
        assert np.array_equal(result, a * a)


def test_result_that_is_used_again() -> None:
    t = "tensor<16xf32>"
    source = f"""func.func @main(%a: {t}) -> ({t}, {t}) {{ {unary("%v", "mulf", "%a", 16)}
      {unary("%w", "addf", "%v", 16)}
      return %v, %w : {t}, {t} }}"""
    assert scratch_bytes(bufferized(source)) == 0
    a = np.arange(16, dtype=F32)
    first, second = run(source, [a], ((16,), F32), ((16,), F32))
    assert np.array_equal(first, a * a)
    assert np.array_equal(second, 2 * a * a)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [("[1.0, -2.0, 3.0]", [1, -2, 3]), ("0.5", [0.5, 0.5, 0.5])],
    ids=["data", "splat"],
)
def test_constant_result(literal: str, expected: list[float]) -> None:
    source = f"""func.func @main() -> tensor<3xf32> {{
      %c = arith.constant dense<{literal}> : tensor<3xf32>
      return %c : tensor<3xf32> }}"""
    (result,) = run(source, [], ((3,), F32))
    assert result.tolist() == expected


def test_reshaped_result_is_computed_in_place() -> None:
    source = f"""func.func @main(%a: tensor<16xf32>) -> tensor<2x1x8xf32> {{ {unary("%v", "mulf", "%a", 16)}
      %s = tensor.expand_shape %v [[0, 1, 2]] output_shape [2, 1, 8] : tensor<16xf32> into tensor<2x1x8xf32>
      return %s : tensor<2x1x8xf32> }}"""
    text = bufferized(source)
    assert scratch_bytes(text) == 0
    assert "memref.copy" not in text
    a = np.arange(16, dtype=F32)
    (result,) = run(source, [a], ((2, 1, 8), F32))
    assert np.array_equal(result, (a * a).reshape(2, 1, 8))


def test_extent_zero() -> None:
    source = """func.func @main(%a: tensor<0x4xf32>, %b: tensor<3x0xf32>)
        -> (tensor<3x4xf32>, tensor<0x4xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<0x4xf32>
      %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%a : tensor<0x4xf32>) outs(%e : tensor<0x4xf32>) {
      ^bb0(%lane: f32, %o: f32):
        %y = arith.negf %lane : f32
        linalg.yield %y : f32
      } -> tensor<0x4xf32>
      %o = tensor.empty() : tensor<3x4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%o : tensor<3x4xf32>) -> tensor<3x4xf32>
      %m = linalg.matmul ins(%b, %n : tensor<3x0xf32>, tensor<0x4xf32>)
          outs(%f : tensor<3x4xf32>) -> tensor<3x4xf32>
      return %m, %a : tensor<3x4xf32>, tensor<0x4xf32>
    }"""
    a, b = np.empty((0, 4), F32), np.empty((3, 0), F32)
    product, empty = run(source, [a, b], ((3, 4), F32), ((0, 4), F32))
    assert np.array_equal(product, np.zeros((3, 4), F32))
    assert empty.shape == (0, 4)


CALLS = f"""
func.func private @twice(%x: tensor<4xf32>, %s: f32) -> (tensor<4xf32>, f32) {{
  {unary("%t", "mulf", "%x", 4)} {unary("%u", "addf", "%t", 4)} {unary("%v", "addf", "%u", 4)}
  return %v, %s : tensor<4xf32>, f32
}}
func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %c = arith.constant 2.0 : f32
  %p, %s = func.call @twice(%x, %c) : (tensor<4xf32>, f32) -> (tensor<4xf32>, f32)
  %q, %u = func.call @twice(%p, %s) : (tensor<4xf32>, f32) -> (tensor<4xf32>, f32)
  %r = linalg.generic {{indexing_maps = [{ID}, {ID}, {ID}], iterator_types = ["parallel"]}}
      ins(%p, %q : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %b, %a : f32
    linalg.yield %d : f32
  }} -> tensor<4xf32>
  return %r : tensor<4xf32>
}}
func.func @main(%a: tensor<8xf32>) -> tensor<4xf32> {{
  %s = tensor.extract_slice %a[4] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %r = func.call @outer(%s) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}}"""


def test_private_functions_get_buffers_and_scratch_from_their_callers() -> None:
    a = np.arange(8, dtype=F32)
    (result,) = run(CALLS, [a], ((4,), F32))
    p = 4 * a[4:] ** 2
    assert np.array_equal(result, 4 * p**2 - p)


def test_the_module_records_the_arena_that_the_function_takes() -> None:
    text = bufferized(chain(3))
    assert f"memref<{scratch_bytes(text)}xi8>" in text
    native = compiled(chain(3))
    assert native.scratch_bytes == scratch_bytes(text)
    assert native.pointers == 2


def test_extent_zero_through_a_call() -> None:
    source = """
    func.func private @same(%x: tensor<2x0xf32>, %y: tensor<2xf32>) -> (tensor<2x0xf32>, tensor<2xf32>) {
      return %x, %y : tensor<2x0xf32>, tensor<2xf32>
    }
    func.func @main(%x: tensor<2x0xf32>, %y: tensor<2xf32>) -> (tensor<2x0xf32>, tensor<2xf32>) {
      %r, %s = func.call @same(%x, %y) : (tensor<2x0xf32>, tensor<2xf32>) -> (tensor<2x0xf32>, tensor<2xf32>)
      return %r, %s : tensor<2x0xf32>, tensor<2xf32>
    }"""
    x, y = np.empty((2, 0), F32), np.ones(2, F32)
    _, same = run(source, [x, y], ((2, 0), F32), ((2,), F32))
    assert np.array_equal(same, y)


def test_concatenation_with_an_empty_part() -> None:
    source = """
    func.func @main(%x: tensor<2x0xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %e = tensor.empty() : tensor<2x3xf32>
      %p = tensor.insert_slice %x into %e[0, 0] [2, 0] [1, 1] : tensor<2x0xf32> into tensor<2x3xf32>
      %q = tensor.insert_slice %y into %p[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<2x3xf32>
      return %q : tensor<2x3xf32>
    }"""
    x, y = np.empty((2, 0), F32), np.arange(6, dtype=F32).reshape(2, 3)
    (result,) = run(source, [x, y], ((2, 3), F32))
    assert np.array_equal(result, y)


def fan_out(uses: int, source: str, returned: str) -> str:
    """Add the squares of ``source``, an input, constant or result, ``uses`` times to an input."""
    t = "tensor<16xf32>"
    maps = f'indexing_maps = [{ID}, {ID}, {ID}], iterator_types = ["parallel"]'
    steps = "".join(
        f"""
        %s{i + 1} = linalg.generic {{{maps}}} ins({source}, %s{i} : {t}, {t}) outs(%e{i} : {t}) {{
        ^bb0(%x: f32, %y: f32, %o: f32):
          %p = arith.mulf %x, %x : f32
          %q = arith.addf %p, %y : f32
          linalg.yield %q : f32
        }} -> {t}"""
        for i in range(uses)
    )
    empties = "".join(f"%e{i} = tensor.empty() : {t}\n" for i in range(uses))
    return f"""func.func @main(%a: {t}, %s0: {t}) -> ({t}, {t}) {{ {empties} {unary("%r", "addf", "%a", 16)}
      %c = arith.constant dense<{[float(i) for i in range(16)]}> : {t} {steps}
      return %s{uses}, {returned} : {t}, {t} }}"""


@pytest.mark.parametrize("uses", [3, 60])
@pytest.mark.parametrize("returned", ["%a", "%r", "%c"])
@pytest.mark.parametrize("source", ["%a", "%r", "%c"])
def test_many_uses_of_one_tensor(source: str, uses: int, returned: str) -> None:
    a, start = np.linspace(0, 1, 16, dtype=F32), np.ones(16, F32)
    values = {"%a": a, "%r": a + a, "%c": np.arange(16, dtype=F32)}
    read = values[source]
    total = start
    for _ in range(uses):
        total = read * read + total
    result, same = run(fan_out(uses, source, returned), [a, start], ((16,), F32), ((16,), F32))
    assert np.array_equal(result, total)
    assert np.array_equal(same, values[returned])


def test_dynamic_temporaries_are_refused() -> None:
    source = """
    func.func @main(%a: tensor<index>) -> tensor<f32> {
      %n = tensor.extract %a[] : tensor<index>
      %c0 = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      %e = tensor.empty(%n) : tensor<?xf32>
      %f = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      %v = tensor.extract %f[%c0] : tensor<?xf32>
      %r = tensor.from_elements %v : tensor<f32>
      return %r : tensor<f32>
    }"""
    with new_context():
        module = ir.Module.parse(source)
        with pytest.raises(BufferizationError, match=r"static extents: memref<\?xf32>"):
            put_on_memory(module)


def test_recursion_is_refused() -> None:
    source = """
    func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {
      %r = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>
      return %r : tensor<2xf32>
    }
    func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %r = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>
      return %r : tensor<2xf32>
    }"""
    with new_context():
        module = ir.Module.parse(source)
        with pytest.raises(BufferizationError, match="cycle"):
            put_on_memory(module)


def concatenation(parts: int, base: str) -> str:
    """Insert ``parts`` results into ``base``, each into the tensor that the last insertion gave."""
    whole, part = f"tensor<{4 * parts}xf32>", "tensor<4xf32>"
    lines = [f"%i{i} = arith.constant {4 * i} : index" for i in range(parts)]
    for i in range(parts):
        before = f"%t{i}" if i else base
        offset = f"%i{i}" if i % 2 else str(4 * i)
        lines.append(unary(f"%v{i}", ("addf", "mulf")[i % 2], "%a", 4))
        lines.append(
            f"%t{i + 1} = tensor.insert_slice %v{i} into {before}[{offset}] [4] [1] : {part} into {whole}"
        )
    body = "\n".join(lines)
    return f"""func.func @main(%a: {part}, %b: {whole}) -> ({whole}, {whole}) {{
      %e = tensor.empty() : {whole}
      {body}
      return %t{parts}, %t{parts} : {whole}, {whole} }}"""


@pytest.mark.parametrize("base", ["%e", "%b"])
@pytest.mark.parametrize("parts", [3, 20])
def test_parts_are_computed_in_the_whole(parts: int, base: str) -> None:
    a, b = np.arange(4, dtype=F32), np.zeros(4 * parts, F32)
    source = concatenation(parts, base)
    text = bufferized(source)
    into_input = base == "%b"  # which is copied to the output first, but after the first part is computed
    assert scratch_bytes(text) == 64 * into_input
    assert text.count("memref.copy") == 1 + 2 * into_input
    expected = np.concatenate([a * a if i % 2 else a + a for i in range(parts)])
    for result in run(source, [a, b], (b.shape, F32), (b.shape, F32)):
        assert np.array_equal(result, expected)


def test_a_partly_overwritten_input_stays_in_the_rest() -> None:
    source = concatenation(20, "%b").replace("tensor<80xf32>", "tensor<90xf32>")
    a, b = np.arange(4, dtype=F32), np.arange(90, dtype=F32)
    result, _ = run(source, [a, b], (b.shape, F32), (b.shape, F32))
    assert np.array_equal(result[80:], b[80:])
    assert np.array_equal(result[76:80], a * a)


@pytest.mark.parametrize("seen", [1, 5, 19])
@pytest.mark.parametrize("base", ["%b", "%c"])
def test_what_was_put_together_so_far_stays_when_it_is_a_result(seen: int, base: str) -> None:
    source = concatenation(20, base).replace("%t20, %t20", f"%t20, %t{seen}")
    source = source.replace("%e = ", "%c = arith.constant dense<7.0> : tensor<80xf32>\n%e = ")
    a, b = np.arange(4, dtype=F32), np.arange(80, dtype=F32)
    whole, part = run(source, [a, b], (b.shape, F32), (b.shape, F32))
    parts = np.concatenate([a * a if i % 2 else a + a for i in range(20)])
    before = b if base == "%b" else np.full(80, 7, F32)
    assert np.array_equal(whole, parts)
    assert np.array_equal(part, np.concatenate([parts[: 4 * seen], before[4 * seen :]]))


def test_what_was_put_together_stays_for_its_readers_when_it_is_changed() -> None:
    """More readers than are given the tensor under one name, and a writer before them."""
    w = "tensor<80xf32>"
    source = concatenation(20, "%e").replace(
        "return %t20, %t20",
        f"""
      %f = arith.constant 99.0 : f32
      %n = tensor.insert %f into %t20[%i0] : {w}
      {readers(20)}
      return %n, %s20""",
    )
    a, b = np.arange(4, dtype=F32), np.arange(80, dtype=F32)
    changed, total = run(source, [a, b], (b.shape, F32), (b.shape, F32))
    whole = np.concatenate([a * a if i % 2 else a + a for i in range(20)])
    assert np.array_equal(total, b + 20 * whole)
    whole[0] = 99
    assert np.array_equal(changed, whole)


def readers(count: int) -> str:
    """Add %t20 so many times to %b."""
    w = "tensor<80xf32>"
    return "\n".join(
        f"""%x{i} = tensor.empty() : {w}
        %s{i + 1} = linalg.add ins(%t20, {f"%s{i}" if i else "%b"} : {w}, {w}) outs(%x{i} : {w}) -> {w}"""
        for i in range(count)
    )


def seconds(source: str) -> float:
    """Return the processor time of bufferizing ``source``, the better of two runs."""
    times = []
    for _ in range(2):
        with new_context():
            module = ir.Module.parse(source)
            start = time.process_time()
            put_on_memory(module)
            times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize(
    "program",
    [
        chain,
        lambda n: fan_out(n, "%a", "%a"),
        lambda n: fan_out(n, "%r", "%a"),
        lambda n: concatenation(n, "%e"),
    ],
    ids=["chain", "input", "result", "parts"],
)
def test_time_is_nearly_linear(program: Callable[[int], str]) -> None:
    assert seconds(program(1200)) < 10 * seconds(program(300))  # quadratic would be 16, cubic 64
