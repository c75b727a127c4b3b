"""Through which values gradients flow, loops, branches and calls included.

The values of a function are the nodes of a graph: an edge leads from a floating-point value to each one that
is computed from it, except through an operation whose result is locally constant. Loops are cycles. Calls
take part through a summary of the function that they call: which parameters reach which results.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import callee_of
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.opdef import NotDifferentiable
from mind_mlir.ops.region_flow import pairs_of
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.ir.module import Block, CoreOperation, Function, ValueId
    from mind_mlir.ir.types import ValueType

#: For each function, the pairs of a parameter's and a result's place between which gradients can flow.
Summaries = dict[str, list[tuple[int, int]]]


def is_float(type_: ValueType) -> bool:
    """Return whether values of ``type_`` have gradients."""
    return isinstance(type_, TensorType) and type_.dtype.is_float


@dataclass(slots=True)
class Flow:
    """The graph of one function in structured form."""

    forward: dict[ValueId, list[ValueId]] = field(default_factory=lambda: defaultdict(list))
    backward: dict[ValueId, list[ValueId]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, block: Block, summaries: Mapping[str, Sequence[tuple[int, int]]]) -> Flow:
        """Build the graph of the function that is ``block``."""
        floats = {p.value_id for p in block.parameters if is_float(p.type)}
        operations: list[CoreOperation] = []
        pending = [block]
        while pending:
            region = pending.pop()
            for operation in region.operations:
                deliver()
                operations.append(operation)
                if is_float(operation.result_type):
                    floats.add(operation.value_id)
                floats.update(other.value_id for other in operation.others if is_float(other.type))
                for inner in operation.regions:
                    floats.update(p.value_id for p in inner.parameters if is_float(p.type))
                    pending.append(inner)
        flow = cls()
        for operation in operations:
            for source, target in _edges(operation, summaries):
                if source in floats and target in floats:
                    flow.forward[source].append(target)
                    flow.backward[target].append(source)
        return flow

    def reached_from(self, values: Iterable[ValueId]) -> set[ValueId]:
        """Return the values that depend on ``values``, and these."""
        return _closure(values, self.forward)

    def reaching(self, values: Iterable[ValueId]) -> set[ValueId]:
        """Return the values on which ``values`` depend, and these."""
        return _closure(values, self.backward)


def summarise(functions: Sequence[Function]) -> tuple[dict[str, Flow], Summaries]:
    """Return the graph and the summary of each function; what a function calls comes before it."""
    flows: dict[str, Flow] = {}
    summaries: Summaries = {}
    for function in functions:
        block = function.entry
        flow = flows[function.name] = Flow.of(block, summaries)
        results = block.terminator.operands
        parameters = {p.value_id: place for place, p in enumerate(block.parameters) if is_float(p.type)}
        masks = _masks(flow, parameters)
        summaries[function.name] = [
            (place, index)
            for index, result in enumerate(results)
            for place in parameters.values()
            if masks.get(result, 0) >> place & 1
        ]
    return flows, summaries


def _closure(values: Iterable[ValueId], edges: Mapping[ValueId, Sequence[ValueId]]) -> set[ValueId]:
    found = set(values)
    pending = list(found)
    while pending:
        for target in edges.get(pending.pop(), ()):
            if target not in found:
                found.add(target)
                pending.append(target)
    return found


def _masks(flow: Flow, parameters: Mapping[ValueId, int]) -> dict[ValueId, int]:
    """Return for each value, as the bits of a number, the parameters on which it depends."""
    masks = {value: 1 << place for value, place in parameters.items()}
    pending = sorted(parameters)  # in the order of ids, nearly that of the program, so that few are met twice
    waiting = set(pending)
    while pending:
        value = heappop(pending)
        waiting.discard(value)
        deliver()
        for target in flow.forward.get(value, ()):
            mask = masks.get(target, 0) | masks[value]
            if mask != masks.get(target, 0):
                masks[target] = mask
                if target not in waiting:
                    waiting.add(target)
                    heappush(pending, target)
    return masks


def _edges(
    operation: CoreOperation, summaries: Mapping[str, Sequence[tuple[int, int]]]
) -> Iterable[tuple[ValueId, ValueId]]:
    callee = callee_of(operation)
    if callee is not None:
        operands, results = operation.operands, operation.result_ids
        return [(operands[parameter], results[result]) for parameter, result in summaries[callee]]
    if operation.regions:
        return pairs_of(operation)
    derivative = by_opcode()[operation.opcode].derivative
    if isinstance(derivative, NotDifferentiable) and derivative.constant:
        return ()
    return [(operand, result) for result in operation.result_ids for operand in operation.operands]
