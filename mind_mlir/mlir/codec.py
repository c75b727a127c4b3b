"""The means by which MLIR holds the kinds of attributes (`mind_mlir.ops.attribute_kinds`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.mlir.bindings import ir, raw_elements
from mind_mlir.mlir.references import is_compiling, referenced
from mind_mlir.mlir.types import dense_elements, element_type, from_mlir_element, from_mlir_tensor

if TYPE_CHECKING:
    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.bindings import Attribute

__all__ = ("decode_literal", "dense_elements", "element_type", "from_mlir_element", "ir", "referenced")

#: Larger literals are refused in MLIR text.
MAX_LITERAL_BYTES = 2**31


def decode_literal(attribute: Attribute) -> TensorLiteral:
    """Return the data of a `DenseElementsAttr` of a `mind` dialect type, bit for bit.

    Raises:
        ValueError: Its type is none of the dialect's, or it would take more than `MAX_LITERAL_BYTES`.
    """
    type_ = from_mlir_tensor(attribute.type)
    if type_ is None:
        raise ValueError(f"{attribute.type} is not a tensor type of the dialect")
    size = type_.element_count * type_.dtype.itemsize
    # A few characters spell a splat of any size. What is being compiled has been in memory as it is.
    if size > MAX_LITERAL_BYTES and not is_compiling():
        raise ValueError(f"a literal of type {attribute.type} takes {size} bytes; use mind.broadcast_to")
    return TensorLiteral.of(_elements(attribute, type_), type_.dtype)


def _elements(attribute: Attribute, type_: TensorType) -> Any:
    dtype = type_.dtype
    if not (dtype.bits == 4 or dtype.is_narrow):
        return np.array(attribute).view(dtype.numpy).reshape(type_.extents)
    if not type_.element_count:
        return np.zeros(type_.extents, dtype.numpy)
    elements = np.frombuffer(raw_elements(attribute, dtype.itemsize), dtype.numpy)
    if attribute.is_splat:
        return np.broadcast_to(elements.reshape(()), type_.extents)
    return elements.reshape(type_.extents)
