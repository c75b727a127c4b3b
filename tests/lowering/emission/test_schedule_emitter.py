"""The emitter's index arithmetic: known indices cost no operations, and the others compute the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mind_mlir.lowering.emission.emitter import Emitter
from mind_mlir.mlir.bindings import ir, new_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = """
func.func @main(%x: index, %y: index, %t: tensor<40xf32>) -> tensor<40xf32> {
  return %t : tensor<40xf32>
}"""


@pytest.fixture
def function() -> Iterator[ir.Operation]:
    """A function to emit into, at its end, with two indices and a tensor as its arguments."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(SOURCE)
        main = module.body.operations[0]
        with ir.InsertionPoint(main.regions[0].blocks[0].operations[0]):
            yield main


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y,
    "modulo": lambda x, y: x % y,
    "minimum": min,
}


def emitted(function: ir.Operation) -> list[str]:
    """Return the names of the operations of ``function`` but constants and the end."""
    names = [op.operation.name for op in function.regions[0].blocks[0].operations]
    return [name for name in names if name not in ("arith.constant", "func.return")]


@pytest.mark.parametrize("name", OPERATIONS)
def test_known_indices_cost_nothing(function: ir.Operation, name: str) -> None:
    emit = getattr(Emitter(function), name)
    for left in (0, 1, 7, 12, 64):
        for right in (1, 3, 8, 64):
            assert emit(left, right) == OPERATIONS[name](left, right)
    assert emitted(function) == []


@pytest.mark.parametrize(
    ("name", "right", "result"),
    [("add", 0, "x"), ("sub", 0, "x"), ("mul", 1, "x"), ("floordiv", 1, "x"), ("modulo", 1, 0)],
)
def test_neutral_indices_cost_nothing(function: ir.Operation, name: str, right: int, result: Any) -> None:
    x = function.regions[0].blocks[0].arguments[0]
    assert getattr(Emitter(function), name)(x, right) == (x if result == "x" else result)
    assert emitted(function) == []


def test_a_sum_with_a_known_zero_on_the_left(function: ir.Operation) -> None:
    x = function.regions[0].blocks[0].arguments[0]
    assert Emitter(function).add(0, x) == x
    assert emitted(function) == []


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("add", "arith.addi"),
        ("sub", "arith.subi"),
        ("mul", "arith.muli"),
        ("floordiv", "arith.divui"),
        ("modulo", "arith.remui"),
        ("minimum", "arith.minui"),
    ],
)
@pytest.mark.parametrize("right", [2, 3, 64])
def test_other_indices_are_computed(function: ir.Operation, name: str, operation: str, right: int) -> None:
    x = function.regions[0].blocks[0].arguments[0]
    value = getattr(Emitter(function), name)(x, right)
    assert value.owner.name == operation
    left, other = value.owner.operands
    assert left == x
    assert ir.IntegerAttr(other.owner.attributes["value"]).value == right


@pytest.mark.parametrize("name", ["add", "sub", "minimum"])
@pytest.mark.parametrize("known", [0, 1, 5])
def test_known_and_computed_indices_together(function: ir.Operation, name: str, known: int) -> None:
    emitter = Emitter(function)
    x, y, _ = function.regions[0].blocks[0].arguments
    assert list(getattr(emitter, name)(x, y).owner.operands) == [x, y]
    if known and name != "minimum":
        first, second = getattr(emitter, name)(known, y).owner.operands
        assert (ir.IntegerAttr(first.owner.attributes["value"]).value, second) == (known, y)


def test_constants_are_shared(function: ir.Operation) -> None:
    emitter = Emitter(function)
    assert emitter.index(7) == emitter.index(7)
    assert emitter.index(7) != emitter.index(8)
    names = [op.operation.name for op in function.regions[0].blocks[0].operations]
    assert names == ["arith.constant"] * 2 + ["func.return"]


@pytest.mark.parametrize(
    ("bounds", "trips"),
    [
        ((0, 0, 1), "none"),
        ((5, 3, 1), "none"),
        ((0, 1, 1), "one"),
        ((3, 7, 4), "one"),
        ((3, 6, 4), "one"),
        ((3, 8, 4), "many"),
        ((0, 2, 1), "many"),
    ],
)
def test_loops_of_no_or_one_trip_are_not_emitted(
    function: ir.Operation, bounds: tuple[int, int, int], trips: str
) -> None:
    tensor = function.regions[0].blocks[0].arguments[2]
    seen: list[Any] = []

    def body(index: Any, carried: list[ir.Value]) -> list[ir.Value]:
        seen.append(index)
        return carried

    (result,) = Emitter(function).loop(bounds, [tensor], body)
    assert emitted(function) == ["scf.for"] * (trips == "many")
    assert seen == {"none": [], "one": [bounds[0]]}.get(trips, seen)
    assert len(seen) == (trips != "none")
    assert (result == tensor) == (trips != "many")


@pytest.mark.parametrize("live", [-1, 0, 1, 7, 8, 9])
def test_masks_of_a_known_number_of_lanes_are_constants(function: ir.Operation, live: int) -> None:
    mask = Emitter(function).mask(8, live)
    if live >= 8:
        assert mask is None
    else:
        assert mask is not None
        lanes = list(ir.DenseIntElementsAttr(mask.owner.attributes["value"]))
        assert lanes == [lane < live for lane in range(8)]
    assert emitted(function) == []
