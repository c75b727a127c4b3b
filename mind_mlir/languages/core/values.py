"""Turns attribute values as written into attribute values of the IR, led by the operation's schema."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.ir.attributes import Padding, PaddingMode
from mind_mlir.ir.types import DType
from mind_mlir.languages.core.lists import Leaf, read_list, read_literal
from mind_mlir.languages.core.numbers import float_value, integer_value
from mind_mlir.languages.core.syntax import PaddingSyntax
from mind_mlir.languages.core.tokens import ESCAPE, NUMBER, NUMBER_WORDS, Token
from mind_mlir.languages.core.types import read_dtype

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.ir.attributes import AttributeValue, TensorLiteral
    from mind_mlir.languages.core.syntax import RawValue
    from mind_mlir.ops.opdef import AttributeDef

_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}
_SIMPLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}

Element: TypeAlias = Token | Leaf


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Converts the attribute values of one source.

    A value that is not of the kind its schema asks for is converted by its own look (a number, a word, a
    list), so that the verifier can say what is wrong with it.
    """

    source: SourceText

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
            found = schema.kind.read(_Written(self, raw), dtype)
            if found is not None:
                return found
        if raw.type == "LIST":
            return read_list(raw, self.source, self._scalar)
        return self._scalar(raw)

    def string(self, token: Token) -> str:
        """Return the string that a STRING or WORD token spells."""
        return self._text(token)

    def _scalar(self, element: Element) -> AttributeValue:
        """Convert one element by its look."""
        kind = element.kind if isinstance(element, Leaf) else element.type
        text = element.text
        if kind == "NUMBER" or text in NUMBER_WORDS:
            return self._number(element)
        if kind == "STRING":
            return _unescape(text)
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        return DType.from_name(text) or _bare_padding(text) or text

    def _text(self, token: Token) -> str:
        return _unescape(token.text) if token.type == "STRING" else token.text

    def _number(self, element: Element) -> int | float:
        text = element.text
        match = NUMBER.match(text)
        assert match is not None, "the lexer has checked every number"
        if match["integer"] is not None:
            try:
                return integer_value(text)
            except ValueError:
                self._fail("E1005", "this number fits no integer type", element)
        value = float_value(text)
        if math.isinf(value) and "inf" not in text:
            self._fail("E1005", f"{text[:40]} is out of range of f64", element, "write inf for an infinity")
        return value

    def _custom_padding(self, raw: PaddingSyntax) -> Padding:
        if raw.keyword.text.lower() != "custom":
            self._fail(
                "E1103",
                f"unknown padding '{raw.keyword.text}'",
                raw.keyword,
                "paddings are Valid, Same and Custom([[top, bottom], [left, right]])",
            )
        pairs: Any = read_list(raw.pairs, self.source, self._scalar)
        for pair in pairs:
            if not isinstance(pair, tuple) or not all(type(extent) is int for extent in pair):
                self._fail(
                    "E1103",
                    "padding must be given as pairs of integers",
                    raw.pairs,
                    "write Custom([[top, bottom], [left, right]])",
                )
        return Padding(PaddingMode.CUSTOM, pairs)

    def _fail(self, code: str, message: str, element: Element, help_text: str | None = None) -> NoReturn:
        location = self.source.locate(element.start_pos, element.end_pos)
        raise ParseError(Diagnostic(code, message, location, (), help_text))


@dataclass(frozen=True, slots=True)
class _Written:
    """One value as the record of its kind sees it."""

    reader: ValueReader
    token: Token

    @property
    def word(self) -> str | None:
        return self.reader.string(self.token) if self.token.type in ("WORD", "STRING") else None

    @property
    def is_quoted(self) -> bool:
        return self.token.type == "STRING"

    @property
    def is_numeric(self) -> bool:
        return self.token.type in ("LIST", "NUMBER") or self.token.text in (*_BOOLEANS, *NUMBER_WORDS)

    def dtype(self) -> DType:
        start = self.token.start_pos + self.is_quoted
        return read_dtype(self.reader.string(self.token), start, self.reader.source)

    def literal(self, dtype: DType) -> TensorLiteral:
        return read_literal(self.token, self.reader.source, dtype)


def _bare_padding(text: str) -> Padding | None:
    """Return the padding mode that is spelled exactly as the printer does it, or None."""
    return Padding(PaddingMode(text)) if text in ("Valid", "Same") else None


def _unescape(quoted: str) -> str:
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    return ESCAPE.sub(
        lambda match: _SIMPLE_ESCAPES[match["simple"]] if match["simple"] else chr(int(match["code"], 16)),
        body,
    )
