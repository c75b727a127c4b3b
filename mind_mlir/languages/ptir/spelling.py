"""Parts of programs as the data of their JSON: dicts, lists, strings and numbers.

The other texts write the same data in their own notation. Literals stay what they are: what writes them does
so piece by piece.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mind_mlir.ir.types import Dim, SymbolicDim, TensorType, ValueType
from mind_mlir.languages.ptir.program import TupleElement, ValueRef
from mind_mlir.languages.ptir.schema import DTYPE_NAMES
from mind_mlir.ops.contract import Field, FieldKind


def value_type(type_: ValueType) -> dict[str, Any]:
    """Return ``{"Tensor": ...}`` or ``{"Tuple": [...]}``."""
    if isinstance(type_, TensorType):
        return {"Tensor": tensor_spec(type_)}
    return {"Tuple": list(map(value_type, type_.elements))}


def tensor_spec(type_: TensorType) -> dict[str, Any]:
    """Return a dtype and a shape."""
    return {"dtype": DTYPE_NAMES[type_.dtype], "shape": shape(type_.shape)}


def shape(extents: Sequence[Dim]) -> dict[str, Any]:
    """Return ``{"dims": ...}``."""
    return {"dims": list(map(dim, extents))}


def dim(extent: Dim) -> dict[str, Any]:
    """Return ``{"Static": 2}`` or ``{"Dynamic": "B"}``."""
    return {"Dynamic": extent.name} if isinstance(extent, SymbolicDim) else {"Static": extent}


def reference(operand: ValueRef | TupleElement) -> dict[str, Any]:
    """Return an operand that is no literal."""
    if isinstance(operand, ValueRef):
        return {"Value": operand.value}
    return {"TupleElement": {"tuple": operand.tuple, "index": operand.index}}


def number(value: float) -> float | str:
    """Return a float; JSON has no infinities and no NaN, which become words."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def field(kind: FieldKind, value: Any) -> Any:
    """Return the value of a field, which is of ``kind``; a tensor literal as it is."""
    match kind:
        case FieldKind.DTYPE | FieldKind.OPTIONAL_DTYPE:
            return None if value is None else DTYPE_NAMES[value]
        case FieldKind.INTEGERS:
            return list(value)
        case FieldKind.FLOAT:
            return number(value)
        case FieldKind.SHAPE:
            return shape(value)
        case FieldKind.NEW_SHAPE:
            return ["Infer" if extent is None else {"Explicit": dim(extent)} for extent in value]
        case FieldKind.PAIRS:
            return list(map(list, value))
        case FieldKind.SCALAR:
            return {value.kind: _plain(value.value)}
        case FieldKind.MAP:
            return {
                name: {"kind": tagged.kind, "value": _plain(tagged.value)} for name, tagged in value.items()
            }
    return value


def fields(values: Mapping[str, Any], known: Sequence[Field]) -> dict[str, Any]:
    """Return the fields of a spec, in the contract's order."""
    return {one.name: field(one.kind, values[one.name]) for one in known}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_plain, value))
    if isinstance(value, complex):
        return {"re": number(value.real), "im": number(value.imag)}
    return number(value) if isinstance(value, float) else value
