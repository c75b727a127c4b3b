"""`first_difference` finds a rule that is wrong on purpose, names its operation, and is quiet otherwise."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir import ArgumentError, Builder, DType, Module, TensorType, VerificationError, parse
from mind_mlir.ir.module import Functions
from mind_mlir.ops import registry
from mind_mlir.tools.comparison import Difference, first_difference

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext

F32, F64 = DType.F32, DType.F64


@pytest.fixture
def sabotage(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[LoweringContext, Any], Any]], None]:
    """Return what puts a wrong rule after the linalg rule of an opcode, until the end of the test."""

    def install(opcode: str, wrong: Callable[[LoweringContext, Any], Any]) -> None:
        record = registry.by_opcode()[opcode]
        lower = record.lower
        assert lower is not None
        broken = replace(record, lower=lambda context: wrong(context, lower(context)))
        table = MappingProxyType({**registry.by_mnemonic(), record.mnemonic: broken})
        monkeypatch.setattr("mind_mlir.lowering.to_linalg.by_mnemonic", lambda: table)

    return install


def off_by_one(context: LoweringContext, value: Any) -> Any:
    """Add one to every element."""
    arith, one = context.mlir.arith, context.scalar(1, context.result_type.dtype)
    add = arith.addf if context.result_type.dtype.is_float else arith.addi
    return context.elementwise(lambda element: add(element, one), [value], context.result_type)


def negated(context: LoweringContext, value: Any) -> Any:
    """Negate every element; zeros, infinities and NaNs change their signs only."""
    return context.elementwise(context.mlir.arith.negf, [value], context.result_type)


def constant(number: float) -> Callable[[LoweringContext, Any], Any]:
    return lambda context, _: context.filled(context.result_type, number)


def network() -> Module:
    """A small network: MatMul, Add, Relu, Exp, Sum."""
    b = Builder()
    x, w = b.input("x", TensorType(F32, (5, 3))), b.input("w", TensorType(F32, (3, 7)))
    bias = b.input("b", TensorType(F32, (7,)))
    hidden = b.emit("Relu", b.emit("Add", b.emit("MatMul", x, w), bias))
    return b.build([b.emit("Sum", b.emit("Exp", hidden), axes=(1,))])


def network_arguments() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {
        "x": rng.standard_normal((5, 3), np.float32),
        "w": rng.standard_normal((3, 7), np.float32),
        "b": rng.standard_normal(7, np.float32),
    }


def unary(
    opcode: str, dtype: DType, values: list[float], **attributes: Any
) -> tuple[Module, dict[str, Array]]:
    b = Builder()
    x = b.input("x", TensorType(dtype, (len(values),)))
    return b.build([b.emit(opcode, x, **attributes)]), {"x": np.array(values, dtype.numpy)}


def test_a_healthy_module_has_none() -> None:
    assert first_difference(network(), network_arguments()) is None


@pytest.mark.parametrize("opcode", ["MatMul", "Add", "Relu", "Exp", "Sum"])
def test_the_broken_operation_is_named(sabotage: Any, opcode: str) -> None:
    sabotage(opcode, off_by_one)
    module = network()
    difference = first_difference(module, network_arguments())
    assert difference is not None
    assert difference.operation.opcode == opcode
    assert difference.operation in module.operations
    assert difference.index == (0,) * len(difference.index)
    assert f"%{difference.operation.value_id} = {opcode} differs at [0" in str(difference)


def test_the_first_of_several_is_named(sabotage: Any) -> None:
    sabotage("Exp", off_by_one)
    b = Builder()
    x = b.input("x", TensorType(F64, (3,)))
    module = b.build([b.emit("Exp", b.emit("Exp", b.emit("Neg", x)))])
    difference = first_difference(module, {"x": np.zeros(3)})
    assert difference is not None
    assert difference.operation.value_id == 2
    assert (difference.compiled, difference.interpreted) == (2.0, 1.0)


def test_the_first_wrong_element_is_named(sabotage: Any) -> None:
    def one_wrong(context: LoweringContext, value: Any) -> Any:
        mlir = context.mlir
        index = mlir.ir.IndexType.get()
        at = [mlir.arith.constant(index, 1), mlir.arith.constant(index, 2)]
        return mlir.tensor.insert(context.scalar(9, DType.SI64), value, at)

    sabotage("Add", one_wrong)
    b = Builder()
    x = b.input("x", TensorType(DType.SI64, (2, 3)))
    difference = first_difference(b.build([b.emit("Add", x, x)]), {"x": np.zeros((2, 3), np.int64)})
    assert isinstance(difference, Difference)
    assert difference.index == (1, 2)
    assert (difference.compiled, difference.interpreted) == (9, 0)


def test_an_operation_that_no_output_needs_is_not_looked_at(sabotage: Any) -> None:
    sabotage("Exp", off_by_one)
    b = Builder()
    x = b.input("x", TensorType(F64, (3,)))
    b.emit("Exp", x)
    assert first_difference(b.build([b.emit("Neg", x)]), {"x": np.zeros(3)}) is None


def test_the_location_comes_from_the_source(sabotage: Any) -> None:
    sabotage("Exp", off_by_one)
    text = '%0 = Input {name="x"} : tensor<f64[2]>\n%1 = Exp (%0) : tensor<f64[2]>\noutputs: %1\n'
    difference = first_difference(parse(text, "net.ir"), {"x": np.zeros(2)})
    assert difference is not None
    assert str(difference.operation.location) == "net.ir:2:1"


# Numbers that compare strangely

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("opcode", ["Neg", "Relu", "Exp", "Log", "Reciprocal", "Sum", "Mean"])
@pytest.mark.parametrize(
    "values",
    [[NAN, 1.0], [INF, 1.0], [-INF, INF], [0.0, -0.0], [1e30, -1e30, 1.0], [89.0, 710.0, -750.0], [NAN]],
)
def test_awkward_values_are_no_differences(opcode: str, dtype: DType, values: list[float]) -> None:
    attributes = {"axes": (), "keepdims": False} if opcode in ("Sum", "Mean") else {}
    assert first_difference(*unary(opcode, dtype, values, **attributes)) is None


@pytest.mark.parametrize(
    ("opcode", "values", "wrong"),
    [
        ("Exp", [NAN], constant(1)),
        ("Exp", [0.0], constant(NAN)),
        ("Exp", [INF], constant(1)),
        ("Exp", [INF], constant(-INF)),
        ("Exp", [1000.0], constant(3e38)),
        ("Log", [0.0], constant(INF)),
        ("Log", [0.0], constant(NAN)),
        ("Neg", [INF], constant(INF)),
        ("Neg", [0.0], constant(0.0)),
        ("Relu", [0.0], constant(-0.0)),
        ("Reciprocal", [-0.0], negated),
        ("Sum", [INF, 1.0], constant(1)),
        ("Sum", [INF, 1.0], constant(NAN)),
        ("Sum", [NAN, 1.0], constant(1)),
        ("Sum", [INF, -INF], constant(0)),
        ("Sum", [1.0, 2.0], constant(INF)),
        ("Sum", [1.0, 2.0], constant(NAN)),
        ("Mean", [-INF, 1.0], constant(INF)),
    ],
)
def test_wrong_awkward_values_are_found(
    sabotage: Any, opcode: str, values: list[float], wrong: Callable[[LoweringContext, Any], Any]
) -> None:
    sabotage(opcode, wrong)
    attributes = {"axes": (), "keepdims": False} if opcode in ("Sum", "Mean") else {}
    difference = first_difference(*unary(opcode, F32, values, **attributes))
    assert difference is not None
    assert difference.operation.opcode == opcode


@pytest.mark.parametrize("compiled", [INF, -INF, NAN, 0.0, 3e38])
def test_a_sum_that_may_overflow_on_the_way_is_no_difference(sabotage: Any, compiled: float) -> None:
    """What 3e38 + 3e38 - 3e38 - 3e38 is depends on the order, which is the compiler's choice."""
    sabotage("Sum", constant(compiled))
    values = [3e38, 3e38, -3e38, -3e38]
    assert first_difference(*unary("Sum", F32, values, axes=(), keepdims=False)) is None


