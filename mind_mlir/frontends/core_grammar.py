"""The statement parser: Lark's LALR tables over our tokens, giving small syntax records.

The tables are built at the first parse (about 15 ms) and kept; importing this module builds nothing.
"""

from __future__ import annotations

from array import array
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lark import Lark, Transformer, UnexpectedToken
from lark.lexer import Lexer as LarkLexer

from mind_mlir.diagnostics import Diagnostic
from mind_mlir.frontends.core_syntax import (
    MAX_ATTRIBUTES,
    NO_RESULTS,
    Alias,
    Arguments,
    Attribute,
    BranchSyntax,
    Closing,
    Definition,
    Exit,
    Head,
    Integers,
    Label,
    Offsets,
    Outputs,
    PaddingSyntax,
    Parameter,
    Parameters,
    Positional,
    TargetSyntax,
    TooManyArguments,
    Types,
)
from mind_mlir.frontends.core_tokens import HEAD, Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.frontends.core_syntax import Syntax
    from mind_mlir.frontends.core_tokens import Statement

T = TypeVar("T")

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
    "LABEL": "a label such as ^body",
    "SYMBOL": "a name such as @main",
    "FUNC": "'func'",
    "OPEN": "'{'",
    "_ARROW": "'->'",
    "$END": "the end of the statement",
}
_ATTRIBUTE_VALUE = {"WORD", "NUMBER", "STRING", "LIST"}
#: Both spellings of the word that begins the outputs line.
OUTPUTS_KEYWORDS = ("outputs", "output")
_FORM = "a statement reads %2 = Add (%0, %1) : tensor<f32[2, 3]>"
_CALL = "call"
#: What a statement of the function form reads like, by its first word.
_FORMS = {
    **dict.fromkeys(HEAD, "a function begins with func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {"),
    "LABEL": "a block begins with a label such as ^body: or ^body(%x: tensor<f32[2]>):",
    "BR": "a branch reads br ^body(%x)",
    "COND_BR": "a branch reads cond_br %p, ^then(%x), ^else",
    "EXIT": "a terminator lists values: return %x, %y",
    _CALL: "a call defines its results: %1 = call @f (%0) : tensor<f32[2]>",
    "CLOSE": "a brace closes a function, or the regions of an operation",
}
_STATEMENTS = "a function, a label '^body:', an operation '%0 = ...', a terminator or '}'"


