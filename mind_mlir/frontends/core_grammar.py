"""The statement parser: Lark's LALR tables over our tokens, giving small syntax records.

The tables are built at the first parse (about 15 ms) and kept; importing this module builds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from lark import Lark, Transformer, UnexpectedToken
from lark.lexer import Lexer as LarkLexer

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.frontends.core_lexer import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.frontends.core_lexer import Statement
    from mind_mlir.frontends.positions import Positions

#: How a message names what the grammar expects.
_READABLE = {
    "VALUE": "a value such as %0",
    "WORD": "a name",
    "TYPE": "a type such as tensor<f32[2, 3]>",
    "NUMBER": "a number",
    "STRING": "a string",
    "LIST": "a list",
    "_EQUAL": "'='",
    "_COLON": "':'",
    "_COMMA": "','",
    "_LPAR": "'('",
    "_RPAR": "')'",
    "_LBRACE": "'{'",
    "_RBRACE": "'}'",
    "$END": "the end of the statement",
}
_ATTRIBUTE_VALUE = {"WORD", "NUMBER", "STRING", "LIST"}
#: Both spellings of the word that begins the outputs line.
OUTPUTS_KEYWORDS = ("outputs", "output")
_FORM = "a statement reads %2 = Add (%0, %1) : tensor<f32[2, 3]>"


@dataclass(slots=True)
class PaddingSyntax:
    """``Custom([[t, b], [l, r]])``."""

    keyword: Token
    pairs: Token


RawValue: TypeAlias = Token | PaddingSyntax


@dataclass(slots=True)
class Operand:
    """A value read by an operation."""

    token: Token


@dataclass(slots=True)
class Positional:
    """A trailing argument of the grammar form."""

    value: RawValue


@dataclass(slots=True)
class Attribute:
    """``name=value`` or ``name: value``."""

    name: Token
    value: RawValue


@dataclass(slots=True)
class Definition:
    """``%0 = Opcode (...) {...} : type``."""

    result: Token
    opcode: Token
    arguments: list[Operand | Positional | Attribute]
    type: Token


@dataclass(slots=True)
class Alias:
    """``%7 = %6``."""

    result: Token
    target: Token


@dataclass(slots=True)
class Outputs:
    """``outputs: %1, %2``."""

    keyword: Token
    values: list[Token]


Syntax: TypeAlias = Definition | Alias | Outputs


class _Builder(Transformer[Any, Any]):
    """Makes the records as the parser reduces; its methods are named after the rules."""

    def definition(self, children: list[Any]) -> Definition:
        return Definition(children[0], children[1], children[2:-1], children[-1])

    def alias(self, children: list[Any]) -> Alias:
        return Alias(*children)

    def outputs(self, children: list[Any]) -> Outputs:
        return Outputs(children[0], children[1:])

    def operand(self, children: list[Any]) -> Operand:
        return Operand(*children)

    def positional(self, children: list[Any]) -> Positional:
        return Positional(*children)

    def attribute(self, children: list[Any]) -> Attribute:
        return Attribute(*children)

    def padding(self, children: list[Any]) -> PaddingSyntax:
        return PaddingSyntax(*children)


class _Passthrough(LarkLexer):
    """Hands ready tokens to the parser."""

    __future_interface__ = 2

    def __init__(self, lexer_conf: Any) -> None:
        del lexer_conf

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:
        del parser_state
        return iter(lexer_state.text)


@cache
def _parser() -> Lark:
    grammar = (Path(__file__).parent / "core_text.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=_Passthrough, transformer=_Builder())


def parse_statement(statement: Statement, positions: Positions) -> Syntax:
    """Parse one statement.

    Raises:
        ParseError: E1101, saying what was expected where.
    """
    try:
        return cast("Syntax", _parser().parse(cast("Any", statement.tokens)))
    except UnexpectedToken as error:
        raise ParseError(_unexpected(error, statement.tokens, positions)) from None


def _unexpected(error: UnexpectedToken, tokens: list[Token], positions: Positions) -> Diagnostic:
    token = cast("Any", error.token)
    expected = error.accepts or error.expected
    if token.type == "$END":
        found, start, end = "the end of the line", tokens[-1].end_pos, tokens[-1].end_pos + 1
    else:
        start, end = token.start_pos, token.end_pos
        found = f"'{token.text if len(token.text) <= 24 else token.text[:20] + '...'}'"
    return Diagnostic(
        "E1101",
        f"syntax error: expected {_list_expected(expected, tokens, start)}, found {found}",
        positions.locate(start, end),
        (),
        _FORM,
    )


def _list_expected(expected: set[str], tokens: list[Token], start: int) -> str:
    first = tokens[0]
    stray = first.type == "WORD" and first.text not in OUTPUTS_KEYWORDS
    if start == first.start_pos or (stray and len(tokens) > 1 and start == tokens[1].start_pos):
        return "a definition '%0 = ...' or 'outputs: ...'"
    if expected >= _ATTRIBUTE_VALUE:
        rest = ["an argument" if "VALUE" in expected else "an attribute value"]
        rest += [_READABLE[name] for name in _READABLE if name in expected and name in ("_RPAR", "_RBRACE")]
        return " or ".join(rest)
    if expected == {"WORD", "VALUE"}:
        return "an operation name or a value"
    if expected == {"WORD", "STRING"}:
        return "an attribute name"
    if expected >= {"_COLON", "_LBRACE"}:
        return "a list of operands, attributes or ': <type>'" if "_LPAR" in expected else "': <type>'"
    names = [text for name, text in _READABLE.items() if name in expected]
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else names[0]
