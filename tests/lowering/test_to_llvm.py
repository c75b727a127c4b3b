from __future__ import annotations

import math
import re

import guarded
import ml_dtypes
import numpy as np
import pytest
from native_code import assembly, native_function, put_on_memory
from native_harness import lowered, run

from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.target import named_target
from mind_mlir.target.abi import SCRATCH_ATTRIBUTE

ID = "affine_map<(i) -> (i)>"
F32 = np.float32


def elementwise(shape: str, count: int, body: str, dtype: str = "f32") -> str:
    """One rank-1 `linalg.generic` over ``count`` tensors of ``shape`` elements."""
    args = ", ".join(f"%a{i}: tensor<{shape}x{dtype}>" for i in range(count))
    names = ", ".join(f"%a{i}" for i in range(count))
    types = ", ".join([f"tensor<{shape}x{dtype}>"] * count)
    block = ", ".join(f"%x{i}: {dtype}" for i in range(count))
    maps = ", ".join([ID] * (count + 1))
    return f"""
    func.func @main({args}) -> tensor<{shape}x{dtype}> {{
      %e = tensor.empty() : tensor<{shape}x{dtype}>
      %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
          ins({names} : {types}) outs(%e : tensor<{shape}x{dtype}>) {{
      ^bb0({block}, %out: {dtype}):
        {body}
      }} -> tensor<{shape}x{dtype}>
      return %r : tensor<{shape}x{dtype}>
    }}"""


def test_chain_of_elementwise_operations() -> None:
    body = "%s = arith.addf %x0, %x1 : f32\n %p = arith.mulf %s, %x1 : f32\n linalg.yield %p : f32"
    a, b = (np.linspace(-1, k, 1003, dtype=F32) for k in (1, 2))
    (result,) = run(elementwise("1003", 2, body), [a, b], ((1003,), F32))
    assert np.array_equal(result, (a + b) * b)


@pytest.mark.parametrize("op", ["maximumf", "minimumf"])
def test_maximum_propagates_nan_and_orders_zeros(op: str) -> None:
    special = np.array([np.nan, -np.nan, 0.0, -0.0, 1.0, np.inf, -np.inf, 1e-45], F32)
    a, b = (each.ravel().copy() for each in np.meshgrid(special, special))
    body = f"%r = arith.{op} %x0, %x1 : f32\n linalg.yield %r : f32"
    (result,) = run(elementwise("64", 2, body), [a, b], ((64,), F32))
    expected = (np.maximum if op == "maximumf" else np.minimum)(a, b)
    assert np.array_equal(np.isnan(result), np.isnan(expected))
    assert np.array_equal(result, expected, equal_nan=True)
    zeros = (a == 0) & (b == 0)
    negative = np.signbit(a) & np.signbit(b) if op == "maximumf" else np.signbit(a) | np.signbit(b)
    assert np.array_equal(np.signbit(result[zeros]), negative[zeros])


def test_products_are_not_fused_into_sums() -> None:
    body = "%p = arith.mulf %x0, %x1 : f32\n %s = arith.addf %p, %x2 : f32\n linalg.yield %s : f32"
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(4096).astype(F32) for _ in range(3))
    (result,) = run(elementwise("4096", 3, body), [a, b, c], ((4096,), F32))
    assert np.array_equal(result, a * b + c)


