"""The tokens of Core IR text: how they are spelt, and statements of them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind_mlir.languages.text.cursor import Token
    from mind_mlir.languages.text.report import Span

# Possessive quantifiers: no character is looked at twice, and no way back is kept for each of a long run.
_DIGITS = "[0-9]++(?:_[0-9]++)*+"
_INTEGER = (
    rf"0[xX][0-9a-fA-F]++(?:_[0-9a-fA-F]++)*+|0[oO][0-7]++(?:_[0-7]++)*+|0[bB][01]++(?:_[01]++)*+|{_DIGITS}"
)
_FLOAT = rf"(?:{_DIGITS}(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?|inf|nan"
#: A well-formed number of any spelling; `_INTEGER` comes first, so group `integer` tells what it is.
NUMBER = re.compile(rf"[-+]?(?:(?P<integer>{_INTEGER})|(?P<float>{_FLOAT}))\Z")
#: The maximal run of characters that can only be meant as a number; a bare inf or nan may also be a name.
NUMBER_RUN = r"[-+]?\.?[0-9](?:[eE][-+](?=[0-9])|[\w.])*+|[-+](?:inf|nan)(?![\w.])"
#: Elements of a list that is no literal, and extents of a type: far more than any tensor has dimensions.
MAX_ELEMENTS = 1 << 15
NUMBER_WORDS = ("inf", "nan")
WORD = r"[^\W\d]\w*+(?:\.\w++)*+"
STRING = r'"(?:[^"\\\n]++|\\[^\n])*+"'
VALUE = rf"%(?:-?[0-9]++(?!\w)|{WORD})"
#: The name of a function or a block.
NAME = rf"(?:\w++(?:\.\w++)*+|{STRING})"
COMMENT = r"(?:\#|//)[^\n]*"
#: One escape sequence of a string, well-formed or not.
ESCAPE = re.compile(
    r'\\(?:(?P<simple>[nrt\\"])|u\{(?P<code>[0-9a-fA-F]{1,6})\}|(?P<bad>u\{[^}"]*\}?|.))', re.S
)
NUMBERS_HELP = "numbers are written 12, -3, 0x1f, 0b101, 1.5, 2e-3, inf or nan"
ESCAPES_HELP = 'the escapes are \\n \\r \\t \\\\ \\" and \\u{hex}'
#: What the statement of a function begins with.
HEAD = frozenset(("FUNC", "VISIBILITY"))
#: The length of '%' and the longest number of 64 bits that is surely one.
LONGEST_VALUE = 19
BYTE_ORDER_MARK = "\ufeff"
#: The words that begin a function.
FUNCTION = r"(?:(?:public|export|internal)[ \t]++)*+func\b"
#: The line that makes a text one of function form.
FUNCTION_LINE = re.compile(rf"^{BYTE_ORDER_MARK}?[ \t]*{FUNCTION}", re.M)


class Statement:
    """One statement, read from its source as far as its tokens have been asked for.

    Attributes:
        first: Its first token.
        second: The token after it, once that has been read.
        last: The last token read so far.
        broken: Whether a lexical error has been reported for what has been read of it.
    """

    __slots__ = ("_rest", "broken", "first", "last", "second")

    first: Token
    last: Token

    def __init__(self) -> None:
        self.second: Token | None = None
        self.broken = False
        self._rest: Iterator[Token] = iter(())

    @property
    def span(self) -> Span:
        """Return where what has been read of it stands."""
        return self.first.start, self.last.end

    def begin(self, tokens: Iterator[Token]) -> bool:
        """Read the first of ``tokens``; return whether there is one."""
        self._rest = tokens
        first = next(tokens, None)
        if first is not None:
            self.first = self.last = first
        return first is not None

    def __iter__(self) -> Iterator[Token]:
        """Yield the tokens, once."""
        yield self.first
        yield from self._following()

    def finish(self) -> None:
        """Read what is left of it."""
        deque(self._following(), maxlen=0)

    def _following(self) -> Iterator[Token]:
        for token in self._rest:
            self.second = self.second or token
            self.last = token
            yield token