class _Builder(Transformer[Any, Any]):
    """Makes the records as the parser reduces; its methods are named after the rules."""

    def definition(self, children: list[Any]) -> Definition:
        last = children.pop()
        opens = _is(last, "OPEN")
        types = _types(children.pop() if opens else last)
        result, others, place = children[0], NO_RESULTS, 1
        if type(children[1]) is not Token:
            others, place = children[1], 2
        opcode, lists = children[place], children[place + 1 :]
        callee = lists.pop(0) if lists and isinstance(lists[0], Token) else None
        arguments = lists[0] if len(lists) == 1 else _joined(lists)
        return Definition(result, others, opcode, callee, arguments, types, opens)

    def alias(self, children: list[Any]) -> Alias:
        return Alias(*children)

    def outputs(self, children: list[Any]) -> Outputs:
        return Outputs(children[0], _or_empty(children, Offsets))

    def head(self, children: list[Any]) -> Head:
        visibility = children.pop(0) if _is(children[0], "VISIBILITY") else None
        _, name, *rest, _ = children
        parameters = rest.pop(0) if rest and isinstance(rest[0], Parameters) else Parameters()
        return Head(visibility, name, parameters, _types(rest[0]) if rest else Types())

    def label(self, children: list[Any]) -> Label:
        return Label(children[0], _or_empty(children, Parameters))

    def branch(self, children: list[Any]) -> BranchSyntax:
        keyword, target = children
        return BranchSyntax(keyword, None, (target,))

    def cond_branch(self, children: list[Any]) -> BranchSyntax:
        keyword, condition, *targets = children
        return BranchSyntax(keyword, condition, tuple(targets))

    def target(self, children: list[Any]) -> TargetSyntax:
        return TargetSyntax(children[0], _or_empty(children, Offsets))

    def exit(self, children: list[Any]) -> Exit:
        return Exit(children[0], _or_empty(children, Offsets))

    def closing(self, children: list[Any]) -> Closing:
        return Closing(*children)

    def values(self, children: list[Any]) -> Offsets:
        *before, token = children
        values: Offsets = before[0] if before else Offsets()
        values.extend((token.start_pos, token.end_pos))
        return values

    types = values

    def type_list(self, children: list[Any]) -> Types:
        return Types(*children)

    def parameters(self, children: list[Any]) -> Parameters:
        *before, parameter = children
        parameters: Parameters = before[0] if before else Parameters()
        if parameter.attributes is not None:
            parameters.attributes[len(parameters.offsets) // 4] = parameter.attributes
        value, type_ = parameter.value, parameter.type
        parameters.offsets.extend((value.start_pos, value.end_pos, type_.start_pos, type_.end_pos))
        return parameters

    def parameter(self, children: list[Any]) -> Parameter:
        value, *attributes, type_ = children
        return Parameter(value, attributes[0] if attributes else None, type_)

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


def _is(child: object, kind: str) -> bool:
    return isinstance(child, Token) and child.type == kind


def _or_empty(children: list[Any], kind: type[T]) -> T:
    """Return what follows the first of a rule's parts, or an empty one."""
    return cast("T", children[1]) if len(children) > 1 else kind()


def _types(child: Token | Types) -> Integers:
    return array("q", (child.start_pos, child.end_pos)) if isinstance(child, Token) else child


def _joined(lists: list[Arguments]) -> Arguments:
    """Return what stands in the parentheses and in the braces as one."""
    arguments = lists[0] if lists else Arguments()
    for more in lists[1:]:
        arguments.others += [(len(arguments.values) // 2, attribute) for _, attribute in more.others]
    return arguments


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


def parse_statement(
    statement: Statement, source: SourceText, findings: Findings, *, functions: bool = False
) -> Syntax | None:
    """Read one statement, of a text in function form or not, to its end and return its syntax.

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
        findings.add(_unexpected(problem, statement, source, functions=functions))
    elif problem:
        message = f"no operation has more than {MAX_ATTRIBUTES} attributes"
        location = source.locate(culprit.start_pos, culprit.end_pos)
        findings.add(Diagnostic("E1103", message, location, (), _FORM))
    return syntax


def _unexpected(
    error: UnexpectedToken, statement: Statement, source: SourceText, *, functions: bool
) -> Diagnostic:
    token = cast("Any", error.token)
    expected = set(error.accepts or error.expected) - (set() if functions else {"OPEN", "SYMBOL"})
    if token.type == "$END":
        found, start, end = "the end of the line", statement.last.end_pos, statement.last.end_pos + 1
    else:
        start, end = token.start_pos, token.end_pos
        found = f"'{token.text if len(token.text) <= 24 else token.text[:20] + '...'}'"
    wanted = _list_expected(expected, statement, start, functions=functions)
    return Diagnostic(
        "E1101",
        f"syntax error: expected {wanted}, found {found}",
        source.locate(start, end),
        (),
        _FORMS.get(_CALL if statement.first.text == _CALL else statement.first.type, _FORM),
    )


def _list_expected(expected: set[str], statement: Statement, start: int, *, functions: bool) -> str:
    first, second = statement.first, statement.second
    stray = first.type == "WORD" and first.text not in OUTPUTS_KEYWORDS
    if start == first.start_pos or (stray and second is not None and start == second.start_pos):
        return _STATEMENTS if functions else "a definition '%0 = ...' or 'outputs: ...'"
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
    if expected == {"_EQUAL", "_COMMA"}:
        return "'='"
    expected = expected - {"_LPAR"} if "TYPE" in expected else expected
    names = [text for name, text in _READABLE.items() if name in expected]
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else names[0]
