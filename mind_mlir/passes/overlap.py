"""Sums over ranks that go on while other things are computed, small ones together.

Before: `AllReduce` and `ReduceScatter`, each of which the ranks wait for. After: where much is computed
before anything reads the result, or several of them can go as one message, a custom call that starts it as
soon as its operand is known, and another one that waits for it before the first operation that reads the
result (`mind_mlir.ops.collective_targets`). So gradients are summed while others are computed.

Nothing goes into a branch or loop, or out of one. All ranks run the same program, and so start the same in
the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL, callee_of, operations_of
from mind_mlir.ir.analysis.effects import FINISH, START
from mind_mlir.ir.module import CoreOperation, Functions, Module
from mind_mlir.ir.regions import reads, value_types
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.contract import Tagged
from mind_mlir.ops.custom_attributes import to_text
from mind_mlir.ops.custom_targets import custom_target
from mind_mlir.ops.infer import complete_attributes, normal_attributes
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.canonical.body import FunctionBlocks, numbered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Block, Function, ValueId
    from mind_mlir.target import Target

#: What is started and finished apart. Others are read at once; or they could start so early, as gathers of
#: parameters, that all of their results were in memory together.
_SPLIT = frozenset(("AllReduce", "ReduceScatter"))
#: So many operations on elements are worth it: to hand over to a thread and back takes some 50 us.
WORTH = 1 << 20
#: A bucket is complete when its operands have so many bytes: that takes 0.8 ms at 10 Gbit/s, beside which the
#: 0.1 ms are little that an exchange takes by itself; and what comes later need not wait for it.
BUCKET = 1 << 20


def overlap(module: Module, _: Target) -> Module:
    """Return a module in structured form whose collectives go on beside other things; itself without any."""
    if not any(op.opcode in _SPLIT for each in module.functions for op in operations_of(each.blocks)):
        return module
    buckets = count()
    functions = Functions([_overlapped(each, buckets) for each in module.functions])
    return module if functions == module.functions else replace(module, functions=functions)


def _overlapped(function: Function, buckets: Iterator[int]) -> Function:
    types = value_types(function.blocks)
    fresh = count(max(types, default=-1) + 1)

    def block(given: Block) -> Block:
        inner = [
            replace(each, regions=tuple(map(block, each.regions))) if each.regions else each
            for each in given.operations
        ]
        if not any(each.opcode in _SPLIT for each in inner):
            return replace(given, operations=tuple(inner))
        return _BlockOverlap(replace(given, operations=_raised(inner)), types).written(fresh, buckets)

    changed = replace(function, blocks=tuple(map(block, function.blocks)))
    return function if changed == function else numbered(FunctionBlocks.of(changed), changed, ordered=False)


def _raised(operations: Sequence[CoreOperation]) -> tuple[CoreOperation, ...]:
    """Return operations of a block in an order in which collectives stand where their operands are known.

    What is cheap and makes an operand moves with it, as a factor or another shape. What reads the result of
    one of these collectives stays, so that there is something to do meanwhile.
    """
    made_by = {result: number for number, each in enumerate(operations) for result in each.result_ids}
    makers = [[made_by[value] for value in reads(each) if value in made_by] for each in operations]
    first = sum(each.opcode == "Input" for each in operations) - 1
    places = list(range(len(operations)))
    stays = [each.opcode in _SPLIT for each in operations]
    for number, operation in enumerate(operations):
        if not (stays[number] or _is_cheap(operation)):
            continue
        if any(stays[maker] for maker in makers[number]):
            stays[number] = True
        else:
            places[number] = max([first, *(places[maker] for maker in makers[number])])
    moved = set[int]()
    for number in reversed(range(len(operations))):
        if number in moved or operations[number].opcode in _SPLIT:
            moved.update(maker for maker in (number, *makers[number]) if places[maker] < maker)
    keys = [(places[each], each) if each in moved else (each, -1) for each in range(len(places))]
    return tuple([operations[number] for number in sorted(range(len(keys)), key=keys.__getitem__)])


def _is_cheap(operation: CoreOperation) -> bool:
    """Return whether ``operation`` takes little more than to read its operands, and cannot fail."""
    record = by_opcode()[operation.opcode]
    if operation.regions or operation.others or record.runs_others or record.terms is not None:
        return False
    return record.is_static or record.movement is not None or record.vector_operations > 0


class _BlockOverlap:
    """The collectives of one block."""

    def __init__(self, block: Block, types: Mapping[ValueId, TensorType]) -> None:
        self._block, self._operations, self._types = block, block.operations, types
        uses = dict.fromkeys(block.terminator.operands, len(self._operations))
        for number in reversed(range(len(self._operations))):
            uses.update(dict.fromkeys(reads(self._operations[number]), number))
        #: Where the result of each collective is read first.
        self._ends = {
            number: uses[each.value_id]
            for number, each in enumerate(self._operations)
            if each.opcode in _SPLIT and each.value_id in uses
        }
        #: How much is computed before each operation.
        self._work = [0, *accumulate(map(self._work_of, self._operations))]

    def written(self, fresh: Iterator[ValueId], numbers: Iterator[int]) -> Block:
        """Return the block with what is started and finished apart."""
        starts: dict[int, CoreOperation] = {}
        finishes: dict[int, list[CoreOperation]] = {}
        for bucket in self._buckets():
            if len(bucket) == 1 and not self._is_worth(bucket[0], self._ends[bucket[0]]):
                continue
            facts = {"bucket": next(numbers), "members": len(bucket)}
            for number in bucket:
                start, finish = self._apart(self._operations[number], next(fresh), facts)
                starts[number] = start
                finishes.setdefault(self._ends[number], []).append(finish)
        found: list[CoreOperation] = []
        for number, operation in enumerate(self._operations):
            found += [*finishes.get(number, ()), starts.get(number, operation)]
        found += finishes.get(len(self._operations), ())
        return replace(self._block, operations=tuple(found))

    def _buckets(self) -> list[list[int]]:
        """Return the numbers of the collectives that are done together, in the order of their starts."""
        found: list[list[int]] = []
        last: dict[tuple[object, object], list[int]] = {}
        for number in self._ends:
            attributes = self._operations[number].attributes
            key = attributes["mesh"], attributes["axes"]
            if key in last and self._joins(number, last[key]):
                last[key].append(number)
            else:
                last[key] = [number]
                found.append(last[key])
        return found

    def _joins(self, number: int, bucket: Sequence[int]) -> bool:
        """Return whether a collective may be one of a bucket, and no other has less time than before."""
        end = min(self._ends[each] for each in bucket)
        if number >= end or sum(self._bytes_of(each) for each in bucket) >= BUCKET:
            return False
        return self._is_worth(number, end) or not self._is_worth(bucket[-1], end)

    def _is_worth(self, number: int, end: int) -> bool:
        """Return whether much is computed between two operations."""
        return self._work[end] - self._work[number] >= WORTH

    def _bytes_of(self, number: int) -> int:
        type_ = self._types[self._operations[number].operands[0]]
        return type_.element_count * type_.dtype.itemsize

    def _work_of(self, operation: CoreOperation) -> int:
        """Return how many operations on elements an operation is, about."""
        record = by_opcode()[operation.opcode]
        if operation.regions or callee_of(operation):
            return WORTH  # a loop, a branch or a layer
        if record.runs_others or operation.others or not isinstance(operation.result_type, TensorType):
            return 0
        each = record.vector_operations
        if record.terms is not None:
            shapes = [self._types[operand].extents for operand in operation.operands]
            each = record.terms(shapes, complete_attributes(record, operation.attributes))
        return each * operation.result_type.element_count

    def _apart(
        self, operation: CoreOperation, token: ValueId, facts: Mapping[str, int]
    ) -> tuple[CoreOperation, CoreOperation]:
        """Return what starts a collective, and what waits for it."""
        type_, attributes = operation.tensor_type, self._normal(operation)
        mesh = {name: attributes[name] for name in ("mesh", "axes")}
        started = {"opcode": operation.opcode, "shape": type_.extents, **attributes, **facts}
        finished = {"dtype": str(type_.dtype), "shape": type_.extents, **mesh}
        return (
            self._call(operation, START, started, token, operation.operands[0], TensorType(DType.SI64)),
            self._call(operation, FINISH, finished, operation.value_id, token, type_),
        )

    def _normal(self, operation: CoreOperation) -> Mapping[str, Any]:
        return normal_attributes(by_opcode()[operation.opcode], operation.attributes, operation.result_type)

    def _call(
        self,
        operation: CoreOperation,
        name: str,
        values: Mapping[str, Any],
        result: ValueId,
        operand: ValueId,
        type_: TensorType,
    ) -> CoreOperation:
        target = custom_target(name)
        assert target is not None, "these two are always there"
        attrs = to_text({each: Tagged(target.attributes[each].kind, value) for each, value in values.items()})
        return CoreOperation.create(
            result,
            CUSTOM_CALL,
            (operand,),
            {"target": name, "attrs": attrs},
            type_,
            operation.source,
            operation.names,
            operation.origin or operation.label,
        )
