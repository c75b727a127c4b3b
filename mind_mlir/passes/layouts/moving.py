"""Moves transposes behind what can be computed without them.

Convolutions compute with channels last. Models that have them elsewhere transpose what each convolution reads
and what it gives. Before: a function in structured form. After: the same, where what lies
between convolutions, elementwise operations, poolings, reductions, concatenations, paddings and reshapes, is
computed in the order in which the convolutions have it, and transposed behind that. `chains` drops transposes
that undo one another then, and `drop_dead_code` those that nobody reads. So are transposes of other values
moved, where fewer elements are transposed behind what is computed of them (`balance`): sums of the rows of a
transpose are sums of columns.

An operation moves if each operand of its size can be had in one order: as the result of a transpose whose
operand lies as convolutions have it (is *native*) or that is worth moving, as what is transposed to a native
value anyway, or made of fewer elements, which are transposed. A result is native then, and so on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.attributes import Attributes
from mind_mlir.ir.module import CoreOperation
from mind_mlir.ir.regions import value_types
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.convolution_form import CONVOLUTIONS
from mind_mlir.passes.layouts.balance import Balance
from mind_mlir.passes.layouts.rules import RESHAPES, RULES, in_order
from mind_mlir.passes.simplify.shapes import aligned, inverse, only_moves_ones, permutation_of
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import Block, Function, Terminator, ValueId
    from mind_mlir.ir.types import ValueType
    from mind_mlir.passes.layouts.rules import Order

#: An operand that is so much smaller than the result is transposed where it is needed in another order.
_SMALL = 8
#: With fewer channels, as those of pictures are, what is computed along them leaves most of a vector empty:
#: it stays where it is if rows are longer there.
_FEW = 8
_PRODUCTS = ("MatMul", "Dot", "DotGeneral")


def move_transposes(function: Function) -> Function:
    """Return ``function``, in structured form, with its transposes moved; itself where none moves."""
    if not any(operation.opcode == "Transpose" for operation in operations_of(function.blocks)):
        return function
    (block,) = function.blocks
    trial = Balance()
    _Moving(function, balance=trial).block(block)
    changed = _Moving(function, trial.worth()).block(block)
    return function if changed is block else replace(function, blocks=(changed,))


def _gain(operation: CoreOperation, order: Order) -> int:
    """Return how many elements could be transposed in the time that an operation gains in another order.

    A scan along rows takes as much longer than one along columns as transposing half of them.
    """
    if operation.opcode != "Cumulate":
        return 0
    axis: Any = operation.attributes["axis"]
    along = [int(place) % len(order) == len(order) - 1 for place in (axis, order[axis])]
    return (along[0] - along[1]) * operation.tensor_type.element_count // 2


class _Moving:
    """Moves the transposes of one function: those of native values, and those that are worth it.

    With a balance, all others than those instead, to see which ones these are.
    """

    def __init__(
        self, function: Function, worth: Collection[ValueId] = (), balance: Balance | None = None
    ) -> None:
        self._worth, self._balance = worth, balance
        #: The types of values, as far as the walk has come.
        self._types: dict[ValueId, ValueType] = {}
        self._makers: dict[ValueId, CoreOperation] = {}
        self._read = {
            operation.operands[0]
            for operation in operations_of(function.blocks)
            if operation.opcode in CONVOLUTIONS and balance is None
        }
        self._next = 1 + max(value_types(function.blocks), default=-1)
        #: Values that lie as convolutions have them.
        self._native: set[ValueId] = set()
        #: For a value, the values that it is a transpose of, by the order that it is transposed from.
        self._lies: dict[ValueId, dict[Order, ValueId]] = {}

    def block(self, block: Block) -> Block:
        """Return ``block`` with transposes moved; itself where nothing changes."""
        for parameter in block.parameters:
            self._types[parameter.value_id] = parameter.type
        made: list[CoreOperation] = []
        changed = False
        for operation in block.operations:
            deliver()
            if operation.regions:
                inside = tuple([self.block(region) for region in operation.regions])
                if any(one is not other for one, other in zip(inside, operation.regions, strict=True)):
                    operation = replace(operation, regions=inside)  # noqa: PLW2901 -- it stands for the given one
                    changed = True
                self._leave(operation)
                self._append(made, operation)
                continue
            if self._moved(operation, made):
                changed = True
                continue
            self._leave(operation)
            self._append(made, operation)
            self._look_at(operation)
        self._leave(block.terminator)
        return replace(block, operations=tuple(made)) if changed else block

    def _append(self, made: list[CoreOperation], operation: CoreOperation) -> None:
        made.append(operation)
        self._types.update(zip(operation.result_ids, operation.result_types, strict=True))
        if not operation.regions and not operation.others:
            self._makers[operation.value_id] = operation

    def _look_at(self, operation: CoreOperation) -> None:
        """Note whether a result is native, and what it is a transpose of."""
        value = operation.value_id
        if operation.opcode in CONVOLUTIONS or self._is_layer(operation):
            self._native.add(value)
        elif operation.opcode == "Transpose":
            (source,) = operation.operands
            order = permutation_of(operation)
            if only_moves_ones(order, self._shape(source)):
                return  # `chains` makes a reshape of it
            if inverse(order) in self._lies.get(source, ()):
                return  # `cse` finds it there
            if self._balance is not None:
                self._balance.begin(value, self._size(value))
            if source in self._native or value in self._worth or self._balance is not None:
                self._lies.setdefault(value, {}).setdefault(order, source)
            elif value in self._read:
                self._native.add(value)
                self._lies.setdefault(source, {}).setdefault(inverse(order), value)
        elif operation.opcode in RULES and self._are_native(operation):
            self._native.add(value)

    def _leave(self, operation: CoreOperation | Terminator) -> None:
        """Note that an operation is computed as it stands; transposes become one with others in front."""
        opcode = operation.opcode if isinstance(operation, CoreOperation) else ""
        if self._balance is not None and opcode != "Transpose":
            for value in operation.operands:
                self._balance.leave(value, self._size(value), through=opcode in _PRODUCTS)

    def _is_layer(self, operation: CoreOperation) -> bool:
        """Return whether an operation multiplies the last axis of a native value with a matrix."""
        if operation.opcode not in ("MatMul", "DotGeneral") or operation.operands[0] not in self._native:
            return False
        shape, matrix = (self._shape(value) for value in operation.operands)
        result = operation.tensor_type.extents
        if len(matrix) != 2 or len(result) != len(shape) or result[:-1] != shape[:-1]:
            return False
        given = operation.attributes
        return operation.opcode == "MatMul" or (
            given["contract_lhs"] == (len(shape) - 1,) and not given["batch_lhs"]
        )

    def _are_native(self, operation: CoreOperation) -> bool:
        """Return whether an operation computes with native values, and smaller ones."""
        sizes = [self._size(value) for value in operation.operands]
        pairs = zip(operation.operands, sizes, strict=True)
        return any(value in self._native for value in operation.operands) and all(
            value in self._native or size * _SMALL <= max(sizes) for value, size in pairs
        )

    def _shape(self, value: ValueId) -> tuple[int, ...]:
        type_ = self._types[value]
        return type_.extents if isinstance(type_, TensorType) else ()

    def _size(self, value: ValueId) -> int:
        type_ = self._types[value]
        return type_.element_count if isinstance(type_, TensorType) else 0

    def _moved(self, operation: CoreOperation, made: list[CoreOperation]) -> bool:
        """Append an operation in another order and what transposes its result, if it can move."""
        rule = RULES.get(operation.opcode)
        if rule is None or operation.others or not operation.operands:
            return False
        type_ = operation.result_type
        if not isinstance(type_, TensorType) or 0 in type_.extents:
            return False
        largest = max(operation.operands, key=self._size)
        source = self._types[largest]
        assert isinstance(source, TensorType), "operands of such operations are tensors"
        orders = dict.fromkeys(order for each in operation.operands for order in self._lies.get(each, ()))
        for order in orders:
            if len(order) != source.rank or in_order(source.extents, order)[-1] < _FEW <= source.extents[-1]:
                continue
            found = rule(operation, order, source.extents)
            if found is None or not self._can_be_had(operation, order, source.extents):
                continue
            operands = [self._had(operation, value, order, made) for value in operation.operands]
            opcode = "Reshape" if operation.opcode in RESHAPES else operation.opcode
            moved = self._emit(
                operation, opcode, operands, type_.with_shape(found.shape), found.attributes, made
            )
            self._native.add(moved)
            if found.order == tuple(range(len(found.order))):
                back = self._back(operation, "Reshape", moved, {"new_shape": type_.extents})
            else:
                back = self._back(operation, "Transpose", moved, {"permutation": found.order})
                self._lies.setdefault(operation.value_id, {}).setdefault(found.order, moved)
            if self._balance is not None:
                self._balance.join(operation.operands, operation.value_id, _gain(operation, order))
            self._append(made, back)
            return True
        return False

    def _back(
        self, operation: CoreOperation, opcode: str, value: ValueId, attributes: Mapping[str, AttributeValue]
    ) -> CoreOperation:
        """Return what gives the result of ``operation`` of one in another order."""
        return replace(operation, opcode=opcode, operands=(value,), attributes=Attributes.of(attributes))

    def _can_be_had(self, operation: CoreOperation, order: Order, shape: Sequence[int]) -> bool:
        size = max(operation.tensor_type.element_count, *(self._size(each) for each in operation.operands))
        for place, value in enumerate(operation.operands):
            type_ = self._types[value]
            if not isinstance(type_, TensorType) or type_.rank > len(order):
                return False
            if operation.opcode == "LayerNorm" and place:
                continue
            if order in self._lies.get(value, ()) or not type_.rank:
                continue
            maker = self._makers.get(value)
            if maker is not None and maker.opcode == "BroadcastTo":
                value = maker.operands[0]  # noqa: PLW2901 -- what is repeated is what is transposed
            if self._size(value) * _SMALL <= size:
                continue
            shape = aligned(self._shape(value), len(order))
            if not only_moves_ones(inverse(order), shape):
                return False
        return True

    def _had(
        self, operation: CoreOperation, value: ValueId, order: Order, made: list[CoreOperation]
    ) -> ValueId:
        """Return ``value`` in ``order``, in which it can be had."""
        type_ = self._types[value]
        assert isinstance(type_, TensorType), "it has been looked at"
        if operation.opcode == "LayerNorm" and order not in self._lies.get(value, ()):
            return value
        if not type_.rank:
            return value
        if order in self._lies.get(value, ()):
            return self._lies[value][order]
        maker = self._makers.get(value)
        if maker is not None and maker.opcode == "BroadcastTo":
            small = self._small(operation, maker.operands[0], order, made)
            shape = in_order(aligned(type_.extents, len(order)), order)
            attributes = {"result_shape": shape}
            return self._emit(operation, "BroadcastTo", [small], type_.with_shape(shape), attributes, made)
        return self._small(operation, value, order, made)

    def _small(
        self, operation: CoreOperation, value: ValueId, order: Order, made: list[CoreOperation]
    ) -> ValueId:
        """Return ``value`` transposed, with extents of 1 in front."""
        type_ = self._types[value]
        assert isinstance(type_, TensorType), "it has been looked at"
        shape = aligned(type_.extents, len(order))
        if not type_.rank:
            return value
        if shape != type_.extents:
            type_ = type_.with_shape(shape)
            value = self._emit(operation, "Reshape", [value], type_, {"new_shape": shape}, made)
        back = inverse(order)
        moved = type_.with_shape(in_order(shape, order))
        return self._emit(operation, "Transpose", [value], moved, {"permutation": back}, made)

    def _emit(
        self,
        like: CoreOperation,
        opcode: str,
        operands: Sequence[ValueId],
        type_: TensorType,
        attributes: Mapping[str, AttributeValue],
        made: list[CoreOperation],
    ) -> ValueId:
        value = self._next
        self._next += 1
        given = Attributes.of(attributes)
        new = type(like)(value, opcode, tuple(operands), given, type_, like.source, origin=like.label)
        self._append(made, new)
        return value
