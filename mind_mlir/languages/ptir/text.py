"""The common parts of the display text and the compact text: their tokens, names and types.

Line breaks are spaces. A statement that cannot be read is one finding, and reading goes on with the next line
that begins like one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType
from mind_mlir.languages.ptir.reading import MAX_NESTING, Values, clip
from mind_mlir.languages.ptir.schema import DTYPE_NAMES, DTYPES
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.ir.types import Dim, ValueType
    from mind_mlir.languages.ptir.program import Program

_STRING = r'"(?:[^"\\\n]|\\[^\n])*+"'
_SKIPPED = re.compile(r"(?:[\s\ufeff]++|//[^\n]*+|\#[^\n]*+)*+")
_TOKEN = re.compile(
    rf"""(?P<VALUE>%(?:[0-9]++|[A-Za-z_][\w.]*+))
    |(?P<SYMBOL>@(?:[A-Za-z_][\w.]*+|{_STRING}))
    |(?P<REGION>\^r?[0-9]++)
    |(?P<STRING>{_STRING})
    |(?P<NUMBER>[-+]?[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?(?P<suffix>u?)|-(?:inf|NaN|nan)\b)
    |(?P<WORD>[A-Za-z_]\w*+)
    |(?P<ARROW>->)
    |(?P<MARK>[{{}}()\[\]<>,:=?])
    |(?P<OTHER>.)
    |(?P<END>\Z)""",
    re.X | re.S | re.A,
)
_TENSOR = re.compile(
    rf"""(?:tensor|dense)\s*+<\s*+(?P<dtype>\w++)\s*+
    (?:(?:,|x\b)\s*+(?P<shape>(?:[^">\n]|{_STRING})*+))?>""",
    re.X,
)
_DIM = re.compile(
    rf"""\s*+(?:(?P<extent>[0-9]++)|\?(?P<name>[A-Za-z_]\w*?)(?=\s*+(?:x\s*+[\d?]|\Z))|\?(?P<quoted>{_STRING}))
    \s*+(?P<more>x(?=\s*+[\d?]))?""",
    re.X | re.A,
)
_NAME = re.compile(r"[A-Za-z_][\w.]*\Z", re.A)
_SYMBOL_NAME = re.compile(r"(?!\w*x\d)[A-Za-z_]\w*\Z", re.A)
#: Words that `Values` knows for what JSON has no numbers for.
NON_FINITE = {"inf": "inf", "-inf": "-inf", "nan": "nan", "-nan": "nan", "NaN": "nan", "-NaN": "nan"}
_MAX_DIGITS = 4000


class Token(NamedTuple):
    """One token: its kind, a name in `_TOKEN`, its text, and where it stands."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class Unreadable(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """The statement cannot be read; ``finding`` says why."""

    finding: Diagnostic


def read_whole(reader: TextReader, program: Callable[[], Program | None]) -> Program:
    """Return what ``program`` reads with ``reader``.

    Raises:
        ParseError: Everything that is wrong with the text, in source order.
    """
    found = None
    try:
        found = program()
    except Unreadable as fault:
        reader.findings.add(fault.finding)
    if found is None or reader.findings.total:
        raise ParseError(reader.findings.in_source_order())
    return found


@dataclass(slots=True)
class TextReader:
    """Reads tokens, names and types of one source; what is wrong goes to the findings.

    Attributes:
        position: Where the next token begins, or the space before it.
        end: Where what was read last ends.
        depth: How deep what is being read nests, where that is limited.
    """

    source: SourceText
    findings: Findings = field(default_factory=Findings)
    position: int = 0
    end: int = 0
    depth: int = 0
    _next: Token | None = None

    # Tokens.

    def peek(self) -> Token:
        """Return the next token."""
        if self._next is None or self._next.start < self.position:
            found = _TOKEN.match(self.source.text, self.skip())
            assert found is not None, "one of the alternatives always matches"
            kind = found.lastgroup if found.lastgroup != "suffix" else "NUMBER"
            self._next = Token(kind or "END", found[0], found.start(), found.end())
            self.position = found.start()
        return self._next

    def skip(self) -> int:
        """Return where the next token begins, without looking at it: a string may be large."""
        skipped = _SKIPPED.match(self.source.text, self.position)
        assert skipped is not None, "it matches nothing, too"
        return skipped.end()

    def take(self) -> Token:
        """Return the next token and go behind it."""
        token = self.peek()
        self.go_to(token.end)
        return token

    def go_to(self, position: int) -> None:
        """Go on reading at a position."""
        self.position = self.end = position
        self._next = None

    def at(self, text: str) -> bool:
        """Return whether the next token is ``text``."""
        return self.peek().text == text

    def accept(self, text: str) -> bool:
        """Go behind the next token if it is ``text``."""
        if not self.at(text):
            return False
        self.take()
        return True

    def expect(self, text: str) -> Token:
        """Go behind the next token, which must be ``text``."""
        if not self.at(text):
            self.fail(f"'{text}'")
        return self.take()

    def kind(self, kind: str, what: str) -> Token:
        """Return the next token, which must be of a kind."""
        if self.peek().kind != kind:
            self.fail(what)
        return self.take()

    # Findings.

    def fail(self, expected: str, help_text: str | None = None) -> NoReturn:
        """Report that the next token is not what belongs there."""
        token = self.peek()
        found = f"'{clip(token.text)}'" if token.text else "the end of the text"
        message = f"syntax error: expected {expected}, found {found}"
        raise Unreadable(self.finding("E1101", message, token.start, token.end, help_text))

    def finding(
        self, code: str, message: str, start: int, end: int, help_text: str | None = None, **context: Any
    ) -> Diagnostic:
        """Return a finding about a part of the text; one that will only be counted has no words."""
        if self.findings.full:
            return Diagnostic(code, "")
        return Diagnostic(
            code, message, self.source.locate(start, end), (), help_text, context=FrozenDict(context)
        )

    def located(self, start: int, end: int | None = None) -> Location:
        """Return where a part of the text stands; up to here, where no end is given."""
        return self.source.locate(start, self.end if end is None else end)

    def recover(self, starts: re.Pattern[str]) -> None:
        """Go to the next line that begins as ``starts`` says, or to the end."""
        feed = self.source.text.find("\n", self.position)
        found = starts.search(self.source.text, feed + 1) if feed >= 0 else None
        self.go_to(found.start() if found else len(self.source.text))

    # Names and numbers.

    def name(self) -> str:
        """Return the name of a function: ``@main`` or ``@"any text"``."""
        token = self.kind("SYMBOL", "the name of a function, such as @main")
        return self.string(token.text[1:], token) if token.text[1] == '"' else token.text[1:]

    def string(self, spelled: str, token: Token) -> str:
        """Return what a quoted string means."""
        try:
            return str(json.loads(spelled))
        except ValueError:
            message = "Invalid escape sequence, or a character that may not stand in a string"
            help_text = 'the escapes are those of JSON: \\n, \\", \\\\, \\u00e9, ...'
            finding = self.finding("E1004", message, token.start, token.end, help_text, escape=clip(spelled))
            raise Unreadable(finding) from None

    def number(self, token: Token) -> int | float | str:
        """Return the number that a token spells; a word for what is not finite."""
        if token.text in NON_FINITE:
            return NON_FINITE[token.text]
        if len(token.text) > _MAX_DIGITS:
            message = f"a number of {len(token.text):,} digits is beyond every dtype"
            raise Unreadable(self.finding("E1005", message, token.start, token.end, text=clip(token.text)))
        text = token.text.removesuffix("u")
        if text.lstrip("+-").isdigit():
            return int(text)
        value = float(text)
        if value in (float("inf"), -float("inf")):
            message = f"the number {clip(text)} is beyond every float"
            raise Unreadable(self.finding("E1005", message, token.start, token.end, text=clip(text)))
        return value

    def identifier(self, digits: str, token: Token) -> int:
        """Return the number of a value or region."""
        if len(digits) > 19 or int(digits) >= 2**63:
            message = "the number of this value does not fit 64 bits"
            raise Unreadable(self.finding("E1005", message, token.start, token.end, text=clip(digits)))
        return int(digits)

    def region(self) -> int:
        """Return the number of a region: ``^0`` or ``^r0``."""
        token = self.kind("REGION", "a region, such as ^0")
        return self.identifier(token.text.lstrip("^r"), token)

    def symbol(self) -> tuple[str, int]:
        """Return the name of a symbolic extent, behind its question mark, and where it ends."""
        token = self.peek()
        if token.kind not in ("STRING", "WORD"):
            self.fail("the name of an extent, such as ?B")
        self.take()
        return (self.string(token.text, token) if token.kind == "STRING" else token.text), token.end

    def json(self) -> Any:
        """Return any JSON value."""
        start = self.peek().start
        try:
            data, end = json.JSONDecoder(parse_constant=_no_constant).raw_decode(self.source.text, start)
        except (ValueError, RecursionError):
            self.fail("a JSON value")
        values = Values()
        data = values.json(data, ())
        if values.problems:
            raise Unreadable(self.finding("E1101", values.problems[0].message, start, end))
        self.go_to(end)
        return data

    # Types.

    def value_type(self, depth: int = 0) -> ValueType:
        """Return the type of a value: ``tensor<...>`` or ``tuple<...>``."""
        token = self.peek()
        if token.text == "tensor":
            return self.tensor_type()
        if token.text != "tuple":
            self.fail("a type, such as tensor<f32, 4x8>")
        if depth == MAX_NESTING:
            message = f"tuple types nest more than {MAX_NESTING} levels deep"
            raise Unreadable(self.finding("E1101", message, token.start, token.end))
        self.take()
        self.expect("<")
        elements: list[ValueType] = []
        while not self.at(">"):
            if elements:
                self.expect(",")
            elements.append(self.value_type(depth + 1))
        self.take()
        return TupleType(tuple(elements))

    def tensor_type(self) -> TensorType:
        """Return the type behind ``tensor`` or ``dense``."""
        start = self.peek().start
        found = _TENSOR.match(self.source.text, start)
        if found is None:
            self.take()
            self.expect("<")
            self.fail("a dtype, a shape and '>', such as f32, 4x8>")
        dtype = self.dtype(found["dtype"], found.start("dtype"))
        self.go_to(found.end())
        shape = (found["shape"] or "").strip()
        return TensorType(dtype, self._shape(shape, found.start("shape")) if shape not in ("", "[]") else ())

    def dtype(self, name: str, start: int) -> DType:
        """Return the dtype of a name, in either text's spelling."""
        dtype = DTYPES.get(name) or DType.from_name(name)
        if dtype is None:
            known = [*DTYPE_NAMES.values(), *(dtype.value for dtype in DType)]
            message = f"unknown dtype '{clip(name)}'{did_you_mean(name, known)}"
            help_text = f"the dtypes are {', '.join(dtype.value for dtype in DType)}"
            raise Unreadable(self.finding("E1104", message, start, start + len(name), help_text, name=name))
        return dtype

    def _shape(self, text: str, start: int) -> tuple[Dim, ...]:
        dims: list[Dim] = []
        position, more = 0, True
        while more:
            found = _DIM.match(text, position)
            if found is None or (found.end() < len(text) and not found["more"]):
                message = f"syntax error: expected extents such as 4x?B, found '{clip(text)}'"
                raise Unreadable(self.finding("E1101", message, start, start + len(text)))
            if found["extent"]:
                place = Token("NUMBER", found["extent"], start + position, start + found.end())
                dims.append(self.identifier(found["extent"], place))
            else:
                place = Token("STRING", found[0], start + position, start + found.end())
                dims.append(SymbolicDim(found["name"] or self.string(found["quoted"], place)))
            position, more = found.end(), bool(found["more"])
        return tuple(dims)


def _no_constant(spelled: str) -> NoReturn:
    raise ValueError(spelled)


# Writing.


def spelled_name(name: str) -> str:
    """Return the name of a function as the texts write it."""
    return f"@{name}" if _NAME.match(name) else f"@{json.dumps(name)}"


def spelled_dims(shape: tuple[Dim, ...]) -> str:
    """Return ``4x?B``."""
    return "x".join(spelled_dim(extent) for extent in shape)


def spelled_dim(extent: Dim) -> str:
    """Return an extent; a name that could be read as more than one has quotes."""
    if not isinstance(extent, SymbolicDim):
        return str(extent)
    return f"?{extent.name}" if _SYMBOL_NAME.match(extent.name) else f"?{json.dumps(extent.name)}"
