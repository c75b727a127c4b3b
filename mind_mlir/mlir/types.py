"""Our types and attributes as MLIR types: signed in the `mind` dialect, signless from linalg on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.references import reference

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import TensorLiteral
    from mind_mlir.mlir.bindings import Attribute, Type

#: The classes of the bindings for floats: of ``f8E5M2``, that is ``Float8E5M2Type``.
_FLOATS = {
    dtype: getattr(ir, f"{f'Float{dtype.mlir[1:]}' if dtype.bits == 8 else dtype.mlir.upper()}Type")
    for dtype in DType
    if dtype.is_float
}
_DTYPES_BY_MLIR = {dtype.mlir: dtype for dtype in DType}


def element_type(dtype: DType, *, signed: bool) -> Type:
    """Return the MLIR element type of ``dtype`` in the current context.

    Args:
        dtype: Any dtype of any profile.
        signed: Whether integers keep their signedness, as in the `mind` dialect.
    """
    match dtype.kind:
        case DTypeKind.FLOAT:
            return _FLOATS[dtype].get()
        case DTypeKind.COMPLEX:
            return ir.ComplexType.get(_FLOATS[dtype.part].get())
        case DTypeKind.SIGNED if signed:
            return ir.IntegerType.get_signed(dtype.bits)
        case DTypeKind.UNSIGNED if signed:
            return ir.IntegerType.get_unsigned(dtype.bits)
        case _:
            # Integers of 4 bits lie in bytes, as in numpy arrays.
            return ir.IntegerType.get_signless(8 if dtype.bits == 4 else dtype.bits)


def tensor_type(type_: TensorType, *, signed: bool = False) -> Type:
    """Return the ranked MLIR tensor type of ``type_``; symbolic extents become dynamic."""
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [extent if isinstance(extent, int) else dynamic for extent in type_.shape]
    return ir.RankedTensorType.get(shape, element_type(type_.dtype, signed=signed))


def from_mlir_tensor(type_: Any) -> TensorType | None:
    """Return our type of a `mind` dialect tensor type, or None where there is none."""
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return None
    dtype = from_mlir_element(type_.element_type)
    return TensorType(dtype, tuple(type_.shape)) if dtype else None


def from_mlir_element(type_: Any) -> DType | None:
    """Return our dtype of a `mind` dialect element type, or None where there is none."""
    return _DTYPES_BY_MLIR.get(str(type_))


def dense_elements(literal: TensorLiteral, *, signed: bool, aligned: bool = False) -> Attribute:
    """Return ``literal`` as a `DenseElementsAttr`, bit for bit, or as a reference (see `References.add`)."""
    type_ = tensor_type(literal.type, signed=signed)
    named = reference(literal, type_, aligned=aligned)
    if named is not None:
        return named
    array = literal.array
    if literal.type.dtype is DType.SI4 and not signed:
        array = array.astype(np.int8)
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return ir.DenseElementsAttr.get(data, signless=False, type=type_)
