"""Turns types and attribute values as written into those of the IR, values led by the operation's schema."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import AttributeValue, Padding, PaddingMode, TensorLiteral
from mind_mlir.ir.types import Dim, DType, SymbolicDim, TensorType
from mind_mlir.languages.core.lists import parts_at_commas, read_list, read_literal
from mind_mlir.languages.core.numbers import float_value, integer_value
from mind_mlir.languages.core.syntax import PaddingSyntax, RawValue
from mind_mlir.languages.core.tokens import ESCAPE, MAX_ELEMENTS, NUMBER, NUMBER_WORDS
from mind_mlir.languages.text.cursor import Token
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import nearest

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Report
    from mind_mlir.ops.opdef import AttributeDef

_WORD = r"[^\W\d]\w*"
# tensor<f32[2, 3]>, Tensor<f32, [2, 3]>, tensor<f32>; and tensor<[2, 3], f32>
_DTYPE_FIRST = re.compile(rf"\s*(?P<dtype>{_WORD})\s*(?:,?\s*\[(?P<shape>[^\[\]]*)\]\s*)?\Z")
_SHAPE_FIRST = re.compile(rf"\s*\[(?P<shape>[^\[\]]*)\]\s*,\s*(?P<dtype>{_WORD})\s*\Z")
_EXTENT = re.compile(rf"\s*(?:(?P<number>-?[0-9]+)|\?(?P<symbol>{_WORD}))\s*\Z")
_RANGE = re.compile(r"\s*([-+]?[0-9]{1,20})\s*:\s*([-+]?[0-9]{1,20})\s*(?::\s*([-+]?[0-9]{1,20})\s*)?\Z")
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


def read_type(token: Token, report: Report) -> TensorType:
    """Return the type that a TYPE token spells.

    Raises:
        ParseError: E1104 for an unknown dtype, E1005 for an extent beyond 64 bits, E4106 for more than
            `MAX_ELEMENTS` of them, E1101 for anything else that is not a type.
    """
    opening = token.text.index("<") + 1
    body, base = token.text[opening:-1], token.start + opening
    match = _DTYPE_FIRST.match(body) or _SHAPE_FIRST.match(body)
    if match is None:
        raise report.error("E1101", f"malformed type '{token.text[:60]}'", token.span, _FORMS)
    dtype = read_dtype(match["dtype"], base + match.start("dtype"), report)
    shape = match["shape"]
    if shape is None or not shape.strip():
        return TensorType(dtype)
    start, end = match.span("shape")
    return TensorType(dtype, _extents(Token("LIST", f"[{shape}]", base + start - 1, base + end + 1), report))


def read_dtype(name: str, start: int, report: Report) -> DType:
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
    raise report.error(
        "E1104", f"unknown dtype '{name[:40]}'", (start, start + len(name)), suggestion, name=name
    )


def _extents(token: Token, report: Report) -> tuple[Dim, ...]:
    extents: list[Dim] = []
    parts = parts_at_commas(token)
    if parts is None:
        message, span = f"a type has more than {MAX_ELEMENTS:,} extents", (token.start + 1, token.end - 1)
        raise report.error("E4106", message, span, "merge dimensions", rank=MAX_ELEMENTS + 1)
    for part, start in parts:
        end = start + len(part)
        match = _EXTENT.match(part)
        if match is None:
            found = f"'{part.strip()[:40]}'" if part.strip() else "nothing"
            span = (start, max(end, start + 1))
            raise report.error("E1101", f"expected an extent, found {found}", span, _FORMS)
        if match["symbol"]:
            extents.append(SymbolicDim(match["symbol"]))
        elif len(match["number"]) > 20 or not -(2**63) <= int(match["number"]) < 2**63:
            raise report.error(
                "E1005", "this extent does not fit 64 bits", (start, end), "use a smaller extent"
            )
        else:
            extents.append(int(match["number"]))
    return tuple(extents)


def read_ranges(token: Token, report: Report) -> tuple[tuple[int, ...], ...]:
    """Return the starts, ends and steps of a list of ranges, ``[0:2, 0:3:2]``; a step left out is 1.

    Raises:
        ParseError: E1101 where an element is not ``start:end`` or ``start:end:step``; E1103 for more than
            `MAX_ELEMENTS` of them.
    """
    parsed: list[tuple[int, int, int]] = []
    parts = parts_at_commas(token)
    if parts is None:
        raise report.error("E1103", f"the list has more than {MAX_ELEMENTS:,} ranges", token.span)
    for part, start in parts:
        match = _RANGE.match(part)
        if match is None:
            message = (
                f"syntax error: expected a range start:end or start:end:step, found '{part.strip()[:40]}'"
            )
            span = (start, start + max(1, len(part)))
            raise report.error("E1101", message, span, "write the ranges as [0:2, 0:3:2]")
        parsed.append((int(match[1]), int(match[2]), int(match[3] or 1)))
    return tuple(tuple(each) for each in zip(*parsed, strict=True))


_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}
_SIMPLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Converts the attribute values of one source.

    A value that is not of the kind its schema asks for is converted by its own look (a number, a word, a
    list), so that the verifier can say what is wrong with it.
    """

    report: Report

    def read(self, raw: RawValue, schema: AttributeDef | None, dtype: DType) -> AttributeValue:
        """Return the value of ``raw``.

        Args:
            raw: The value as written.
            schema: The attribute's record, or None where the operation or the attribute is unknown.
            dtype: The element type of a literal.

        Raises:
            ParseError: The text spells no value (E1101, E1005), no dtype (E1104), or a literal that its
                dtype (E4005) or the shape of a tensor (E3010) does not allow.
        """
        if isinstance(raw, PaddingSyntax):
            return self._custom_padding(raw)
        if schema is not None:
            found = schema.kind.read(_Written(self.report, raw), dtype)
            if found is not None:
                return found
        if raw.kind == "LIST":
            return read_list(raw, self.report, self._scalar)
        return self._scalar(raw)

    def _scalar(self, element: Token) -> AttributeValue:
        """Convert one element by its look."""
        text = element.text
        if element.kind == "NUMBER" or text in NUMBER_WORDS:
            return self._number(element)
        if element.kind == "STRING":
            return _unescape(text)
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if text in ("Valid", "Same"):  # as the printer spells them
            return Padding(PaddingMode(text))
        return DType.from_name(text) or text

    def _number(self, element: Token) -> int | float:
        text = element.text
        match = NUMBER.match(text)
        assert match is not None, "the lexer has checked every number"
        if match["integer"] is not None:
            try:
                return integer_value(text)
            except ValueError:
                raise self.report.error("E1005", "this number fits no integer type", element.span) from None
        value = float_value(text)
        if math.isinf(value) and "inf" not in text:
            help_ = "write inf for an infinity"
            raise self.report.error("E1005", f"{text[:40]} is out of range of f64", element.span, help_)
        return value

    def _custom_padding(self, raw: PaddingSyntax) -> Padding:
        if raw.keyword.text.lower() != "custom":
            message = f"unknown padding '{raw.keyword.text}'"
            help_ = "paddings are Valid, Same and Custom([[top, bottom], [left, right]])"
            raise self.report.error("E1103", message, raw.keyword.span, help_)
        pairs: Any = read_list(raw.pairs, self.report, self._scalar)
        for pair in pairs:
            if not isinstance(pair, tuple) or not all(type(extent) is int for extent in pair):
                message = "padding must be given as pairs of integers"
                help_ = "write Custom([[top, bottom], [left, right]])"
                raise self.report.error("E1103", message, raw.pairs.span, help_)
        return Padding(PaddingMode.CUSTOM, pairs)


@dataclass(frozen=True, slots=True)
class _Written:
    """One value as the record of its kind sees it."""

    report: Report
    token: Token

    @property
    def word(self) -> str | None:
        return spelled(self.token) if self.token.kind in ("WORD", "STRING") else None

    @property
    def is_quoted(self) -> bool:
        return self.token.kind == "STRING"

    @property
    def is_numeric(self) -> bool:
        return self.token.kind in ("LIST", "NUMBER") or self.token.text in (*_BOOLEANS, *NUMBER_WORDS)

    def dtype(self) -> DType:
        return read_dtype(spelled(self.token), self.token.start + self.is_quoted, self.report)

    def literal(self, dtype: DType) -> TensorLiteral:
        return read_literal(self.token, self.report, dtype)


def spelled(token: Token) -> str:
    """Return the string that a STRING or WORD token spells."""
    return _unescape(token.text) if token.kind == "STRING" else token.text


def _unescape(quoted: str) -> str:
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    return ESCAPE.sub(
        lambda match: _SIMPLE_ESCAPES[match["simple"]] if match["simple"] else chr(int(match["code"], 16)),
        body,
    )
