"""Splits Core IR text into statements of tokens.

A statement is a line. Inside open brackets a line break counts as a space, unless the next line begins a
statement: an unclosed bracket then costs one statement and not the rest of the file. Bracketed lists are one
token each, whatever their size, so that a literal of a million numbers is a single step of the parser; types
are one token too. Tokens are made when they are asked for and not kept: a module may have millions.

In function form a statement also ends behind the brace that opens a body (of a function, or the regions of an
operation) and behind the colon of a label, and in front of the brace that closes a body, which is a statement
of its own; some words, where a statement begins with them, are tokens of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mind_mlir.languages.core.tokens import (
    BYTE_ORDER_MARK,
    COMMENT,
    ESCAPE,
    ESCAPES_HELP,
    FUNCTION,
    HEAD,
    LONGEST_VALUE,
    NAME,
    NUMBER,
    NUMBER_RUN,
    NUMBERS_HELP,
    STRING,
    VALUE,
    WORD,
    Statement,
)
from mind_mlir.languages.text.cursor import Token, token_pattern
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Report

_TOKEN = token_pattern(
    {
        "SPACE": rf"[ \t\r\f\v]+|{COMMENT}",
        "NEWLINE": r"\n",
        "VALUE": VALUE,
        "TYPE": r"[Tt]ensor[ \t]*<[^<>\n]*>",
        "OPEN_TYPE": r"[Tt]ensor[ \t]*<[^\n]*",
        "WORD": WORD,
        "PUNCTUATION": r"->|[=:,(){}]",
        "LABEL": rf"\^{NAME}",
        "SYMBOL": rf"@{NAME}",
        "NUMBER": NUMBER_RUN,
        "STRING": STRING,
        "LIST": r"\[",
    }
)
_DEPTH = {"(": 1, "{": 1, ")": -1, "}": -1}
#: Tokens that need a second look.
_CHECKED = frozenset(("NUMBER", "STRING", "VALUE", "OPEN_TYPE", "LIST", "LABEL", "SYMBOL"))
#: Words that say what a statement of the function form is.
KEYWORDS = {
    "func": "FUNC",
    "public": "VISIBILITY",
    "export": "VISIBILITY",
    "internal": "VISIBILITY",
    "br": "BR",
    "cond_br": "COND_BR",
    "return": "EXIT",
    "yield": "EXIT",
}
#: What may stand before a statement.
_BLANK = re.compile(rf"(?:[ \t\r\f\v\n]++|{COMMENT})*+")
_STATEMENT_START = re.compile(r"[ \t\r]*(?:%[\w.-]+[ \t]*=|outputs?[ \t]*:|func\b|\Z)")
#: The same in function form. Operands go on in the next line, too, and so may an attribute list end there.
_STATEMENT_START_IN_FUNCTIONS = re.compile(
    rf"[ \t\r]*+(?:(?:%[\w.-]++[ \t]*+,?[ \t]*+)++=|outputs?[ \t]*:|{FUNCTION}|\Z"
    r"|\^|br[ \t]++\^|cond_br[ \t]++%|(?:return|yield)(?![\w.]|[ \t]*[=:,])"
    rf"|\}}[ \t\r]*+(?:{COMMENT})?(?:\n|\Z))"
)
#: What follows the brace that opens the regions of an operation.
_REGIONS = re.compile(rf"[ \t\r]*+(?:{COMMENT})?(?:\n|\Z|\^|\}})")
#: What may be skipped inside a list without looking closer.
_LIST_FILLER = re.compile(rf'(?:[^\[\]()"#/\n]++|{STRING}|{COMMENT}|/)++')
#: What may stand after a lone '%' and be right where it is; includes the empty text.
_FOLLOWERS = " \t\r\n=(){}[],:"
_JUNK = re.compile(r"[^\s\w%\[\](){}=:,\"#/]+|.", re.S)
_CLOSING = {"[": "]", "(": ")"}
#: A parenthesis after one of these opens a tuple rather than an operand list.
_BEFORE_TUPLE = frozenset("=:,(")
_FORBIDDEN_IN_STRING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
#: What follows a brace that closes a body at the end of a statement; behind another one, more follows.
_AFTER_CLOSE = re.compile(rf"\}}[ \t\r]*+(?:{COMMENT}|\}}|\n|\Z|{FUNCTION})")


@dataclass(slots=True)
class _Context:
    """The context that the type of a token depends on: the tokens of its statement before it.

    Attributes:
        depth: How many brackets are open.
        ended: Whether the statement ends here, whatever follows.
        first: The type of the first token, or nothing.
        before: That of the last one.
    """

    text: str
    functions: bool
    depth: int = 0
    ended: bool = False
    first: str = ""
    before: str = ""
    _has_colon: bool = False  # outside of brackets

    def ends_before(self, position: int) -> bool:
        """Return whether a statement in a body ends in front of the punctuation there, a closing brace."""
        if self.depth or not self.first or self.text[position] != "}":
            return False
        return _AFTER_CLOSE.match(self.text, position) is not None

    def word(self, start: int, end: int) -> str:
        """Return the type of the word there: some are keywords where a statement begins with them."""
        return KEYWORDS.get(self.text[start:end], "WORD") if self.before in ("", "VISIBILITY") else "WORD"

    def punctuation(self, mark: str, end: int) -> str:
        """Return the type of the punctuation that ends there, and take it in."""
        first, outside = self.first, self.depth == 0
        if outside and self.functions and mark in ("{", "}"):
            self.ended = True
            if mark == "}" and not first:
                return "CLOSE"
            regions = self._has_colon and _REGIONS.match(self.text, end)
            if mark == "{" and (first in HEAD or regions):
                return "OPEN"
            self.ended = False
        if outside and mark == ":":
            self._has_colon = True
            self.ended = first == "LABEL"
        if mark == "(" and self.before in _BEFORE_TUPLE and not (outside and self.before == ":"):
            return "LIST"
        self.depth += _DEPTH.get(mark, 0)
        return mark


@dataclass(slots=True)
class CoreLexer:
    """Tokenises one source, a statement at a time; what is wrong goes to ``report``.

    Attributes:
        functions: Whether the text is in function form.
        in_body: Whether the next statement stands in a body; who reads the statements keeps it true.
    """

    report: Report
    functions: bool = False
    in_body: bool = False
    _position: int = 0

    def statements(self) -> Iterator[Statement]:
        """Yield the statements that have a token; each must be finished before the next is asked for."""
        text = self.report.source.text
        self._position = int(text.startswith(BYTE_ORDER_MARK))
        while self._position < len(text):
            statement = Statement()
            if statement.begin(self._tokens(statement)):
                yield statement
            statement.finish()

    def _tokens(self, statement: Statement) -> Iterator[Token]:
        """Yield the tokens of the statement that begins at the position, and move the position behind it."""
        text, match = self.report.source.text, _TOKEN.match
        starts = _STATEMENT_START_IN_FUNCTIONS if self.functions else _STATEMENT_START
        blank = _BLANK.match(text, self._position)
        assert blank is not None, "it matches nothing, too"
        position, end = blank.end(), len(text)
        context = _Context(text, self.functions)
        while position < end and not context.ended:
            token = match(text, position)
            if token is None:
                statement.broken = True
                position = self._bad_character(text, position)
                continue
            start, position, kind = position, token.end(), token.lastgroup
            if kind == "SPACE":
                continue
            if kind == "NEWLINE":
                if context.depth <= 0 or starts.match(text, position):
                    break
                continue
            assert kind is not None, "every alternative of the expression is named"
            if kind == "PUNCTUATION":
                if self.in_body and context.ends_before(start):
                    position = start
                    break
                kind = context.punctuation(token[0], position)
            elif kind == "WORD" and self.functions:
                kind = context.word(start, position)
            context.before = kind
            context.first = context.first or kind
            if kind in _CHECKED:
                position = self._check(kind, text, start, position, statement)
            yield Token(kind, text[start:position], start, position)
        self._position = position

    def _bad_character(self, text: str, start: int) -> int:
        """Report what cannot begin a token and return where to go on."""
        character = text[start]
        if character == '"':
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            help_ = 'end the string with " on the same line'
            self.report.add("E1003", "string is not closed", (start, end), help_)
            return end
        if character == "%":
            return self._bad_value(text, start)
        junk = _JUNK.match(text, start)
        end = junk.end() if junk else start + 1
        message, help_ = (
            f"unexpected character {describe(character)}",
            "names consist of letters, digits and _",
        )
        self.report.add("E1002", message, (start, end), help_, character=character)
        return end

    def _bad_value(self, text: str, start: int) -> int:
        """Report a '%' that no number or name follows."""
        end = start + 1
        while end < len(text) and (text[end].isalnum() or text[end] in "_-"):
            end += 1
        culprit = text[start + 1 : start + 2]
        if end > start + 1:
            message = f"'{text[start:end][:40]}' is neither the number nor the name of a value"
        else:
            message = f"{describe(culprit)} may not begin the name of a value"
            end += culprit not in _FOLLOWERS
        help_ = "a value is written %0 or %name"
        self.report.add("E1002", message, (start, end), help_, character=culprit)
        return end

    def _check(self, kind: str, text: str, start: int, end: int, statement: Statement) -> int:
        """Look into a token, report what is wrong with it, and return where it ends."""
        findings = self.report.findings
        before = findings.total
        if kind == "LIST":
            end = self._scan_list(text, start)
        elif kind == "NUMBER":
            if not NUMBER.match(number := text[start:end]):
                message = f"malformed number '{number[:40]}'"
                self.report.add("E1005", message, (start, end), NUMBERS_HELP, text=number)
        elif kind == "STRING":
            self._check_string(text, start, end)
        elif kind in ("LABEL", "SYMBOL"):
            if text[start + 1] == '"':
                self._check_string(text, start + 1, end)
        elif kind == "OPEN_TYPE":
            end = start + len(text[start:end].rstrip())
            message, help_ = "the type is not closed: expected '>'", "write a type as tensor<f32[2, 3]>"
            self.report.add("E1101", message, (start, end), help_)
        elif end - start > LONGEST_VALUE and text[start + 1 : end].lstrip("-").isdigit():
            self.report.add("E1005", "the number of this value does not fit 64 bits", (start, end))
        statement.broken = statement.broken or findings.total > before
        return end

    def _check_string(self, text: str, start: int, end: int) -> None:
        for escape in bad_escapes(text, start, end):
            message = f"Invalid escape sequence '{escape[0]}'"
            self.report.add("E1004", message, escape.span(), ESCAPES_HELP, escape=escape[0])
        for found in _FORBIDDEN_IN_STRING.finditer(text, start + 1, end - 1):
            message, help_ = (
                f"{describe(found[0])} may not stand in a string",
                f"write \\u{{{ord(found[0]):x}}}",
            )
            self.report.add("E1002", message, found.span(), help_, character=found[0])

    def _scan_list(self, text: str, start: int) -> int:
        """Return the end of the balanced list that begins at ``start``, or of the statement it breaks."""
        starts = _STATEMENT_START_IN_FUNCTIONS if self.functions else _STATEMENT_START
        closers = [_CLOSING[text[start]]]
        position, end = start + 1, len(text)
        while position < end:
            character = text[position]
            if character in "[(":
                closers.append(_CLOSING[character])
            elif character in "])":
                if character != closers.pop():
                    break
                if not closers:
                    return position + 1
            elif character == "\n":
                if starts.match(text, position + 1):
                    break
            else:
                filler = _LIST_FILLER.match(text, position)
                if filler is None:
                    break  # a string that is not closed: the main loop reports it
                position = filler.end()
                continue
            position += 1
        message = f"'{text[start]}' is not closed: expected '{_CLOSING[text[start]]}'"
        self.report.add("E1101", message, (start, start + 1))
        return position


def bad_escapes(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield what are no escape sequences of the string that stands there, quotes included."""
    for escape in ESCAPE.finditer(text, start + 1, end - 1):
        code = escape["code"]
        if escape["bad"] is not None or (code is not None and int(code, 16) > 0x10FFFF):
            yield escape


def describe(character: str) -> str:
    """Return a character as a message names it: quoted where it can be seen, by code point where not."""
    if not character:
        return "the end of the line"
    return f"'{character}'" if character.isprintable() else f"U+{ord(character):04X}"
