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
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic
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
    Token,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.findings import Findings

_TOKEN = re.compile(
    rf"""(?P<SPACE>[ \t\r\f\v]+|{COMMENT})
    |(?P<NEWLINE>\n)
    |(?P<VALUE>{VALUE})
    |(?P<TYPE>[Tt]ensor[ \t]*<[^<>\n]*>)
    |(?P<OPEN_TYPE>[Tt]ensor[ \t]*<[^\n]*)
    |(?P<WORD>{WORD})
    |(?P<_ARROW>->)
    |(?P<LABEL>\^{NAME})
    |(?P<SYMBOL>@{NAME})
    |(?P<NUMBER>{NUMBER_RUN})
    |(?P<STRING>{STRING})
    |(?P<PUNCTUATION>[=:,(){{}}])
    |(?P<LIST>\[)""",
    re.X,
)
_PUNCTUATION = {
    "=": "_EQUAL",
    ":": "_COLON",
    ",": "_COMMA",
    "(": "_LPAR",
    ")": "_RPAR",
    "{": "_LBRACE",
    "}": "_RBRACE",
}
_DEPTH = {"_LPAR": 1, "_LBRACE": 1, "_RPAR": -1, "_RBRACE": -1}
#: Tokens that need a second look.
_CHECKED = frozenset(("NUMBER", "STRING", "VALUE", "OPEN_TYPE", "LIST", "LABEL", "SYMBOL"))
#: Words that say what a statement of the function form is.
_KEYWORDS = {
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
_BEFORE_TUPLE = frozenset(("_EQUAL", "_COLON", "_COMMA", "_LPAR"))
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
        return _KEYWORDS.get(self.text[start:end], "WORD") if self.before in ("", "VISIBILITY") else "WORD"

    def punctuation(self, position: int) -> str:
        """Return the type of the punctuation there, and take it in."""
        character, first, outside = self.text[position], self.first, self.depth == 0
        if outside and self.functions and character in "{}":
            self.ended = True
            if character == "}" and not first:
                return "CLOSE"
            regions = self._has_colon and _REGIONS.match(self.text, position + 1)
            if character == "{" and (first in HEAD or regions):
                return "OPEN"
            self.ended = False
        kind = _PUNCTUATION[character]
        if outside and kind == "_COLON":
            self._has_colon = True
            self.ended = first == "LABEL"
        if character == "(" and self.before in _BEFORE_TUPLE and not (outside and self.before == "_COLON"):
            return "LIST"
        self.depth += _DEPTH.get(kind, 0)
        return kind


@dataclass(slots=True)
class Lexer:
    """Tokenises one source, a statement at a time; its findings go to ``findings``.

    Attributes:
        functions: Whether the text is in function form.
        in_body: Whether the next statement stands in a body; who reads the statements keeps it true.
    """

    source: SourceText
    findings: Findings
    functions: bool = False
    in_body: bool = False
    _position: int = 0

    def statements(self) -> Iterator[Statement]:
        """Yield the statements that have a token; each must be finished before the next is asked for."""
        text = self.source.text
        self._position = int(text.startswith(BYTE_ORDER_MARK))
        while self._position < len(text):
            statement = Statement()
            if statement.begin(self._tokens(statement)):
                yield statement
            statement.finish()

    def _tokens(self, statement: Statement) -> Iterator[Token]:
        """Yield the tokens of the statement that begins at the position, and move the position behind it."""
        text, match = self.source.text, _TOKEN.match
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
                kind = context.punctuation(start)
            elif kind == "WORD" and self.functions:
                kind = context.word(start, position)
            context.before = kind
            context.first = context.first or kind
            if kind in _CHECKED:
                position = self._check(kind, text, start, position, statement)
            yield Token(kind, text[start:position], start, position)
        self._position = position

    def report(
        self, code: str, message: str, start: int, end: int, help_text: str | None = None, **context: Any
    ) -> None:
        """Record a finding about ``[start, end)``."""
        if self.findings.full:
            self.findings.count()
            return
        location = self.source.locate(start, end)
        self.findings.add(
            Diagnostic(code, message, location, (), help_text, context=MappingProxyType(context))
        )

    def _bad_character(self, text: str, start: int) -> int:
        """Report what cannot begin a token and return where to go on."""
        character = text[start]
        if character == '"':
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            self.report("E1003", "string is not closed", start, end, 'end the string with " on the same line')
            return end
        if character == "%":
            return self._bad_value(text, start)
        junk = _JUNK.match(text, start)
        end = junk.end() if junk else start + 1
        self.report(
            "E1002",
            f"unexpected character {describe(character)}",
            start,
            end,
            "names consist of letters, digits and _",
            character=character,
        )
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
        self.report("E1002", message, start, end, "a value is written %0 or %name", character=culprit)
        return end

    def _check(self, kind: str, text: str, start: int, end: int, statement: Statement) -> int:
        """Look into a token, report what is wrong with it, and return where it ends."""
        before = self.findings.total
        if kind == "LIST":
            end = self._scan_list(text, start)
        elif kind == "NUMBER":
            self._check_number(text[start:end], start)
        elif kind == "STRING":
            self._check_string(text, start, end)
        elif kind in ("LABEL", "SYMBOL"):
            if text[start + 1] == '"':
                self._check_string(text, start + 1, end)
        elif kind == "OPEN_TYPE":
            end = start + len(text[start:end].rstrip())
            self.report(
                "E1101",
                "the type is not closed: expected '>'",
                start,
                end,
                "write a type as tensor<f32[2, 3]>",
            )
        elif end - start > LONGEST_VALUE and text[start + 1 : end].lstrip("-").isdigit():
            self.report("E1005", "the number of this value does not fit 64 bits", start, end)
        statement.broken = statement.broken or self.findings.total > before
        return end

    def _check_number(self, text: str, start: int) -> None:
        if not NUMBER.match(text):
            message = f"malformed number '{text[:40]}'"
            self.report("E1005", message, start, start + len(text), NUMBERS_HELP, text=text)

    def _check_string(self, text: str, start: int, end: int) -> None:
        for escape in ESCAPE.finditer(text, start + 1, end - 1):
            if is_bad_escape(escape):
                message = f"Invalid escape sequence '{escape[0]}'"
                self.report("E1004", message, *escape.span(), ESCAPES_HELP, escape=escape[0])
        for character in _FORBIDDEN_IN_STRING.finditer(text, start + 1, end - 1):
            self.report(
                "E1002",
                f"{describe(character[0])} may not stand in a string",
                *character.span(),
                f"write \\u{{{ord(character[0]):x}}}",
                character=character[0],
            )

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
        self.report(
            "E1101", f"'{text[start]}' is not closed: expected '{_CLOSING[text[start]]}'", start, start + 1
        )
        return position


def is_bad_escape(escape: re.Match[str]) -> bool:
    """Return whether a match of `ESCAPE` is none of the escapes."""
    code = escape["code"]
    return escape["bad"] is not None or (code is not None and int(code, 16) > 0x10FFFF)


def describe(character: str) -> str:
    """Return a character as a message names it: quoted where it can be seen, by code point where not."""
    if not character:
        return "the end of the line"
    return f"'{character}'" if character.isprintable() else f"U+{ord(character):04X}"
