"""Decide which passes on the way to the LLVM dialect a module needs.

A pass takes its time where it finds nothing, too: greedy rewriting looks at every operation several times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Attribute, Operation, Type

#: Views that only `expand-strided-metadata` takes apart, unless they are at a place that is a constant.
VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.subview")
#: What may move more than a row of a buffer at once.
TRANSFERS = ("vector.transfer_read", "vector.transfer_write")


def cast_views(views: Iterable[Operation]) -> bool:
    """Turn those of ``views`` at constant places into casts; return whether others are left.

    Args:
        views: All operations of `VIEWS` of a module.
    """
    others = False
    for view in views:
        type_ = view.results[0].type
        layout = _static_layout(type_) if len(view.operands) == 1 else None
        if layout is None:
            others = True
            continue
        strides, offset = layout
        attributes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get([offset]),
            "static_sizes": ir.DenseI64ArrayAttr.get(type_.shape),
            "static_strides": ir.DenseI64ArrayAttr.get(strides),
        }
        with ir.InsertionPoint(view), view.location:
            cast = ir.Operation.create("memref.reinterpret_cast", [type_], [view.operands[0]], attributes)
        view.results[0].replace_all_uses_with(cast.result)
        view.erase()
    return others


def _static_layout(type_: Type) -> tuple[list[int], int] | None:
    """Return strides and offset of a memref type if they are constants, as well as its shape."""
    strides, offset = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if not type_.has_static_shape or offset == dynamic or dynamic in strides:
        return None
    return list(strides), offset


def move_rows(transfers: Iterable[Operation]) -> bool:
    """Return whether ``transfers`` all are of vectors of rank 1 that run along the last axis of a buffer."""
    buffers: dict[Type, bool] = {}
    maps: dict[Attribute, bool] = {}
    for op in transfers:
        buffer = op.operands[0 if op.name == "vector.transfer_read" else 1].type
        map_ = op.attributes["permutation_map"]
        if buffer not in buffers:
            buffers[buffer] = isinstance(buffer, ir.MemRefType) and _has_dense_rows(buffer)
        if map_ not in maps:
            affine = ir.AffineMapAttr(map_).value
            maps[map_] = affine == ir.AffineMap.get_minor_identity(affine.n_dims, 1)
        if not (buffers[buffer] and maps[map_]):
            return False
    return True


def _has_dense_rows(type_: Type) -> bool:
    strides, _ = type_.get_strides_and_offset()
    return bool(strides) and strides[-1] == 1
