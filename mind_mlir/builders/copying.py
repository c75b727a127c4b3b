"""Copies operations with their regions from one function into another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.module import Block, CoreOperation, Result, ValueId, Yield
from mind_mlir.ir.names import NO_NAMES

if TYPE_CHECKING:
    from mind_mlir.builders.builder import Builder
    from mind_mlir.ir.value import Value


def renamed(
    operation: CoreOperation,
    results: Sequence[Value],
    operands: Sequence[Value],
    captured: Mapping[ValueId, Value],
    builder: Builder,
) -> CoreOperation:
    """Return ``operation`` with other operands and results, and fresh values of ``builder`` in its regions.

    Regions may be nested to any depth: nothing recurses.
    """
    # Operations with regions, outer ones first; then all that they define; then from the inside out.
    nests = [operation]
    for nest in nests:
        nests += [op for region in nest.regions for op in region.operations if op.regions]
    ids = _Ids(captured)
    for nest in nests:
        for region in nest.regions:
            ids |= {parameter.value_id: _fresh(builder) for parameter in region.parameters}
            ids |= {value: _fresh(builder) for op in region.operations for value in op.result_ids}
    copies: dict[ValueId, CoreOperation] = {}
    for nest in reversed(nests[1:]):
        copies[nest.value_id] = _copy(nest, ids, copies)
    inside = tuple(_block(region, ids, copies) for region in operation.regions)
    others = tuple(Result(value.id, value.type) for value in results[1:])
    read = tuple(value.id for value in operands)
    return replace(
        operation,
        value_id=results[0].id,
        operands=read,
        others=others,
        regions=inside,
        names=NO_NAMES,
        origin=operation.label,
    )


class _Ids(dict[int, int]):
    """New ids by old ones: those of what is copied, or else of what is around."""

    def __init__(self, around: Mapping[ValueId, Value]) -> None:
        super().__init__()
        self.around = around

    def __missing__(self, value: ValueId) -> ValueId:
        return self.around[value].id


def _fresh(builder: Builder) -> ValueId:
    builder.next_id += 1
    return builder.next_id - 1


def _copy(operation: CoreOperation, ids: _Ids, copies: Mapping[ValueId, CoreOperation]) -> CoreOperation:
    return replace(
        operation,
        value_id=ids[operation.value_id],
        operands=tuple([ids[value] for value in operation.operands]),
        others=tuple([replace(other, value_id=ids[other.value_id]) for other in operation.others]),
        regions=tuple([_block(region, ids, copies) for region in operation.regions]),
        names=NO_NAMES,
        origin=operation.label,
    )


def _block(block: Block, ids: _Ids, copies: Mapping[ValueId, CoreOperation]) -> Block:
    assert isinstance(block.terminator, Yield), "a region ends in a yield"
    return replace(
        block,
        operations=tuple([copies.get(op.value_id) or _copy(op, ids, copies) for op in block.operations]),
        terminator=Yield(tuple([ids[value] for value in block.terminator.operands])),
        parameters=tuple(
            [replace(p, value_id=ids[p.value_id], names=NO_NAMES, origin=p.label) for p in block.parameters]
        ),
    )
