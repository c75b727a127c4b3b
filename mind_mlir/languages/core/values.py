"""Turns attribute values as written into attribute values of the IR, led by the operation's schema."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import Padding, PaddingMode
from mind_mlir.ir.types import DType
from mind_mlir.languages.core.lists import read_list, read_literal
from mind_mlir.languages.core.numbers import float_value, integer_value
from mind_mlir.languages.core.syntax import PaddingSyntax
from mind_mlir.languages.core.tokens import ESCAPE, NUMBER, NUMBER_WORDS
from mind_mlir.languages.core.types import read_dtype

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue, TensorLiteral
    from mind_mlir.languages.core.syntax import RawValue
    from mind_mlir.languages.text.cursor import Token
    from mind_mlir.languages.text.report import Report
    from mind_mlir.ops.opdef import AttributeDef

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
