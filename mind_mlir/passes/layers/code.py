"""A block as a sequence of steps, each with a key: steps with equal keys compute the same of what they read.

A view (a reshape, transpose, broadcast or static slice) and a small constant are no steps. They belong to
whoever reads them: an operand of a step is its *root*, what a step, an input or a parameter defines, seen
through a *chain* of views. So views cost nothing at the border of a function: they are repeated inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.regions import reads
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import Block, CoreOperation, ValueId
    from mind_mlir.ir.types import ValueType

#: The most bytes of a constant that is repeated wherever it is read.
_SMALL = 64
#: Bytes of a constant that is laid out for the product that reads it when the program is compiled; as an
#: argument of a function it would be in each call.
_LAID_OUT = 1 << 14


class Operand(NamedTuple):
    """An operand of a step: a value that is seen through a chain of views.

    Attributes:
        root: The value, or None for a constant.
        chain: The number of the chain of views that it is seen through; equal ones have equal numbers.
        value: The end of the chain.
    """

    root: ValueId | None
    chain: int
    value: ValueId


class CodeStep(NamedTuple):
    """An operation that computes something.

    Attributes:
        operation: The operation.
        operands: What it reads, regions included.
        key: Equal for steps that compute the same of their roots; None for one that stays where it is.
    """

    operation: CoreOperation
    operands: tuple[Operand, ...]
    key: int | None


class Code:
    """A block of a verified module in structured form.

    Attributes:
        steps: What it computes, in order.
        made_by: The number of the step that makes a value, and which of its results that is.
        results: What the block hands on.
        contractions: The keys of steps that make others worth a function.
        types: The types of all values.
    """

    def __init__(self, block: Block) -> None:
        self._numbers: dict[object, int] = {}
        self._operands: dict[ValueId, Operand] = {}
        self._views: dict[ValueId, CoreOperation] = {}
        self.steps: list[CodeStep] = []
        self.made_by: dict[ValueId, tuple[int, int]] = {}
        self.contractions: set[int] = set()
        self.types: dict[ValueId, ValueType] = {}
        for parameter in block.parameters:
            self._enter_root(parameter.value_id, parameter.type)
        for operation in block.operations:
            if by_opcode()[operation.opcode].is_view or _is_small_constant(operation):
                self._enter_view(operation)
            else:
                self._enter_step(operation)
        self.results = tuple([self._operands[value] for value in block.terminator.operands])

    def operand(self, value: ValueId) -> Operand:
        """Return ``value`` as a step would read it."""
        return self._operands[value]

    def chain_of(self, value: ValueId) -> int:
        """Return the number of the chain of views that ends with ``value``."""
        return self._operands[value].chain

    def views(self, value: ValueId) -> Iterator[CoreOperation]:
        """Yield the operations that make ``value`` of its root, the last one first."""
        while value in self._views:
            operation = self._views[value]
            yield operation
            if not operation.operands:
                return
            (value,) = operation.operands

    def is_moved(self, operand: Operand) -> bool:
        """Return whether ``operand`` is all of its root in another shape or order."""
        views = list(self.views(operand.value))
        return bool(views) and all(by_opcode()[view.opcode].keeps_all for view in views)

    def _enter_view(self, operation: CoreOperation) -> None:
        value = operation.value_id
        chain = [self._operands[read].chain for read in operation.operands]
        root = self._operands[operation.operands[0]].root if chain else None
        key = (operation.opcode, _exact(operation), operation.result_type, *chain)
        self._views[value] = operation
        self._operands[value] = Operand(root, self._number(key), value)
        self.types[value] = operation.result_type

    def _enter_step(self, operation: CoreOperation) -> None:
        operands = tuple([self._operands[value] for value in reads(operation)])
        types = operation.result_types
        key = None
        if self._may_move(operation):
            chains = tuple([operand.chain for operand in operands])
            key = self._number((operation.opcode, _exact(operation), types, chains))
            if by_opcode()[operation.opcode].contracts:
                self.contractions.add(key)
        for number, (value, type_) in enumerate(zip(operation.result_ids, types, strict=True)):
            self.made_by[value] = len(self.steps), number
            self._enter_root(value, type_)
        self.steps.append(CodeStep(operation, operands, key))

    def _enter_root(self, value: ValueId, type_: ValueType) -> None:
        self.types[value] = type_
        self._operands[value] = Operand(value, self._number(type_), value)

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _may_move(self, operation: CoreOperation) -> bool:
        """Return whether ``operation`` may be shared.

        Run-time checks name one operation each; they are of integers, as indices and divisors. Products with
        large constants are quicker where these are known.
        """
        record = by_opcode()[operation.opcode]
        if operation.regions or record.runs_others or record.is_constant:
            return False
        if record.contracts and any(map(self._is_laid_out, operation.operands)):
            return False
        return not any(_is_integer(self.types[value]) for value in operation.operands)

    def _is_laid_out(self, value: ValueId) -> bool:
        """Return whether ``value`` is a large constant, or a view of one."""
        root = self._operands[value].root
        place = None if root is None else self.made_by.get(root)
        maker = None if place is None else self.steps[place[0]].operation
        return (
            maker is not None
            and by_opcode()[maker.opcode].is_constant
            and bytes_of(maker.tensor_type) >= _LAID_OUT
        )


def _is_small_constant(operation: CoreOperation) -> bool:
    return by_opcode()[operation.opcode].is_constant and bytes_of(operation.tensor_type) <= _SMALL


def bytes_of(type_: TensorType) -> int:
    """Return how many bytes a tensor has."""
    return type_.element_count * type_.dtype.itemsize


def _is_integer(type_: ValueType) -> bool:
    return not isinstance(type_, TensorType) or (type_.dtype.is_integer and type_.dtype is not DType.I1)


def _exact(operation: CoreOperation) -> tuple[object, ...]:
    """Return the attributes so that only equal ones are equal: 0.0 is -0.0 to Python, and 1 is True."""
    attributes = operation.attributes
    return tuple([(name, _told_apart(attributes[name])) for name in attributes])


def _told_apart(value: AttributeValue) -> object:
    if isinstance(value, tuple):
        return tuple([_told_apart(each) for each in value])
    return value if isinstance(value, (str, TensorLiteral, DType)) else (type(value), repr(value))