def test_matmul() -> None:
    source = """
    func.func @main(%a: tensor<33x17xf32>, %b: tensor<17x29xf32>) -> tensor<33x29xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<33x29xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<33x29xf32>) -> tensor<33x29xf32>
      %r = linalg.matmul ins(%a, %b : tensor<33x17xf32>, tensor<17x29xf32>)
          outs(%f : tensor<33x29xf32>) -> tensor<33x29xf32>
      return %r : tensor<33x29xf32>
    }"""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((33, 17)).astype(F32), rng.standard_normal((17, 29)).astype(F32)
    (result,) = run(source, [a, b], ((33, 29), F32))
    np.testing.assert_allclose(result, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


def test_reduction_over_a_row() -> None:
    source = """
    func.func @main(%a: tensor<5x1000xf64>) -> tensor<5xf64> {
      %zero = arith.constant 0.0 : f64
      %e = tensor.empty() : tensor<5xf64>
      %f = linalg.fill ins(%zero : f64) outs(%e : tensor<5xf64>) -> tensor<5xf64>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%a : tensor<5x1000xf64>) outs(%f : tensor<5xf64>) {
      ^bb0(%x: f64, %acc: f64):
        %s = arith.addf %acc, %x : f64
        linalg.yield %s : f64
      } -> tensor<5xf64>
      return %r : tensor<5xf64>
    }"""
    a = np.random.default_rng(2).standard_normal((5, 1000))
    (result,) = run(source, [a], ((5,), np.float64))
    assert np.array_equal(result, np.add.accumulate(a, axis=1)[:, -1])  # in order: no reassociation


def test_bf16_rounds_to_nearest_even_and_keeps_denormals() -> None:
    body = "%r = arith.addf %x0, %x1 : bf16\n linalg.yield %r : bf16"
    bits = np.arange(0, 1 << 16, 7, dtype=np.uint16)
    a = bits.view(ml_dtypes.bfloat16)
    b = bits[::-1].copy().view(ml_dtypes.bfloat16)
    (result,) = run(elementwise(str(len(a)), 2, body, "bf16"), [a, b], ((len(a),), ml_dtypes.bfloat16))
    with np.errstate(all="ignore"):
        exact = a.astype(F32) + b.astype(F32)
        expected = exact.astype(ml_dtypes.bfloat16)
    nan = np.isnan(exact)
    assert np.array_equal(np.isnan(result.astype(F32)), nan)
    assert np.array_equal(result.view(np.uint16)[~nan], expected.view(np.uint16)[~nan])


@pytest.mark.skipif(named_target().cpu == "x86-64", reason="the least of x86-64 converts no f16")
def test_f16_needs_no_runtime_library() -> None:
    body = "%r = arith.mulf %x0, %x1 : f16\n linalg.yield %r : f16"
    a = np.linspace(-3, 3, 77).astype(np.float16)
    (result,) = run(elementwise("77", 2, body, "f16"), [a, a], ((77,), np.float16))
    assert np.array_equal(result, a * a)


def test_compare_gives_bytes_like_numpy_bool() -> None:
    source = f"""
    func.func @main(%a: tensor<50xi32>, %b: tensor<50xi32>) -> tensor<50xi1> {{
      %e = tensor.empty() : tensor<50xi1>
      %r = linalg.generic {{indexing_maps = [{ID}, {ID}, {ID}], iterator_types = ["parallel"]}}
          ins(%a, %b : tensor<50xi32>, tensor<50xi32>) outs(%e : tensor<50xi1>) {{
      ^bb0(%x: i32, %y: i32, %o: i1):
        %c = arith.cmpi slt, %x, %y : i32
        linalg.yield %c : i1
      }} -> tensor<50xi1>
      return %r : tensor<50xi1>
    }}"""
    a = np.arange(50, dtype=np.int32)
    b = np.full(50, 20, np.int32)
    (result,) = run(source, [a, b], ((50,), np.bool_))
    assert np.array_equal(result.view(np.uint8), (a < b).view(np.uint8))


STRIDED = """
func.func @main(%a: tensor<6x8xf32>, %b: tensor<3x4xf32>) -> tensor<6x8xf32> {
  %r = tensor.insert_slice %b into %a[1, 2] [3, 4] [2, 1] : tensor<3x4xf32> into tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}"""


def test_strided_copy() -> None:
    a, b = np.arange(48, dtype=F32).reshape(6, 8), -np.ones((3, 4), F32)
    (result,) = run(STRIDED, [a, b], ((6, 8), F32))
    expected = a.copy()
    expected[1:7:2, 2:6] = b
    assert np.array_equal(result, expected)


VECTORS = """
func.func @main(%a: tensor<4x16xf32>, %b: tensor<16xf32>)
    -> (tensor<4x16xf32>, tensor<4xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %i = arith.constant 0 : index
  %e0 = tensor.empty() : tensor<4x16xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %e2 = tensor.empty() : tensor<f32>
  %va = vector.transfer_read %a[%i, %i], %zero {in_bounds = [true, true]} : tensor<4x16xf32>, vector<4x16xf32>
  %vb = vector.transfer_read %b[%i], %zero {in_bounds = [true]} : tensor<16xf32>, vector<16xf32>
  %bb = vector.broadcast %vb : vector<16xf32> to vector<4x16xf32>
  %m = arith.mulf %va, %bb : vector<4x16xf32>
  %w0 = vector.transfer_write %m, %e0[%i, %i] {in_bounds = [true, true]} : vector<4x16xf32>, tensor<4x16xf32>
  %none = arith.constant dense<0.0> : vector<4xf32>
  %s = vector.multi_reduction <add>, %m, %none [1] : vector<4x16xf32> to vector<4xf32>
  %w1 = vector.transfer_write %s, %e1[%i] {in_bounds = [true]} : vector<4xf32>, tensor<4xf32>
  %c = vector.contract {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
      iterator_types = ["reduction"], kind = #vector.kind<add>} %vb, %vb, %zero
      : vector<16xf32>, vector<16xf32> into f32
  %w2 = tensor.insert %c into %e2[] : tensor<f32>
  return %w0, %w1, %w2 : tensor<4x16xf32>, tensor<4xf32>, tensor<f32>
}"""


def test_vectors() -> None:
    a = np.arange(64, dtype=F32).reshape(4, 16)
    b = np.arange(16, dtype=F32)
    product, rows, dot = run(VECTORS, [a, b], ((4, 16), F32), ((4,), F32), ((), F32))
    assert np.array_equal(product, a * b)
    assert np.array_equal(rows, (a * b).sum(axis=1))
    assert dot == (b * b).sum()


MATH = elementwise("19", 1, "%r = math.tanh %x0 : f32\n %q = math.erf %r : f32\n linalg.yield %q : f32")


def repeated(length: int) -> str:
    steps = "\n".join(
        f"""
        %e{i} = tensor.empty() : tensor<100xf32>
        %v{i + 1} = linalg.generic {{indexing_maps = [{ID}, {ID}], iterator_types = ["parallel"]}}
            ins(%v{i} : tensor<100xf32>) outs(%e{i} : tensor<100xf32>) {{
        ^bb0(%x: f32, %o: f32):
          %y = arith.{("addf", "mulf")[i % 2]} %x, %x : f32
          linalg.yield %y : f32
        }} -> tensor<100xf32>"""
        for i in range(length)
    )
    return f"""func.func @main(%v0: tensor<100xf32>) -> tensor<100xf32> {{ {steps}
      return %v{length} : tensor<100xf32> }}"""


CHAIN = repeated(8)
LIBM = re.compile(r"(tanh|erf|exp|log|sin|cos|pow)f?|mem(cpy|set|move)")


@pytest.mark.parametrize("source", [STRIDED, VECTORS, MATH, CHAIN], ids=["copy", "vectors", "math", "chain"])
def test_declares_nothing_but_libm(source: str) -> None:
    text = lowered(source)
    declared = re.findall(r"llvm\.func (?:private )?@(\w+)\([^{\n]*$", text, re.MULTILINE)
    assert [name for name in declared if not LIBM.fullmatch(name)] == []


def test_math_functions() -> None:
    a = np.linspace(-2, 2, 19, dtype=F32)
    (result,) = run(MATH, [a], ((19,), F32))
    expected = [math.erf(math.tanh(x)) for x in a.tolist()]
    np.testing.assert_allclose(result, expected, rtol=3e-7)


def test_equal_loop_nests_are_compiled_once() -> None:
    text = lowered(CHAIN)
    assert len(re.findall(r"llvm\.func internal @main_kernel_\d+\(", text)) == 2
    assert len(re.findall(r"llvm\.call @main_kernel_\d+\(", text)) == 8
    a = np.linspace(0.1, 0.2, 100, dtype=F32)
    expected = a
    for i in range(8):
        expected = expected * expected if i % 2 else expected + expected
    (result,) = run(CHAIN, [a], ((100,), F32))
    assert np.array_equal(result, expected)


def test_a_kernel_that_is_one_loop_apart_does_not_call_itself() -> None:
    """What is moved out of it would be the kernel as it was known before."""
    loop = """
      scf.for %i = %c0 to %c64 step %c1 {
        %v = memref.load %a[%i] : memref<64xf32>
        memref.store %v, %OUT[%i] : memref<64xf32>
      } {mind.apart}"""
    source = f"""
    func.func @main(%a: memref<64xf32>, %r: memref<64xf32>, %s: memref<64xf32>, %none: memref<0xi8>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      {loop.replace("OUT", "r")}
      {loop.replace("OUT", "s")}
      return
    }}"""
    with new_context():
        module = ir.Module.parse(source)
        to_llvm(module, verify=True)
        kernels = re.findall(r"llvm\.func internal @(\w+)\(|llvm\.call @(\w+)\(", str(module))
    assert kernels == [("main_kernel_0", ""), ("", "main_kernel_0"), ("", "main_kernel_0")]


def test_kernels_repeat_views_and_take_scalars() -> None:
    source = """
    func.func @main(%a: tensor<6x4xf32>, %f: tensor<f32>) -> (tensor<6x4xf32>, tensor<2x4xf32>) {
      %i = arith.constant 2 : index
      %s = tensor.extract %f[] : tensor<f32>
      %e = tensor.empty() : tensor<6x4xf32>
      %r = linalg.fill ins(%s : f32) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
      %part = tensor.extract_slice %a[%i, 0] [2, 4] [1, 1] : tensor<6x4xf32> to tensor<2x4xf32>
      %d = tensor.empty() : tensor<2x4xf32>
      %q = linalg.add ins(%part, %part : tensor<2x4xf32>, tensor<2x4xf32>) outs(%d : tensor<2x4xf32>)
          -> tensor<2x4xf32>
      %w = tensor.insert_slice %q into %r[1, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<6x4xf32>
      return %w, %q : tensor<6x4xf32>, tensor<2x4xf32>
    }"""
    a = np.arange(24, dtype=F32).reshape(6, 4)
    whole, part = run(source, [a, np.array(7, F32)], ((6, 4), F32), ((2, 4), F32))
    expected = np.full((6, 4), 7, F32)
    expected[1:3] = 2 * a[2:4]
    assert np.array_equal(whole, expected)
    assert np.array_equal(part, 2 * a[2:4])


@pytest.mark.parametrize("same", [True, False])
def test_kernels_whose_buffers_may_be_the_same_take_them_one_by_one(same: bool) -> None:
    """Each step reads what the step before it has stored, if it did so in the same buffer."""
    source = """
    func.func @main(%flag: memref<i1>, %r: memref<64xf32>, %other: memref<64xf32>, %none: memref<0xi8>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %one = arith.constant 1.0 : f32
      linalg.fill ins(%one : f32) outs(%r : memref<64xf32>)
      linalg.fill ins(%one : f32) outs(%other : memref<64xf32>)
      %same = memref.load %flag[] : memref<i1>
      %p = arith.select %same, %r, %other : memref<64xf32>
      scf.for %i = %c0 to %c63 step %c1 {
        %v = memref.load %r[%i] : memref<64xf32>
        %w = arith.addf %v, %one : f32
        %next = arith.addi %i, %c1 : index
        memref.store %w, %p[%next] : memref<64xf32>
      }
      return
    }"""
    with new_context():
        module = ir.Module.parse(source)
        module.operation.attributes[SCRATCH_ATTRIBUTE] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), 0
        )
        to_llvm(module, verify=True)
        native = native_function(module)
    first, second = np.zeros(64, F32), np.zeros(64, F32)
    guarded.call(native, [np.array(same)], [first, second])
    ones = np.ones(64, F32)
    assert np.array_equal(first, np.arange(1, 65) if same else ones)
    assert np.array_equal(second, ones if same else [1, *[2] * 63])


