"""Operations of linalg, which the bindings have classes for that take 8 ms to load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir, linalg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.mlir.bindings import Attribute, Operation, Value


def structured(name: str, inputs: Sequence[Value], init: Value, **attributes: Attribute) -> Operation:
    """Append ``linalg.<name>`` of ``inputs`` into ``init``, a tensor or a buffer, and return it."""
    segments = ir.DenseI32ArrayAttr.get([len(inputs), 1])
    op = _create(name, inputs, [init], {"operandSegmentSizes": segments, **attributes})
    linalg.fill_builtin_region(op)
    return op


def transposed_into(value: Value, init: Value, order: Sequence[int]) -> Value:
    """Append `linalg.transpose`, whose ``order`` says which dimension of ``value`` each of ``init`` is."""
    permutation = ir.DenseI64ArrayAttr.get(list(order))
    op = _create("transpose", [value], [init], {"permutation": permutation})
    linalg.fill_builtin_region(op)
    return op.result


def reduction(value: Value, init: Value, dims: Sequence[int]) -> Operation:
    """Append a `linalg.reduce` of some dimensions of ``value``; its region is empty."""
    return _create("reduce", [value], [init], {"dimensions": ir.DenseI64ArrayAttr.get(list(dims))})


def generic(
    inputs: Sequence[Value],
    inits: Sequence[Value],
    maps: Sequence[Attribute],
    kinds: Sequence[str],
    others: Mapping[str, Attribute] | None = None,
) -> Operation:
    """Append a `linalg.generic` with a loop of each of ``kinds``, parallel or reduction; without a body."""
    attributes = {
        "indexing_maps": ir.ArrayAttr.get(list(maps)),
        "iterator_types": ir.ArrayAttr.get(
            [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
        ),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(inits)]),
    }
    return _create("generic", inputs, inits, {**attributes, **(others or {})})


def finish(values: Sequence[Value]) -> None:
    """Append the end of a body."""
    ir.Operation.create("linalg.yield", operands=list(values))


def iteration(dim: int) -> Value:
    """Append which iteration of loop ``dim`` it is."""
    index = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
    return ir.Operation.create("linalg.index", [ir.IndexType.get()], attributes={"dim": index}).result


def _create(
    name: str, inputs: Sequence[Value], inits: Sequence[Value], attributes: Mapping[str, Attribute]
) -> Operation:
    results = [each.type for each in inits if isinstance(each.type, ir.RankedTensorType)]
    return ir.Operation.create(f"linalg.{name}", results, [*inputs, *inits], dict(attributes), regions=1)
