"""Statements of Core IR text as syntax, and what is said of one that is not well-formed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.core.statement_reader import END, CoreStatementReader, TooManyArguments, Unexpected
from mind_mlir.languages.core.syntax import MAX_ATTRIBUTES, Syntax
from mind_mlir.languages.core.tokens import HEAD, Statement

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Report

#: How a message names what the grammar expects.
_READABLE = {
    "VALUE": "a value such as %0",
    "WORD": "a name",
    "TYPE": "a type such as tensor<f32[2, 3]>",
    "NUMBER": "a number",
    "STRING": "a string",
    "LIST": "a list",
    "=": "'='",
    ":": "':'",
    ",": "','",
    "(": "'('",
    ")": "')'",
    "{": "'{'",
    "}": "'}'",
    "LABEL": "a label such as ^body",
    "SYMBOL": "a name such as @main",
    "FUNC": "'func'",
    "OPEN": "'{'",
    "->": "'->'",
    END: "the end of the statement",
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


def parse_statement(statement: Statement, report: Report, *, functions: bool = False) -> Syntax | None:
    """Read one statement, of a text in function form or not, to its end and return its syntax.

    What is wrong goes to ``report``, and there is no syntax then: E1101, saying what was expected where, or
    E1103. Where a lexical error has been reported, what the parser makes of the rest means little.
    """
    problem: Exception | None = None
    syntax: Syntax | None = None
    try:
        syntax = CoreStatementReader(statement).statement()
    except (Unexpected, TooManyArguments) as error:
        problem = error
    culprit = statement.last
    statement.finish()
    if statement.broken:
        return None
    if report.findings.full and problem:
        report.findings.count()
    elif isinstance(problem, Unexpected):
        _report(problem, statement, report, functions=functions)
    elif problem:
        message = f"no operation has more than {MAX_ATTRIBUTES} attributes"
        report.add("E1103", message, culprit.span, _FORM)
    return syntax


def _report(error: Unexpected, statement: Statement, report: Report, *, functions: bool) -> None:
    token, first = error.token, statement.first
    expected = error.wanted - (frozenset() if functions else {"OPEN", "SYMBOL"})
    if token.kind == END:
        found, span = "the end of the line", (statement.last.end, statement.last.end + 1)
    else:
        found = f"'{token.text if len(token.text) <= 24 else token.text[:20] + '...'}'"
        span = token.span
    wanted = _list_expected(expected, statement, span[0], functions=functions)
    form = _FORMS.get(_CALL if first.text == _CALL else first.kind, _FORM)
    report.add("E1101", f"syntax error: expected {wanted}, found {found}", span, form)


def _list_expected(expected: frozenset[str], statement: Statement, start: int, *, functions: bool) -> str:
    first, second = statement.first, statement.second
    stray = first.kind == "WORD" and first.text not in OUTPUTS_KEYWORDS
    if start == first.start or (stray and second is not None and start == second.start):
        return _STATEMENTS if functions else "a definition '%0 = ...' or 'outputs: ...'"
    if expected >= _ATTRIBUTE_VALUE:
        rest = ["an argument" if "VALUE" in expected else "an attribute value"]
        rest += [_READABLE[name] for name in _READABLE if name in expected and name in (")", "}")]
        return " or ".join(rest)
    if expected == {"WORD", "VALUE"}:
        return "an operation name or a value"
    if expected == {"WORD", "STRING"}:
        return "an attribute name"
    if expected >= {":", "{"}:
        return "a list of operands, attributes or ': <type>'" if "(" in expected else "': <type>'"
    if expected == {"=", ","}:
        return "'='"
    expected = expected - {"("} if "TYPE" in expected else expected
    names = [text for name, text in _READABLE.items() if name in expected]
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else names[0]