def test_a_sum_that_cancels_may_be_off_by_its_terms(sabotage: Any) -> None:
    sabotage("Sum", constant(0.05))
    arguments = unary("Sum", F32, [1e5, -1e5, 1e-3], axes=(), keepdims=False)
    assert first_difference(*arguments) is None
    sabotage("Sum", constant(0.5))
    assert first_difference(*arguments) is not None


def test_exact_operations_may_not_be_off_by_one_bit(sabotage: Any) -> None:
    next_up = float(np.nextafter(np.float32(3), np.float32(4)))
    sabotage("Neg", constant(-next_up))
    difference = first_difference(*unary("Neg", F32, [3.0]))
    assert difference is not None
    assert difference.compiled == np.float32(-next_up)


# Misuse


def test_the_module_is_verified_first() -> None:
    with pytest.raises(VerificationError):
        first_difference(parse("%0 = Exp (%7) : tensor<f32[]>\noutputs: %0\n"), {})


def test_the_arguments_are_checked() -> None:
    with pytest.raises(ArgumentError):
        first_difference(network(), {})


def test_modules_of_inputs_alone() -> None:
    b = Builder()
    x = b.input("x", TensorType(F32, (2,)))
    assert first_difference(b.build([x, x]), {"x": np.ones(2, np.float32)}) is None


