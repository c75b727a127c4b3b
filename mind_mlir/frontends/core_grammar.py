"""The statement parser: Lark's LALR tables over our tokens, giving small syntax records.

The tables are built at the first parse (about 15 ms) and kept; importing this module builds nothing.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from lark import Lark, Transformer, UnexpectedToken
from lark.lexer import Lexer as LarkLexer

from mind_mlir.diagnostics import Diagnostic
from mind_mlir.frontends.core_lexer import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.frontends.core_lexer import Statement

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
#: Attributes and trailing arguments that one statement may have; far more than any operation takes.
MAX_ATTRIBUTES = 256
_FORM = "a statement reads %2 = Add (%0, %1) : tensor<f32[2, 3]>"


@dataclass(slots=True)
class PaddingSyntax:
    """``Custom([[t, b], [l, r]])``."""

    keyword: Token
    pairs: Token


RawValue: TypeAlias = Token | PaddingSyntax


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
class Arguments:
    """The operands and attributes of an operation.

    Attributes:
        values: The offsets, start and end, of each operand.
        others: The arguments that are no operands, each with the number of operands before it.
    """

    values: array[int] = field(default_factory=lambda: array("q"))
    others: list[tuple[int, Positional | Attribute]] = field(default_factory=list)

    def append(self, argument: Token | Positional | Attribute) -> Arguments:
        """Take one more argument and return this.

        Raises:
            TooManyArguments: No operation has so many attributes.
        """
        if isinstance(argument, Token):
            self.values.extend((argument.start_pos, argument.end_pos))
        elif len(self.others) == MAX_ATTRIBUTES:
            raise TooManyArguments
        else:
            self.others.append((len(self.values) // 2, argument))
        return self


@dataclass(slots=True)
class Definition:
    """``%0 = Opcode (...) {...} : type``."""

    result: Token
    opcode: Token
    arguments: Arguments
    type: Token


@dataclass(slots=True)
class Alias:
    """``%7 = %6``."""

    result: Token
    target: Token


@dataclass(slots=True)
class Outputs:
    """``outputs: %1, %2``; of the values, it has the offsets, start and end of each."""

    keyword: Token
    values: array[int]


Syntax: TypeAlias = Definition | Alias | Outputs


class TooManyArguments(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Ends the parsing of a statement that has more attributes than any operation."""


class _Builder(Transformer[Any, Any]):
    """Makes the records as the parser reduces; its methods are named after the rules."""

    def definition(self, children: list[Any]) -> Definition:
        result, opcode, *lists, type_ = children
        arguments = lists[0] if lists else Arguments()
        for more in lists[1:]:
            arguments.others += [(len(arguments.values) // 2, attribute) for _, attribute in more.others]
        return Definition(result, opcode, arguments, type_)

    def alias(self, children: list[Any]) -> Alias:
        return Alias(*children)

    def outputs(self, children: list[Any]) -> Outputs:
        return Outputs(children[0], children[1] if len(children) > 1 else array("q"))

    def values(self, children: list[Any]) -> array[int]:
        *before, token = children
        values: array[int] = before[0] if before else array("q")
        values.extend((token.start_pos, token.end_pos))
        return values

    def arguments(self, children: list[Any]) -> Arguments:
        *before, argument = children
        arguments: Arguments = before[0] if before else Arguments()
        return arguments.append(argument)

    attributes = arguments

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


def parse_statement(statement: Statement, source: SourceText, findings: Findings) -> Syntax | None:
    """Read one statement to its end and return its syntax.

    What is wrong goes to ``findings``, and there is no syntax then: E1101, saying what was expected where, or
    E1103. Where a lexical error has been reported, what the parser makes of the rest means little.
    """
    problem: Exception | None = None
    syntax: Syntax | None = None
    try:
        syntax = cast("Syntax", _parser().parse(cast("Any", statement)))
    except (UnexpectedToken, TooManyArguments) as error:
        problem = error
    culprit = statement.last
    statement.finish()
    if statement.broken:
        return None
    if findings.full and problem:
        findings.count()
    elif isinstance(problem, UnexpectedToken):
        findings.add(_unexpected(problem, statement, source))
    elif problem:
        message = f"no operation has more than {MAX_ATTRIBUTES} attributes"
        location = source.locate(culprit.start_pos, culprit.end_pos)
        findings.add(Diagnostic("E1103", message, location, (), _FORM))
    return syntax


def _unexpected(error: UnexpectedToken, statement: Statement, source: SourceText) -> Diagnostic:
    token = cast("Any", error.token)
    expected = error.accepts or error.expected
    if token.type == "$END":
        found, start, end = "the end of the line", statement.last.end_pos, statement.last.end_pos + 1
    else:
        start, end = token.start_pos, token.end_pos
        found = f"'{token.text if len(token.text) <= 24 else token.text[:20] + '...'}'"
    return Diagnostic(
        "E1101",
        f"syntax error: expected {_list_expected(expected, statement, start)}, found {found}",
        source.locate(start, end),
        (),
        _FORM,
    )


def _list_expected(expected: set[str], statement: Statement, start: int) -> str:
    first, second = statement.first, statement.second
    stray = first.type == "WORD" and first.text not in OUTPUTS_KEYWORDS
    if start == first.start_pos or (stray and second is not None and start == second.start_pos):
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
