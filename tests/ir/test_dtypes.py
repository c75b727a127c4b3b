"""Every dtype but complex ones on the whole way: literals, texts, arguments, results, files, gradients."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import mind_mlir
from mind_mlir import ArgumentError, TensorType
from mind_mlir.builders.builder import Builder
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.elements import holds_all
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.types import DType
from mind_mlir.ops.conversion import cast_array
from mind_mlir.ops.numbers import widened
from mind_mlir.ops.opdef import ALL_FLOATS, ALL_REAL, BOOL
from mind_mlir.passes.autodiff import differentiate
from mind_mlir.passes.canonicalize import canonicalize
from mind_mlir.tools.cli.inputs import InputSpecs, make_inputs
from mind_mlir.tools.comparison import first_difference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value

DTYPES = BOOL + ALL_REAL
EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=str)
NARROW = tuple(dtype for dtype in ALL_FLOATS if dtype.bits < 32)
NUMBERS = [[0, 1, 1], [1, 0, 1]]


def program(dtype: DType, shape: tuple[int, ...], body: Callable[[Builder, Value], Value]) -> Module:
    """Return a PTIR module whose function `main` has one parameter `x`."""
    builder = Builder(profile="ptir-v0.4")
    x = builder.parameter(TensorType(dtype, shape), "x")
    return Module(Functions((builder.function("main", [body(builder, x)]),)), "ptir-v0.4")


def flipped(dtype: DType, shape: tuple[int, ...] = (2, 3)) -> Module:
    """Return a program that negates its argument."""
    return program(dtype, shape, lambda builder, x: builder.emit("Not" if dtype is DType.I1 else "Neg", x))


def numbers(dtype: DType) -> Array:
    return np.array(NUMBERS).astype(dtype.numpy)


@EVERY_DTYPE
def test_arguments_in_any_form_give_what_the_interpreter_gives(dtype: DType) -> None:
    module, x = flipped(dtype), numbers(dtype)
    executable = mind_mlir.compile(module)
    (expected,) = mind_mlir.interpret(module, {"x": x})
    spread = np.repeat(x, 2, axis=1)[:, ::2]
    assert not spread.flags.c_contiguous
    given = np.empty_like(x)
    results = [executable(x)[0], executable(x=spread)[0], executable(np.asfortranarray(x))[0]]
    executable(x, out=given)
    for result in (*results, given):
        assert result.dtype == dtype.numpy
        assert result.tobytes() == expected.tobytes()
    assert first_difference(module, {"x": x}) is None


@EVERY_DTYPE
def test_scalars_of_python_and_numpy_are_taken(dtype: DType) -> None:
    executable = mind_mlir.compile(flipped(dtype, ()))
    one: Any = dtype.numpy.type(1)
    for given in (True if dtype is DType.I1 else 1, one, np.asarray(one)):
        (result,) = executable(given)
        assert result.dtype == dtype.numpy
        assert result.shape == ()


@EVERY_DTYPE
def test_another_dtype_is_E6103_in_our_words(dtype: DType) -> None:  # noqa: N802 -- the code as it is spelled
    given = np.zeros((2, 3), np.complex64)
    with pytest.raises(ArgumentError) as caught:
        mind_mlir.compile(flipped(dtype))(given)
    (finding,) = caught.value.diagnostics
    assert finding.code == "E6103"
    assert finding.message == f"argument 'x' has dtype complex64, expected {dtype.numpy_name}"
    assert str(TensorType(dtype, (2, 3))) in finding.notes[0]
    assert finding.help is not None
    assert finding.help.startswith("convert it: x.astype(")


def test_types_of_ml_dtypes_are_spelled_as_python_has_them() -> None:
    assert DType.BF16.numpy_name == "ml_dtypes.bfloat16"
    assert DType.F16.numpy_name == "float16"
    for dtype in DTYPES:
        package, _, name = dtype.numpy_name.rpartition(".")
        assert np.dtype(getattr(ml_dtypes, name) if package else name) == dtype.numpy


@EVERY_DTYPE
def test_literals_are_what_they_were_in_every_form(dtype: DType) -> None:
    literal = TensorLiteral.of(NUMBERS, dtype)
    assert literal == TensorLiteral.of(numbers(dtype), dtype)
    assert literal == pickle.loads(pickle.dumps(literal))  # noqa: S301 -- of our own making

    def body(builder: Builder, x: Value) -> Value:
        held = builder.constant(NUMBERS, dtype)
        return builder.emit("Select", builder.emit("Compare", x, held, op="Equal"), x, held)

    module = program(dtype, (2, 3), body)
    x = np.ones((2, 3)).astype(dtype.numpy)
    (result,) = mind_mlir.compile(module)(x)
    (expected,) = mind_mlir.interpret(module, {"x": x})
    np.testing.assert_array_equal(widened(result), widened(expected))
    np.testing.assert_array_equal(widened(result), widened(numbers(dtype)))


@EVERY_DTYPE
def test_constants_fold_to_what_compiled_code_gives(dtype: DType) -> None:
    opcode = "Xor" if dtype is DType.I1 else "Maximum"
    others = np.array([[1, 1, 0], [0, 0, 1]]).astype(dtype.numpy)

    def body(builder: Builder, x: Value) -> Value:
        folded = builder.emit(opcode, builder.constant(NUMBERS, dtype), builder.constant(others, dtype))
        return builder.emit(opcode, x, folded)

    module = program(dtype, (2, 3), body)
    x = np.zeros((2, 3)).astype(dtype.numpy)
    operations = canonicalize(module).functions["main"].entry.operations
    if dtype is not DType.I1:
        assert [operation.opcode for operation in operations] == ["ConstTensor", opcode]
    (result,) = mind_mlir.compile(module)(x)
    (expected,) = mind_mlir.interpret(module, {"x": x})
    np.testing.assert_array_equal(widened(result), widened(expected))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_large_literals_of_narrow_floats_keep_their_bits(dtype: DType) -> None:
    unsigned = np.uint8 if dtype.itemsize == 1 else np.uint16
    data: Array = np.arange(1 << 20, dtype=np.uint32).astype(unsigned).view(dtype.numpy)
    module = program(
        dtype,
        (1,),
        lambda builder, x: builder.emit(
            "Select",
            builder.constant(np.ones(data.shape, bool), DType.I1),
            builder.constant(data, dtype),
            builder.emit("BroadcastTo", x, result_shape=data.shape),
        ),
    )
    (result,) = mind_mlir.compile(module)(np.zeros(1, dtype.numpy))
    assert result.tobytes() == data.tobytes()


# Integers of 4 bits


@pytest.mark.parametrize("dtype", [DType.SI4, DType.UI4], ids=str)
def test_the_upper_half_of_a_byte_does_not_matter(dtype: DType) -> None:
    every: Array = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    wide = program(dtype, (256,), lambda builder, x: builder.emit("Cast", x, dtype=DType.SI32))
    (result,) = mind_mlir.compile(wide)(every)
    np.testing.assert_array_equal(result, every.astype(np.int32))
    ordered = program(dtype, (256,), lambda builder, x: builder.emit("Maximum", x, builder.emit("Neg", x)))
    (result,) = mind_mlir.compile(ordered)(every)
    (expected,) = mind_mlir.interpret(ordered, {"x": every})
    assert result.tobytes() == expected.tobytes()
    (same,) = mind_mlir.compile(program(dtype, (256,), lambda _, x: x))(every)
    np.testing.assert_array_equal(same, every)


def test_literals_of_4_bits_are_equal_whatever_their_bytes_hold_besides() -> None:
    type_ = TensorType(DType.SI4, (2,))
    assert TensorLiteral(type_, b"\xff\x08") == TensorLiteral(type_, b"\x0f\xf8")
    assert TensorLiteral(type_, b"\xff\x08") == TensorLiteral.of([-1, -8], DType.SI4)


# Files


@EVERY_DTYPE
def test_arrays_come_from_the_files_that_numpy_writes(dtype: DType, tmp_path: Path) -> None:
    module = flipped(dtype)
    interface = interface_of(entry_function(module))
    array, single, together = numbers(dtype), tmp_path / "x.npy", tmp_path / "all.npz"
    np.save(single, array)
    np.savez(together, x=array)
    for spec in (f"x={single}", str(together), f"x={array.astype(int).tolist()}".replace("'", "")):
        if dtype is DType.I1 and spec.startswith("x=["):
            continue  # truth values are spelled true and false
        (read,) = make_inputs(module, interface, InputSpecs.parse((spec,)), 0).values()
        assert read.dtype == dtype.numpy
        np.testing.assert_array_equal(widened(read), widened(array))


def test_bytes_without_a_type_are_no_numbers_of_others(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, numbers(DType.BF16))
    for dtype in (DType.F16, DType.SI16, DType.FP8_E4M3):
        module = flipped(dtype)
        with pytest.raises(ArgumentError) as caught:
            make_inputs(module, interface_of(entry_function(module)), InputSpecs.parse((f"x={path}",)), 0)
        assert [finding.code for finding in caught.value.diagnostics] == ["E6103"]


@EVERY_DTYPE
@pytest.mark.parametrize("fill", ["random", "zeros", "ones"])
def test_inputs_are_filled(dtype: DType, fill: str) -> None:
    module = flipped(dtype)
    interface = interface_of(entry_function(module))
    (array,) = make_inputs(module, interface, InputSpecs.parse((f"x={fill}",)), 0).values()
    mind_mlir.compile(module)(array)


# Gradients


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_gradients_of_narrow_floats_are_those_of_f32_rounded(dtype: DType) -> None:
    def body(builder: Builder, x: Value) -> Value:
        # All of it is exact in each of the formats.
        return builder.emit("Mul", x, builder.emit("Maximum", x, builder.emit("Neg", x)))

    x = np.array([0.5, -1.5, 2.0, 0.25]).astype(dtype.numpy)
    results = {}
    for each in (dtype, DType.F32):
        gradient = differentiate(program(each, (4,), body))
        results[each] = mind_mlir.compile(gradient.module)(x.astype(each.numpy))[-1]
    np.testing.assert_array_equal(results[dtype].astype(np.float32), results[DType.F32])


# Loops, and arrays that do not fit a cache

LOOP = """\
func @main(%x: tensor<T[7, 5]>, %n: tensor<i64[]>, %s: tensor<T[]>) -> (tensor<T[7, 5]>, tensor<T[]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  %step = ConstTensor {dtype=T, shape=[], value=1} : tensor<T[]>
  %i, %y, %t = While (%zero, %x, %s) : (tensor<i64[]>, tensor<T[7, 5]>, tensor<T[]>) {
  ^condition(%a: tensor<i64[]>, %b: tensor<T[7, 5]>, %c: tensor<T[]>):
    %less = Compare (%a, %n) {op=Less} : tensor<i1[]>
    yield %less, %a, %b, %c
  ^body(%d: tensor<i64[]>, %e: tensor<T[7, 5]>, %f: tensor<T[]>):
    %next = Add (%d, %one) : tensor<i64[]>
    %sum = Add (%f, %step) : tensor<T[]>
    %row = BroadcastTo (%sum) {result_shape=[7, 5]} : tensor<T[7, 5]>
    %all = Add (%e, %row) : tensor<T[7, 5]>
    yield %next, %all, %sum
  }
  return %y, %t
}
"""


@pytest.mark.parametrize("dtype", ALL_REAL, ids=str)
def test_loops_carry_tensors_and_scalars(dtype: DType) -> None:
    module = replace(mind_mlir.parse(LOOP.replace("T[", f"{dtype}[").replace("=T,", f"={dtype},")),
                     profile="ptir-v0.4")  # fmt: skip
    x = np.arange(35).reshape(7, 5).astype(dtype.numpy)
    arguments = {"x": x, "n": np.asarray(9), "s": np.ones((), dtype.numpy)}
    expected = mind_mlir.interpret(module, arguments)
    for result, wanted in zip(mind_mlir.compile(module)(**arguments), expected, strict=True):
        np.testing.assert_array_equal(widened(result), widened(wanted))


@pytest.mark.parametrize("name", ["si4", "ui8", "si16", "ui64", "fp8_e5m2", "bf16", "f16"])
def test_large_arrays_of_several_widths(name: str) -> None:
    """What is streamed past the cache and shared by threads, with vectors of different widths in one loop."""
    dtype = DType(name)

    def body(builder: Builder, x: Value) -> Value:
        wide = builder.emit("Cast", builder.emit("Add", x, x), dtype=DType.F64)
        return builder.emit("Cast", builder.emit("Neg", wide), dtype=dtype)

    shape = (2053, 1031)
    module = program(dtype, shape, body)
    x = np.random.default_rng(5).integers(0, 4, shape).astype(dtype.numpy)
    (result,) = mind_mlir.compile(module)(x)
    (expected,) = mind_mlir.interpret(module, {"x": x})
    np.testing.assert_array_equal(widened(result), widened(expected))


@pytest.mark.parametrize("dtype", ALL_FLOATS, ids=str)
def test_the_layout_of_a_float_is_that_of_its_numpy_type(dtype: DType) -> None:
    finfo: Any = ml_dtypes.finfo
    layout, known = dtype.format, finfo(dtype.numpy)
    assert (layout.exponent, layout.mantissa) == (known.nexp, known.nmant)
    limits = (layout.greatest, layout.smallest_normal, layout.smallest_subnormal)
    assert limits == (float(known.max), float(known.smallest_normal), float(known.smallest_subnormal))
    with np.errstate(over="ignore", invalid="ignore"):
        assert layout.infinite == bool(np.isinf(np.asarray(np.inf).astype(dtype.numpy)))


@pytest.mark.parametrize("narrow", [dtype for dtype in DType if dtype.bits <= 16], ids=str)
def test_a_dtype_holds_all_numbers_of_another_where_they_come_back(narrow: DType) -> None:
    numbers = np.arange(2**narrow.bits).astype(f"u{narrow.itemsize}")
    numbers = numbers.view(narrow.numpy) if narrow.bits >= 8 else numbers.astype(narrow.numpy)
    for wide in DTYPES:
        with np.errstate(all="ignore"):
            back = cast_array(cast_array(numbers, wide), narrow).astype(np.float64)
            comes_back = np.array_equal(back, numbers.astype(np.float64), equal_nan=True)
        assert comes_back or not holds_all(wide, narrow), wide
        if narrow.is_float and wide.is_float:
            assert holds_all(wide, narrow) == comes_back, wide