def test_elementwise_loops_use_the_widest_vectors() -> None:
    pytest.importorskip("capstone")
    pytest.importorskip("elftools")
    if named_target().vector_bytes != 64:
        pytest.skip("names the registers of AVX-512")
    body = "%s = arith.addf %x0, %x1 : f32\n linalg.yield %s : f32"
    with new_context():
        module = ir.Module.parse(elementwise("4096", 2, body))
        put_on_memory(module, verify=True)
        to_llvm(module)
        text = assembly(module)
    assert re.search(r"vaddps zmm\d+, zmm\d+, ", text)
    assert not re.search(r"vaddss", text)  # no run-time overlap check, hence no scalar version of the loop


def test_functions_of_vectors_share_their_tables_with_the_wrappers() -> None:
    """LLVM makes tables, 0.6 MB each, for every other setting; only its vectorizer reads this one."""
    body = "%s = arith.addf %x0, %x1 : f32\n linalg.yield %s : f32"
    assert "prefer_vector_width" not in lowered(vectors("4096"))
    assert "prefer_vector_width" in lowered(elementwise("4096", 2, body))


def vectors(size: str) -> str:
    """A loop over vectors, as the scheduler leaves one."""
    return f"""
    func.func @main(%a: tensor<{size}xf32>) -> tensor<{size}xf32> {{
      %zero = arith.constant 0 : index
      %step = arith.constant 16 : index
      %end = arith.constant {size} : index
      %pad = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<{size}xf32>
      %r = scf.for %i = %zero to %end step %step iter_args(%t = %e) -> tensor<{size}xf32> {{
        %v = vector.transfer_read %a[%i], %pad {{in_bounds = [true]}} : tensor<{size}xf32>, vector<16xf32>
        %s = arith.addf %v, %v : vector<16xf32>
        %w = vector.transfer_write %s, %t[%i] {{in_bounds = [true]}} : vector<16xf32>, tensor<{size}xf32>
        scf.yield %w : tensor<{size}xf32>
      }}
      return %r : tensor<{size}xf32>
    }}"""