# Complex numbers


def complex_module(opcode: str, dtype: DType) -> Module:
    b = Builder(profile="ptir-v0.4")
    x = b.parameter(TensorType(dtype, (4,)), "x")
    return Module(Functions((b.function("main", [b.emit(opcode, x)]),)), "ptir-v0.4")


COMPLEX_VALUES = [1 + 2j, complex(NAN, -0.0), complex(-INF, 1), complex(0.0, INF)]


@pytest.mark.parametrize("dtype", [DType.CF32, DType.CF64])
@pytest.mark.parametrize("opcode", ["Neg", "Exp", "Log", "Tanh", "Reciprocal"])
def test_complex_numbers_are_no_differences(opcode: str, dtype: DType) -> None:
    values = np.array(COMPLEX_VALUES, dtype.numpy)
    assert first_difference(complex_module(opcode, dtype), {"x": values}) is None


@pytest.mark.parametrize("opcode", ["Neg", "Exp"])
@pytest.mark.parametrize("value", [1 + 2j, complex(NAN, 1)])
def test_a_wrong_part_of_a_complex_number_is_found(sabotage: Any, opcode: str, value: complex) -> None:
    def wrong(context: LoweringContext, result: Any) -> Any:
        complex_, dtype = context.mlir.complex_, context.result_type.dtype
        zero = context.scalar(0, DType.F64)
        part = complex_.re
        return context.elementwise(
            lambda z: complex_.create_(context.element(dtype), part(z), zero), [result], context.result_type
        )

    sabotage(opcode, wrong)
    values = np.array([0, 0, value, 0], np.complex128)
    difference = first_difference(complex_module(opcode, DType.CF64), {"x": values})
    assert difference is not None
    assert difference.index[0] in (0, 2)


def complex_products(size: int) -> Module:
    b = Builder(profile="ptir-v0.4")
    x, y = (b.parameter(TensorType(DType.CF32, (3, size)), name) for name in "xy")
    lists: dict[str, Any] = {"contract_lhs": (1,), "contract_rhs": (1,)}
    product = b.emit("DotGeneral", x, y, **lists, accum_dtype=DType.CF32, out_dtype=DType.CF32)
    return Module(Functions((b.function("main", [product]),)), "ptir-v0.4")


def test_complex_products_may_differ_by_what_summing_them_rounds(sabotage: Any) -> None:
    rng = np.random.default_rng(8)
    real, imaginary = rng.standard_normal((2, 2, 3, 1000)) * 1e4
    x, y = (real + 1j * imaginary).astype(np.complex64)
    module = complex_products(1000)
    assert first_difference(module, {"x": x, "y": y}) is None

    def wrong(context: LoweringContext, result: Any) -> Any:
        number = context.arithmetic(DType.CF32)
        return context.elementwise(
            lambda z: number.multiply(z, number.constant(1 + 1e-3j)), [result], context.result_type
        )

    sabotage("DotGeneral", wrong)
    # Of as many as that, rounding may hide so little.
    found = first_difference(complex_products(10), {"x": x[:, :10].copy(), "y": y[:, :10].copy()})
    assert found is not None
