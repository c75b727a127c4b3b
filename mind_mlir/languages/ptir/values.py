"""Values of programs as the tensors they are made of, and the numbers of these.

A module has operations of several results where a program has tuples: each value of a program is the tensors
that are in it, from left to right, however deep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.operation import Parameter
from mind_mlir.ir.types import TensorType, TupleType, ValueType
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.terminators import ValueId

#: Tuples within tuples; deeper ones are an error of the program.
MAX_TUPLE_DEPTH = 64


@dataclass(frozen=True, slots=True)
class LoweredValue:
    """The form of a program's value in the module.

    Attributes:
        type: Its type in the program.
        ids: The values of the tensors that it is made of.
    """

    type: ValueType
    ids: tuple[ValueId, ...]

    def element(self, index: int) -> LoweredValue:
        """Return an element of a tuple; it has one of that number."""
        assert isinstance(self.type, TupleType), "the caller looks first"
        first = sum(leaf_count(type_) for type_ in self.type.elements[:index])
        type_ = self.type.elements[index]
        return LoweredValue(type_, self.ids[first : first + leaf_count(type_)])


@dataclass(slots=True)
class Numbering:
    """Numbers the values of one function, regions included.

    Attributes:
        next_id: The next value.
        stand_ins: Parameters in the place of values that could not be had.
        seed: What random operations draw from; None before it is known.
        streams: How many of them there are so far.
    """

    next_id: ValueId = 0
    seed: ValueId | None = None
    streams: int = 0
    stand_ins: list[Parameter] = field(default_factory=list)

    def fresh(self) -> ValueId:
        """Return the next value."""
        self.next_id += 1
        return self.next_id - 1

    def stream(self) -> int:
        """Return the number of the next random operation."""
        self.streams += 1
        return self.streams - 1

    def stand_in(self, type_: TensorType) -> ValueId:
        """Return a value of ``type_`` that takes the place of one that could not be had."""
        value = self.fresh()
        self.stand_ins.append(Parameter(value, type_, name=f"value that could not be had, {value}"))
        return value


def leaves(type_: ValueType) -> Sequence[TensorType]:
    """Return the types of the tensors that a value of ``type_`` is made of."""
    if isinstance(type_, TensorType):
        return (type_,)
    return [leaf for leaf, _ in _walk(type_)]


def leaf_paths(type_: ValueType) -> list[str]:
    """Return how each tensor of a value is had from it: ``[1][0]``, or nothing for a tensor."""
    if isinstance(type_, TensorType):
        return [""]
    return ["".join(f"[{index}]" for index in path) for _, path in _walk(type_)]


def leaf_count(type_: ValueType) -> int:
    """Return how many tensors a value of ``type_`` is made of."""
    return 1 if isinstance(type_, TensorType) else len(leaves(type_))


def all_leaves(types: Iterable[ValueType]) -> tuple[TensorType, ...]:
    """Return the types of the tensors of several values, in order."""
    return tuple([leaf for type_ in types for leaf in leaves(type_)])


def too_deep(type_: ValueType) -> bool:
    """Return whether tuples are nested deeper than `MAX_TUPLE_DEPTH`."""
    level: list[ValueType] = [type_]
    for _ in range(MAX_TUPLE_DEPTH + 1):
        level = [element for each in level if isinstance(each, TupleType) for element in each.elements]
        if not level:
            return False
    return True


def nested(type_: ValueType, tensors: Iterator[Any]) -> Any:
    """Return a value of ``type_``, tuples as Python's, of as many ``tensors`` as it is made of."""
    if isinstance(type_, TensorType):
        return next(tensors)
    return tuple([nested(element, tensors) for element in type_.elements])


def _walk(type_: TupleType) -> Iterator[tuple[TensorType, tuple[int, ...]]]:
    pending: list[tuple[ValueType, tuple[int, ...]]] = [(type_, ())]
    while pending:
        each, path = pending.pop()
        if isinstance(each, TensorType):
            yield each, path
        else:
            parts = [(element, (*path, index)) for index, element in enumerate(each.elements)]
            pending.extend(reversed(parts))
