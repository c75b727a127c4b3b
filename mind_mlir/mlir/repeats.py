"""What tensors are copies of: where it is known what they hold, rules need not look in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir, tensor
from mind_mlir.mlir.values import definition, is_result_of, terminator_of

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import AffineMap, Operation, Type, Value
    from mind_mlir.mlir.context import LoweringContext


def repeated(value: Value) -> Value:
    """Return what ``value`` was reshaped or broadcast from: it has the same numbers, each once or more."""
    owner = definition(value)
    while owner is not None and (owner.name in _RESHAPES or _is_broadcast(owner)):
        value = owner.operands[0]
        owner = definition(value)
    return value


def read_through(value: Value, access: AffineMap) -> tuple[Value, AffineMap]:
    """Return what ``value``, which loops read at ``access``, was broadcast from, and where they read that."""
    owner = definition(value)
    while owner is not None and _is_broadcast(owner):
        read = ir.AffineMapAttr(owner.attributes["indexing_maps"][0]).value.results
        access = ir.AffineMap.get(access.n_dims, 0, [index.compose(access) for index in read])
        value = owner.operands[0]
        owner = definition(value)
    return value, access


_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape", "linalg.transpose")


def _is_broadcast(op: Operation) -> bool:
    """Return whether ``op`` repeats all that its operand, a tensor, holds, and holds nothing else."""
    if op.name != "linalg.generic" or len(op.operands) != 2:
        return False
    if not isinstance(op.operands[0].type, ir.RankedTensorType):
        return False
    body = op.regions[0].blocks[0]
    read = ir.AffineMapAttr(op.attributes["indexing_maps"][0]).value.results
    long = [index for index, extent in zip(read, op.operands[0].type.shape, strict=True) if extent != 1]
    dims = {index.position for index in long if isinstance(index, ir.AffineDimExpr)}
    return len(dims) == len(long) and list(terminator_of(body).operands) == [body.arguments[0]]


def part_of(value: Value) -> tuple[Value, list[int]]:
    """Return what ``value`` is consecutive elements of, and where they begin there: itself, if nothing."""
    op = definition(value)
    if op is not None and op.name == "tensor.extract_slice" and len(op.operands) == 1:
        offsets, strides = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in _SLICE)
        if {*strides} == {1} and len(offsets) == value.type.rank:
            return op.operands[0], offsets
    return value, [0] * value.type.rank


_SLICE = ("static_offsets", "static_strides")


def layer(context: LoweringContext, value: Value, axis: int, place: int) -> Value:
    """Return what is at ``place`` of an axis, without that: one of the tensors that were stacked."""
    shape = list(value.type.shape)
    left = ir.RankedTensorType.get(shape[:axis] + shape[axis + 1 :], value.type.element_type)
    sizes = [1 if dim == axis else extent for dim, extent in enumerate(shape)]
    stacked = _stacked(value, axis, place, left)
    if stacked is not None:
        return stacked
    offsets = [place if dim == axis else 0 for dim in range(len(shape))]
    return tensor.extract_slice(left, value, [], [], [], offsets, sizes, [1] * len(shape))


def _stacked(value: Value, axis: int, place: int, type_: Type) -> Value | None:
    """Return what was copied to ``place`` of an axis of ``value``, and fills it, of ``type_``; or None."""
    while is_result_of(value, "tensor.insert_slice") and len(value.owner.operands) == 2:
        insertion = value.owner.operation
        copy, value = insertion.operands
        first, size = (
            ir.DenseI64ArrayAttr(insertion.attributes[name])[axis]
            for name in ("static_offsets", "static_sizes")
        )
        if first <= place < first + size:
            if not is_result_of(copy, "linalg.copy") or copy.type != type_ or size != 1:
                return None
            found: Value = copy.owner.operands[0]
            return found
    return None


def without(context: LoweringContext, value: Value, axis: int) -> Value:
    """Append ``value`` without an axis of extent 1: what was broadcast is broadcast to less."""
    owner, shape = definition(value), list(value.type.shape)
    type_ = ir.RankedTensorType.get(shape[:axis] + shape[axis + 1 :], value.type.element_type)
    if owner is not None and owner.name == "tensor.expand_shape" and owner.operands[0].type == type_:
        return owner.operands[0]
    if owner is not None and _is_broadcast(owner):
        rank = type_.rank
        loops = [ir.AffineDimExpr.get(dim) for dim in range(rank)]
        around = ir.AffineMap.get(rank, 0, [*loops[:axis], ir.AffineConstantExpr.get(0), *loops[axis:]])
        source, inside = read_through(value, around)
        init = tensor.empty(list(type_.shape), type_.element_type)
        maps = [inside, ir.AffineMap.get_identity(rank)]
        return context.generic([source], maps, [init], ["parallel"] * rank, lambda x, _: x)[0]
    groups = [[dim] for dim in range(value.type.rank) if dim != axis]
    if groups:
        groups[min(axis, len(groups) - 1)].append(axis)
    return tensor.collapse_shape(type_, value, [sorted(group) for group in groups])
