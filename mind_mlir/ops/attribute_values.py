"""Attribute values as Python writes them, in the form that operations hold: what the Builder accepts.

What plainly means a value of the attribute's kind is taken for it: a dtype's name, "Same" or pairs of
integers for a padding, numbers for a literal. What is an attribute value of another kind comes back as one,
for `infer_types` to say what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import AttributeValue, frozen

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType
    from mind_mlir.ops.attribute_kinds import AttrKind


def from_python(kind: AttrKind | None, value: object, dtype: DType | None) -> AttributeValue | None:
    """Return ``value`` as an attribute of ``kind`` where it can be one, as any attribute else, else None.

    Args:
        kind: The kind that the record asks for; None where the record does not know the attribute.
        value: Anything.
        dtype: The element type of a literal, where it is known.

    Raises:
        VerificationError: E3010 or E4005, numbers that are no literal of ``dtype``.
    """
    found = kind.from_python(value, dtype) if kind else None
    if found is not None:
        return found
    try:
        return frozen(value)
    except ValueError:  # an integer beyond all bounds, or a padding that is none
        return None
