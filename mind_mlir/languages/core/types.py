"""Reads tensor types in the spellings of core-ir-text.md."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.ir.types import DType, SymbolicDim, TensorType
from mind_mlir.languages.core.tokens import MAX_ELEMENTS
from mind_mlir.support.suggestions import nearest

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.ir.types import Dim
    from mind_mlir.languages.core.tokens import Token

_WORD = r"[^\W\d]\w*"
# tensor<f32[2, 3]>, Tensor<f32, [2, 3]>, tensor<f32>; and tensor<[2, 3], f32>
_DTYPE_FIRST = re.compile(rf"\s*(?P<dtype>{_WORD})\s*(?:,?\s*\[(?P<shape>[^\[\]]*)\]\s*)?\Z")
_SHAPE_FIRST = re.compile(rf"\s*\[(?P<shape>[^\[\]]*)\]\s*,\s*(?P<dtype>{_WORD})\s*\Z")
_EXTENT = re.compile(rf"\s*(?:(?P<number>-?[0-9]+)|\?(?P<symbol>{_WORD}))\s*\Z")
_FORMS = "write a type as tensor<f32[2, 3]>, a scalar as tensor<f32[]>"
#: What people write for the dtypes when they come from elsewhere.
_FAMILIAR = {
    "bool": DType.I1,
    "double": DType.F64,
    "float": DType.F32,
    "float16": DType.F16,
    "float32": DType.F32,
    "float64": DType.F64,
    "bfloat16": DType.BF16,
    "half": DType.F16,
    "int": DType.SI64,
    "int8": DType.SI8,
    "int16": DType.SI16,
    "int32": DType.SI32,
    "int64": DType.SI64,
    "uint8": DType.UI8,
    "uint16": DType.UI16,
    "uint32": DType.UI32,
    "uint64": DType.UI64,
}


def read_type(token: Token, source: SourceText) -> TensorType:
    """Return the type that a TYPE token spells.

    Raises:
        ParseError: E1104 for an unknown dtype, E1005 for an extent beyond 64 bits, E4106 for more than
            `MAX_ELEMENTS` of them, E1101 for anything else that is not a type.
    """
    opening = token.text.index("<") + 1
    body, base = token.text[opening:-1], token.start_pos + opening
    match = _DTYPE_FIRST.match(body) or _SHAPE_FIRST.match(body)
    if match is None:
        raise _error(source, "E1101", f"malformed type '{token.text[:60]}'", token.start_pos, token.end_pos)
    dtype = read_dtype(match["dtype"], base + match.start("dtype"), source)
    shape = match["shape"]
    if shape is None or not shape.strip():
        return TensorType(dtype)
    return TensorType(dtype, _extents(shape, base + match.start("shape"), source))


def read_dtype(name: str, start: int, source: SourceText) -> DType:
    """Return the dtype called ``name``, which stands at offset ``start``.

    Raises:
        ParseError: E1104, suggesting a dtype where one is close.
    """
    dtype = DType.from_name(name)
    if dtype is not None:
        return dtype
    familiar = _FAMILIAR.get(name.lower())
    guess = familiar.core_name if familiar else nearest(name, [dtype.core_name for dtype in DType])
    suggestion = f"did you mean {guess}?" if guess else "the dtypes of Core v1 are i1, i32, i64, f32 and f64"
    message, end = f"unknown dtype '{name[:40]}'", start + len(name)
    raise _error(source, "E1104", message, start, end, suggestion, name=name)


def _extents(text: str, base: int, source: SourceText) -> tuple[Dim, ...]:
    extents: list[Dim] = []
    parts = text.split(",", MAX_ELEMENTS)
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()  # a list may end in a comma
    if len(parts) > MAX_ELEMENTS:
        message = f"a type has more than {MAX_ELEMENTS:,} extents"
        raise _error(source, "E4106", message, base, base + len(text), "merge dimensions", rank=len(parts))
    for part in parts:
        end = base + len(part)
        match = _EXTENT.match(part)
        if match is None:
            found = f"'{part.strip()[:40]}'" if part.strip() else "nothing"
            raise _error(source, "E1101", f"expected an extent, found {found}", base, max(end, base + 1))
        if match["symbol"]:
            extents.append(SymbolicDim(match["symbol"]))
        elif len(match["number"]) > 20 or not -(2**63) <= int(match["number"]) < 2**63:
            raise _error(
                source, "E1005", "this extent does not fit 64 bits", base, end, "use a smaller extent"
            )
        else:
            extents.append(int(match["number"]))
        base = end + 1
    return tuple(extents)


def _error(
    source: SourceText,
    code: str,
    message: str,
    start: int,
    end: int,
    help_text: str = _FORMS,
    **context: object,
) -> ParseError:
    location = source.locate(start, end)
    return ParseError(Diagnostic(code, message, location, (), help_text, context=MappingProxyType(context)))
