"""Every rule of dimensions (`OpDef.dims`): the examples of all records, with each dimension divided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from index_values import INDICES, indices_of
from partition_harness import check_alike, collectives

import mind_mlir
from mind_mlir.builders.builder import Builder
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops.dims import WHOLE, DimsContext, dims_of
from mind_mlir.ops.example_types import dtypes_of, parse_type
from mind_mlir.ops.opdef import Domain, Rounding
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.module import CoreOperation
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ops.dims import Dims
    from mind_mlir.ops.opdef import Example, OpDef

_RULED = [
    record
    for record in all_ops()
    if record.examples
    and not record.collective
    and record.opcode not in ("Shard", "CustomCall")
    and record.lower
]


def _program(
    record: OpDef, types: list[TensorType], attributes: dict[str, Any], mesh: str, sharding: tuple[int, str]
) -> Module:
    builder = Builder(profile=EXTENDED_FUNCTIONS.name)
    values = [builder.parameter(type_, f"x{place}") for place, type_ in enumerate(types)]
    place, text = sharding
    values[place] = builder.emit("Shard", values[place], mesh=mesh, sharding=text)
    results = builder.emit_all(record.opcode, *values, **attributes)
    return Module(Functions([builder.function("main", results)]), EXTENDED_FUNCTIONS.name)


def _operand(record: OpDef, types: list[TensorType], place: int, attributes: dict[str, Any]) -> Any:
    rng, type_, domain = np.random.default_rng(place), types[place], record.operand(place).domain
    if domain in INDICES:
        return indices_of(domain, types, place, attributes, rng)
    numbers = rng.uniform(1, 3, type_.extents)
    if type_.dtype is DType.I1:
        return rng.integers(0, 2, type_.extents).astype(bool)
    if domain not in (Domain.POSITIVE, Domain.NONZERO) and type_.dtype.kind is DTypeKind.FLOAT:
        numbers = numbers - 2
    return np.asarray(numbers, type_.dtype.numpy)


def _cases(record: OpDef) -> Iterator[tuple[Example, list[TensorType], int, int]]:
    """Yield examples with a dimension to divide."""
    dtypes = dtypes_of(record)
    dtype = next((each for each in (DType.F32, DType.SI32, DType.I1) if each in dtypes), dtypes[0])
    for example in record.examples:
        types = [parse_type(spelled, dtype) for spelled in example.operands]
        if any(type_.dtype.bits == 4 or type_.element_count == 0 for type_ in types):
            continue
        for place, type_ in enumerate(types):
            for at, extent in enumerate(type_.extents):
                if 1 < extent <= 8 and record.operand(place).domain is not Domain.INDEX:
                    yield example, types, place, at


def _divides(count: int, dims: Dims, letter: str, operation: CoreOperation, types: list[TensorType]) -> bool:
    """Return whether all extents of a letter can be divided into so many parts."""
    pairs = zip((*dims.operands, *dims.results), (*types, *operation.result_types), strict=True)
    return not any(
        extent % count or type_.dtype.bits == 4
        for letters, type_ in pairs
        for each, extent in zip(letters, type_.extents, strict=True)
        if each == letter
    )


@pytest.mark.parametrize("record", _RULED, ids=lambda record: record.opcode)
def test_each_dimension_of_the_examples_can_be_divided(record: OpDef) -> None:
    for number, (example, types, place, at) in enumerate(_cases(record)):
        if number >= 6:
            break
        count = types[place].extents[at]
        try:
            module = _program(record, types, example.attributes, f"a={count}", (place, "*," * at + "a"))
        except mind_mlir.VerificationError:  # what flat programs alone have
            continue
        operands = [_operand(record, types, each, example.attributes) for each in range(len(types))]
        arguments = {f"x{each}": value for each, value in enumerate(operands)}
        parts = check_alike(module, arguments, exact=None if record.rounding is Rounding.EXACT else False)
        operation = module.functions[0].entry.operations[-1]
        if all(each.opcode != record.opcode for each in parts.functions[0].entry.operations):
            continue  # it does nothing
        dims = dims_of(DimsContext.of(record, operation, types))
        moved = collectives(parts)
        letter = WHOLE if dims is None else dims.operands[place][at]
        if dims is None or letter == WHOLE or not _divides(count, dims, letter, operation, types):
            assert not moved, "all ranks have the whole operand"
        elif letter in dims.joined:
            assert moved == ({"AllReduce": 1} if operation.tensor_type.dtype is not DType.I1 else {})
        else:
            assert moved == {"AllGather": sum(letter in letters for letters in dims.results)}
