"""The common parts of the display text and the compact text: their tokens, names and types.

Line breaks are spaces. A statement that cannot be read is one finding, and reading goes on with the next line
that begins like one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeAlias

from mind_mlir.diagnostics import Location, ParseError, SourceText
from mind_mlir.ir.types import Dim, DType, SymbolicDim, TensorType, TupleType, ValueType
from mind_mlir.languages.ptir.operation_reading import InstructionValues
from mind_mlir.languages.ptir.program import Function, Operation, Program, Region
from mind_mlir.languages.ptir.reading import MAX_NESTING, Path, ValueConverter, clip
from mind_mlir.languages.ptir.rules import check_functions, check_regions, wrong_version
from mind_mlir.languages.ptir.schema import DTYPE_NAMES, DTYPES
from mind_mlir.languages.text.cursor import Cursor, Token, token_pattern
from mind_mlir.languages.text.report import Report, Span
from mind_mlir.support.suggestions import did_you_mean

#: Where each part of some data stands.
Spans: TypeAlias = "dict[Path, Span]"

_STRING = r'"(?:[^"\\\n]|\\[^\n])*+"'
_BLANK = r"(?:[\s\ufeff]++|//[^\n]*+|\#[^\n]*+)*+"
_SKIPPED = re.compile(_BLANK)
_KINDS = token_pattern(
    {
        "VALUE": r"%(?:[0-9]++|[A-Za-z_][\w.]*+)",
        "SYMBOL": rf"@(?:[A-Za-z_][\w.]*+|{_STRING})",
        "REGION": r"\^r?[0-9]++",
        "STRING": _STRING,
        "NUMBER": r"[-+]?[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?u?|-(?:inf|NaN|nan)\b",
        "WORD": r"[A-Za-z_]\w*+",
        "MARK": r"->|[{}()\[\]<>,:=?]",
        "OTHER": ".",
        "END": r"\Z",
    },
    flags=re.S | re.A,
)
#: A token, and what stands before it.
_TOKEN = re.compile(f"(?u:{_BLANK})(?:{_KINDS.pattern})", _KINDS.flags)
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
#: Words that `ValueConverter` knows for what JSON has no numbers for.
NON_FINITE = {"inf": "inf", "-inf": "-inf", "nan": "nan", "-nan": "nan", "NaN": "nan", "-NaN": "nan"}
_MAX_DIGITS = 4000


class TextReader(Cursor):
    """Reads tokens, names and types of one source, and what programs have in either text.

    Attributes:
        report: What is wrong goes there.
        text: That of the source.
        end: Where what was read last ends.
        depth: How deep what is being read nests, where that is limited.
    """

    def __init__(self, source: SourceText) -> None:
        self.report = Report(source)
        self._fault = 0  # where the last fault begins
        self.text = source.text
        self.depth = 0
        self.functions: list[Function] = []
        self.regions: list[Region] = []
        self.go_to(0)

    def read(self) -> Program:
        """Return the program.

        Raises:
            ParseError: Everything that is wrong with the text, in source order.
        """
        findings, found = self.report.findings, None
        try:
            found = self.program()
        except ParseError as fault:
            findings.extend(fault.diagnostics)
        if found is None or findings.total:
            raise ParseError(findings.in_source_order())
        return found

    def program(self) -> Program | None:
        """Return the program, or what can be read of it; None where that is nothing."""
        raise NotImplementedError

    def definitions(
        self,
        closing: str,
        function: Callable[[], Function],
        region: Callable[[], Region],
        starts: re.Pattern[str],
    ) -> None:
        """Read functions and regions up to ``closing``; ``starts`` is where to go on behind a mistake."""
        readers = {
            "func": lambda: self.functions.append(function()),
            "region": lambda: self.regions.append(region()),
        }
        while not self.accept(closing):
            try:
                if self.word not in readers:
                    self.fail(f"'func', 'region' or '{closing}'" if closing else "'func' or 'region'")
                readers[self.word]()
            except ParseError as fault:
                self.recover(fault, starts)
                if self.token.kind == "END":
                    break

    def checked(self, entry: str, place: Location | None) -> Program:
        """Return the program of what has been read, after a look at what its parts say of one another."""
        findings = self.report.findings
        if not findings.total:
            check_functions(self.functions, entry, findings, place)
        check_regions(self.regions, findings)
        return Program(tuple(self.functions), tuple(self.regions), entry)

    def check_version(self, version: str, place: Location) -> None:
        """Report a version that is another one than ours."""
        if finding := wrong_version(version, place):
            self.report.findings.add(finding)

    # Tokens.

    def advance(self) -> Token:
        """Go behind the next token, and return it."""
        token = self.token
        self.go_to(token.end)
        return token

    def go_to(self, position: int) -> None:
        """Go on reading at a position."""
        self.end = position
        found = _TOKEN.match(self.text, position)
        assert found is not None, "one of the alternatives always matches"
        kind = found.lastgroup or "END"
        self.word = found[kind]
        self.token = Token(kind, self.word, *found.span(kind))

    def skip(self, position: int) -> int:
        """Return where the token behind a position begins, without looking at it: a string may be large."""
        skipped = _SKIPPED.match(self.text, position)
        assert skipped is not None, "it matches nothing, too"
        return skipped.end()

    def kind(self, kind: str, what: str) -> Token:
        """Return the next token, which must be of a kind."""
        return self.advance() if self.token.kind == kind else self.fail(what)

    # Findings.

    def error(
        self, code: str, message: str, span: Span, help_: str | None = None, /, **context: Any
    ) -> ParseError:
        """Return what ends the reading of a statement, for a reason that stands in a place."""
        self._fault = span[0]
        return self.report.error(code, message, span, help_, **context)

    def expected(self, what: str, help_: str | None = None) -> ParseError:
        """Return what ends the reading of a statement that the next token does not belong to."""
        found = f"'{clip(self.word)}'" if self.word else "the end of the text"
        message = f"syntax error: expected {what}, found {found}"
        return self.error("E1101", message, self.token.span, help_)

    def unexpected(self, token: Token, what: str) -> NoReturn:
        """End the reading of a statement at a token that has been taken."""
        self.go_to(token.start)
        self.fail(what)

    def located(self, start: int) -> Location:
        """Return where a part of the text stands that ends here."""
        return self.report.locate((start, self.end))

    def recover(self, fault: ParseError, starts: re.Pattern[str]) -> None:
        """Report a fault, and go to the next line that begins as ``starts`` says, or to the end."""
        self.report.findings.extend(fault.diagnostics)
        self.depth = 0  # what was being read is left
        start = self.token.start
        feed = self.text.find("\n", start if self._fault >= start else self.end)
        found = starts.search(self.text, feed + 1) if feed >= 0 else None
        self.go_to(found.start() if found else len(self.text))

    def unknown_operation(self, name: Token, known: Iterable[str], help_: str) -> ParseError:
        """Return E1102 about the name of an operation."""
        suggestion = "" if self.report.findings.full else did_you_mean(name.text, known)
        message = f"unknown operation '{clip(name.text)}'{suggestion}"
        return self.error("E1102", message, name.span, help_, operation=name.text, suggestion=suggestion)

    def operation(self, data: Any, spans: Spans) -> Operation | None:
        """Return the operation that data mean; None where something is wrong with them."""
        values = InstructionValues()
        operation = values.operation(data, ())
        self.report_problems(values, spans)
        return None if values.problems else operation

    def report_problems(self, values: ValueConverter, spans: Spans) -> None:
        """Report what is wrong with data, at the innermost parts whose places are known."""
        for problem in values.problems:
            path = problem.path
            while path not in spans and path:
                path = path[:-1]
            span = problem.span or spans.get(path, (self.end - 1, self.end))
            self.report.add(problem.code, problem.message, span, problem.help, **problem.context)

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
            raise self.error("E1004", message, token.span, help_text, escape=clip(spelled)) from None

    def number(self, token: Token) -> int | float | str:
        """Return the number that a token spells; a word for what is not finite."""
        if token.text in NON_FINITE:
            return NON_FINITE[token.text]
        if len(token.text) > _MAX_DIGITS:
            message = f"a number of {len(token.text):,} digits is beyond every dtype"
            raise self.error("E1005", message, token.span, text=clip(token.text))
        text = token.text.removesuffix("u")
        if text.lstrip("+-").isdigit():
            return int(text)
        value = float(text)
        if value in (float("inf"), -float("inf")):
            message = f"the number {clip(text)} is beyond every float"
            raise self.error("E1005", message, token.span, text=clip(text))
        return value

    def identifier(self, digits: str, token: Token) -> int:
        """Return the number of a value or region."""
        if len(digits) > 19 or int(digits) >= 2**63:
            message = "the number of this value does not fit 64 bits"
            raise self.error("E1005", message, token.span, text=clip(digits))
        return int(digits)

    def region_number(self) -> int:
        """Return the number of a region: ``^0`` or ``^r0``."""
        token = self.kind("REGION", "a region, such as ^0")
        return self.identifier(token.text.lstrip("^r"), token)

    def element_number(self) -> int:
        """Return the number of an element of a tuple, behind its opening bracket."""
        index = self.kind("NUMBER", "the number of an element")
        if not index.text.isdigit():
            self.unexpected(index, "the number of an element")
        self.expect("]")
        return self.identifier(index.text, index)

    def symbol(self) -> tuple[str, int]:
        """Return the name of a symbolic extent, behind its question mark, and where it ends."""
        if self.token.kind not in ("STRING", "WORD"):
            self.fail("the name of an extent, such as ?B")
        token = self.advance()
        return (self.string(token.text, token) if token.kind == "STRING" else token.text), token.end

    def json(self) -> Any:
        """Return any JSON value."""
        start = self.token.start
        try:
            data, end = json.JSONDecoder(parse_constant=_no_constant).raw_decode(self.text, start)
        except (ValueError, RecursionError):
            self.fail("a JSON value")
        values = ValueConverter()
        data = values.json(data, ())
        if values.problems:
            raise self.error("E1101", values.problems[0].message, (start, end))
        self.go_to(end)
        return data

    # Types.

    def value_type(self, depth: int = 0) -> ValueType:
        """Return the type of a value: ``tensor<...>`` or ``tuple<...>``."""
        token = self.token
        if token.text == "tensor":
            type_, end = self.tensor_type()
            self.go_to(end)
            return type_
        if token.text != "tuple":
            self.fail("a type, such as tensor<f32, 4x8>")
        if depth == MAX_NESTING:
            message = f"tuple types nest more than {MAX_NESTING} levels deep"
            raise self.error("E1101", message, token.span)
        self.advance()
        self.expect("<")
        return TupleType(tuple(self.types(">", depth + 1)))

    def types(self, closing: str, depth: int = 0) -> list[ValueType]:
        """Return types with commas between them, up to a closing bracket."""
        return [self.value_type(depth) for _ in self.separated(closing, trailing=False)]

    def tensor_type(self) -> tuple[TensorType, int]:
        """Return the type that ``tensor`` or ``dense`` begins here, and where it ends."""
        found = _TENSOR.match(self.text, self.token.start)
        if found is None:
            self.advance()
            self.expect("<")
            self.fail("a dtype, a shape and '>', such as f32, 4x8>")
        dtype = self.dtype(found["dtype"], found.start("dtype"))
        shape = (found["shape"] or "").strip()
        dims = self._shape(shape, found.start("shape")) if shape not in ("", "[]") else ()
        return TensorType(dtype, dims), found.end()

    def dtype(self, name: str, start: int) -> DType:
        """Return the dtype of a name, in either text's spelling."""
        dtype = DTYPES.get(name) or DType.from_name(name)
        if dtype is None:
            known = [*DTYPE_NAMES.values(), *(dtype.value for dtype in DType)]
            message = f"unknown dtype '{clip(name)}'{did_you_mean(name, known)}"
            help_text = f"the dtypes are {', '.join(dtype.value for dtype in DType)}"
            span = (start, start + len(name))
            raise self.error("E1104", message, span, help_text, name=name)
        return dtype

    def _shape(self, text: str, start: int) -> tuple[Dim, ...]:
        dims: list[Dim] = []
        position, more = 0, True
        while more:
            found = _DIM.match(text, position)
            if found is None or (found.end() < len(text) and not found["more"]):
                message = f"syntax error: expected extents such as 4x?B, found '{clip(text)}'"
                raise self.error("E1101", message, (start, start + len(text)))
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
