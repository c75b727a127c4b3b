"""Canonical form: ordering, folding, pruning, renumbering; idempotent, meaning preserved."""

from __future__ import annotations

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, DType, Module, TensorType, canonicalize, interpret, parse
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.passes.canonical.folding import MAX_FOLDED_ELEMENTS
from mind_mlir.passes.canonicalize import canonicalize_with_map

F32 = TensorType(DType.F32, (2, 3))


def opcodes(module: Module) -> list[str]:
    return [op.opcode for op in module.operations]


def test_operands_of_commutative_operations_are_ordered() -> None:
    b = Builder()
    x, y = b.input("x", F32), b.input("y", F32)
    add, mul, sub = b.emit("Add", y, x), b.emit("Mul", y, x), b.emit("Sub", y, x)
    module = canonicalize(b.build([add, mul, sub]))
    assert [op.operands for op in module.operations[2:]] == [(0, 1), (0, 1), (1, 0)]


def test_inputs_come_first_and_ids_are_dense() -> None:
    b = Builder(next_id=40)
    x = b.input("x", F32)
    e = b.emit("Exp", x)
    y = b.input("y", F32)
    module, renamed = canonicalize_with_map(b.build([b.emit("Add", e, y)]))
    assert opcodes(module) == ["Input", "Input", "Exp", "Add"]
    assert [op.value_id for op in module.operations] == [0, 1, 2, 3]
    assert dict(renamed) == {x.id: 0, y.id: 1, e.id: 2, e.id + 2: 3}


def test_dead_operations_go_and_unused_inputs_stay() -> None:
    b = Builder()
    x, _unused = b.input("x", F32), b.input("unused", F32)
    b.emit("Exp", b.emit("Exp", x))
    module = canonicalize(b.build([x]))
    assert opcodes(module) == ["Input", "Input"]


def test_keep_protects_a_value() -> None:
    b = Builder()
    x = b.input("x", F32)
    kept = b.emit("Exp", x)
    module, renamed = canonicalize_with_map(b.build([x]), keep=[kept.id])
    assert opcodes(module) == ["Input", "Exp"]
    assert renamed[kept.id] == 1


def test_scalar_constants_fold_to_the_short_form() -> None:
    b = Builder()
    two, three = b.constant(2.0, DType.F32), b.constant(3.0, DType.F32)
    (constant,) = canonicalize(b.build([b.emit("Mul", two, b.emit("Add", two, three))])).operations
    assert constant.opcode == "ConstF32"
    assert constant.attributes["value"] == TensorLiteral.of(10.0, DType.F32)


def test_integers_fold_with_wrap_around() -> None:
    b = Builder()
    largest = b.constant(2**63 - 1, DType.SI64)
    (constant,) = canonicalize(b.build([b.emit("Add", largest, b.constant(1, DType.SI64))])).operations
    assert constant.attributes["value"] == TensorLiteral.of(-(2**63), DType.SI64)


@pytest.mark.parametrize(
    ("opcode", "values"), [("Mul", (3e38, 10.0)), ("Sub", (np.inf, np.inf)), ("Mul", (0.0, np.inf))]
)
def test_floating_point_exceptions_are_not_folded(opcode: str, values: tuple[float, float]) -> None:
    b = Builder()
    left, right = (b.constant(value, DType.F32) for value in values)
    assert opcodes(canonicalize(b.build([b.emit(opcode, left, right)])))[-1] == opcode


def test_transcendental_functions_are_not_folded() -> None:
    b = Builder()
    module = canonicalize(b.build([b.emit("Exp", b.constant(1.0, DType.F64))]))
    assert opcodes(module) == ["ConstF64", "Exp"]


def test_out_of_range_index_is_not_folded() -> None:
    b = Builder()
    table = b.constant([1.0, 2.0], DType.F32)
    module = canonicalize(b.build([b.emit("Gather", table, b.constant([5], DType.SI64))]))
    assert opcodes(module)[-1] == "Gather"


def test_large_constants_are_not_folded() -> None:
    b = Builder()
    large = b.constant(np.zeros(MAX_FOLDED_ELEMENTS + 1), DType.F32)
    module = canonicalize(b.build([b.emit("Add", large, large)]))
    assert opcodes(module) == ["ConstTensor", "Add"]


def test_small_inputs_do_not_fold_into_large_constants() -> None:
    b = Builder()
    small = b.constant(np.ones((8, 1)), DType.F32)
    module = canonicalize(b.build([b.emit("Add", small, b.emit("Transpose", small, permutation=(1, 0)))]))
    assert opcodes(module)[-1] == "Add"


def mixed_module() -> Module:
    b = Builder()
    x = b.input("x", F32)
    scale = b.emit("Add", b.constant(2.0, DType.F32), b.constant(0.5, DType.F32))
    y = b.input("y", F32)
    b.emit("Exp", y)
    return b.build([b.emit("Mul", b.emit("Add", y, x), scale), x])


def test_idempotent_and_meaning_preserving() -> None:
    module = mixed_module()
    once = canonicalize(module)
    assert canonicalize(once) == once
    arguments = {"x": np.ones((2, 3), np.float32), "y": np.full((2, 3), 2, np.float32)}
    for before, after in zip(interpret(module, arguments), interpret(once, arguments), strict=True):
        assert before.tobytes() == after.tobytes()
    assert mind_mlir.canonicalize is canonicalize


def test_sources_survive() -> None:
    source = mind_mlir.parse(
        '%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Exp (%0) : tensor<f32[2]>\noutputs: %1\n'
    )
    location = canonicalize(source).operations[1].location
    assert location is not None
    assert location.line == 2


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (
            "Sum (%0) {axes=[-1, 0]} : tensor<f32[3]>",
            "Sum (%0) {axes=[0, 2], keepdims=false} : tensor<f32[3]>",
        ),
        (
            "Mean (%0) {axes=[2, -2], keepdims=true} : tensor<f32[2, 1, 1]>",
            "Mean (%0) {axes=[1, 2], keepdims=true} : tensor<f32[2, 1, 1]>",
        ),
        ("Sum (%0) {axes=[]} : tensor<f32[]>", "Sum (%0) {axes=[], keepdims=false} : tensor<f32[]>"),
        (
            "Reshape (%0) {new_shape=[4, -1]} : tensor<f32[4, 6]>",
            "Reshape (%0) {new_shape=[4, 6]} : tensor<f32[4, 6]>",
        ),
        (
            "ExpandDims (%0) {axes=[2, 0]} : tensor<f32[1, 2, 1, 3, 4]>",
            "ExpandDims (%0) {axes=[0, 2]} : tensor<f32[1, 2, 1, 3, 4]>",
        ),
    ],
)
def test_attributes_are_in_normal_form(written: str, canonical: str) -> None:
    text = f'%0 = Input {{name="x"}} : tensor<f32[2, 3, 4]>\n%1 = {written}\noutputs: %1\n'
    assert str(canonicalize(parse(text)).operations[1]) == f"%1 = {canonical}"
