"""Attribute values as Python writes them, in the form that operations hold: what the Builder accepts.

What plainly means a value of the attribute's kind is taken for it: a dtype's name, "Same" or pairs of
integers for a padding, numbers for a literal. What is an attribute value of another kind comes back as one,
for `infer_type` to say what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral, frozen
from mind_mlir.ir.types import DType, dtype_of
from mind_mlir.ops.opdef import AttrKind

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue


def from_python(kind: AttrKind | None, value: object, dtype: DType | None) -> AttributeValue | None:
    """Return ``value`` as an attribute of ``kind`` where it can be one, as any attribute else, else None.

    Args:
        kind: The kind that the record asks for; None where the record does not know the attribute.
        value: Anything.
        dtype: The element type of a literal, where it is known.

    Raises:
        VerificationError: E3010 or E4005, numbers that are no literal of ``dtype``.
    """
    match kind:
        case AttrKind.DTYPE if (found := dtype_of(value)) is not None:
            return found
        case AttrKind.LITERAL if dtype is not None and not isinstance(value, TensorLiteral):
            return TensorLiteral.of(cast("Any", value), dtype)
        case AttrKind.PADDING:
            return _padding(value)
    try:
        return frozen(value)
    except ValueError:  # an integer beyond all bounds
        return None


def _padding(value: object) -> AttributeValue | None:
    plain: Any = value
    try:
        if isinstance(value, (str, PaddingMode)):
            return Padding(plain)
        if isinstance(value, (list, tuple)):
            return Padding(PaddingMode.CUSTOM, plain)
        return frozen(value)
    except (TypeError, ValueError):
        return None
