"""Reads bracketed lists: nested attribute values, and tensor literals of any size.

A literal takes the fast path where its text is regular: the nesting is checked on a skeleton of the text and
all numbers are converted by one call. Everything else (errors, comments, hexadecimal numbers) goes through
the element-wise path, which knows the position of each element.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.elements import Problem
from mind_mlir.ir.nested import MAX_DEPTH
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.languages.core.lexer import describe, is_bad_escape
from mind_mlir.languages.core.numbers import convert_elements, convert_plain
from mind_mlir.languages.core.tokens import (
    COMMENT,
    ESCAPE,
    ESCAPES_HELP,
    MAX_ELEMENTS,
    NUMBER,
    NUMBER_RUN,
    NUMBERS_HELP,
    STRING,
    WORD,
    Token,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mind_mlir.diagnostics import SourceText
    from mind_mlir.ir.attributes import Array


_ELEMENT = re.compile(
    rf"(?P<SPACE>[ \t\r\f\v\n]+|{COMMENT})|(?P<WORD>{WORD})|(?P<NUMBER>{NUMBER_RUN})|(?P<STRING>{STRING})"
    r"|(?P<OPEN>[\[(])|(?P<CLOSE>[\])])|(?P<COMMA>,)|(?P<COLON>:)"
)
#: Number characters, brackets and the letters of inf, nan, true and false. What else these letters can
#: spell, the conversion refuses.
_PLAIN = re.compile(r"[-+0-9.eE,\[\] \t\r\nainfstrul]*\Z")
_FIRST_UNIT = 0x100
#: The characters of `_PLAIN` without those that give a literal its shape.
_NO_NUMBERS = {ord(character): None for character in "-+0123456789.eE \t\r\nainfstrul"}
_NO_BRACKETS = {ord("["): " ", ord("]"): " "}
_NUMBER_START = re.compile(r"[^\[\], \t\r\n]")
#: Characters, and elements, that are converted at a time: as Python objects, numbers take much more.
_CHUNK = 1 << 14
_CHUNK_ELEMENTS = 1 << 12


@dataclass(frozen=True, slots=True)
class Leaf:
    """One element of a list as written, of kind WORD, NUMBER or STRING; or a bracket, OPEN or CLOSE."""

    text: str
    kind: str
    start_pos: int
    end_pos: int


def fail(
    source: SourceText, code: str, message: str, start: int, end: int, help_text: str | None = None
) -> NoReturn:
    """Raise the finding about ``[start, end)``."""
    raise ParseError(Diagnostic(code, message, source.locate(start, end), (), help_text))


def read_list(token: Token, source: SourceText, leaf: Callable[[Leaf], Any]) -> tuple[Any, ...]:
    """Return the nested tuple that a LIST token spells, each element converted by ``leaf``.

    Raises:
        ParseError: E1101 for anything that is not a list; E1005 for a malformed number; E1103 for a list of
            more than `MAX_ELEMENTS` elements.
    """
    stack: list[list[Any]] = [[]]
    for number, part in enumerate(_parts(token, source)):
        if number > MAX_ELEMENTS:
            message = f"the list of an attribute has more than {MAX_ELEMENTS:,} elements"
            fail(source, "E1103", message, token.start_pos, token.end_pos)
        if part.kind == "OPEN":
            stack.append([])
        elif part.kind == "CLOSE":
            closed = tuple(stack.pop())
            stack[-1].append(closed)
        else:
            stack[-1].append(leaf(part))
    ((found,),) = stack
    assert isinstance(found, tuple), "a list is made of lists"
    return found


def _parts(token: Token, source: SourceText) -> Iterator[Leaf]:
    """Yield the brackets (of kind OPEN and CLOSE) and elements of a list.

    Raises:
        ParseError: E1101 for anything that is not a list; E1005 for a malformed number.
    """
    depth = 0
    expects_element = True
    for kind, text, start in _elements(token, source):
        if kind == "OPEN" and expects_element:
            if depth >= MAX_DEPTH:
                fail(source, "E1101", f"lists nest more than {MAX_DEPTH} deep", start, start + 1)
            depth += 1
        elif kind == "CLOSE":
            # An element may be missing before the bracket: `[]`, and the trailing comma of `(2,)`.
            depth -= 1
            expects_element = False
        elif kind == "COMMA" and not expects_element:
            expects_element = True
            continue
        elif kind in ("WORD", "NUMBER", "STRING") and expects_element:
            expects_element = False
        else:
            expected = "an element" if expects_element else "',' or a closing bracket"
            message = f"syntax error: expected {expected}, found '{text[:20]}'"
            fail(source, "E1101", message, start, start + len(text))
        yield Leaf(text, kind, start, start + len(text))


def _elements(token: Token, source: SourceText) -> Iterator[tuple[str, str, int]]:
    """Yield kind, text and offset of the elements, brackets and commas of a list."""
    text, base, position = token.text, token.start_pos, 0
    while position < len(text):
        match = _ELEMENT.match(text, position)
        start = base + position
        if match is None:
            fail(source, "E1002", f"unexpected character {describe(text[position])}", start, start + 1)
        kind, position = match.lastgroup, match.end()
        assert kind is not None, "every alternative of the expression is named"
        if kind == "NUMBER" and not NUMBER.match(match[0]):
            message = f"malformed number '{match[0][:40]}'"
            fail(source, "E1005", message, start, base + position, NUMBERS_HELP)
        if kind == "STRING":
            _check_escapes(match[0], start, source)
        if kind != "SPACE":
            yield kind, match[0], start


def _check_escapes(text: str, start: int, source: SourceText) -> None:
    for escape in ESCAPE.finditer(text, 1, len(text) - 1):
        if is_bad_escape(escape):
            message = f"Invalid escape sequence '{escape[0]}'"
            fail(source, "E1004", message, start + escape.start(), start + escape.end(), ESCAPES_HELP)


def read_literal(token: Token, source: SourceText, dtype: DType) -> TensorLiteral:
    """Return the tensor that a LIST token or a single number spells.

    Raises:
        ParseError: E3010 where the nesting is ragged, E4005 where ``dtype`` cannot hold an element.
    """
    plain = _read_plain(token.text, dtype) if token.type == "LIST" else None
    if plain is None:
        plain = _read_elementwise(token, source, dtype)
    return TensorLiteral.from_array(plain)


def _read_plain(text: str, dtype: DType) -> Array | None:
    """Return the literal where its text is regular, else None."""
    if not _PLAIN.match(text):
        return None
    shape = _regular_shape(text.translate(_NO_NUMBERS), has_elements=_NUMBER_START.search(text) is not None)
    if shape is None:
        return None
    count = math.prod(shape)
    values: Array | None = None
    filled = 0
    for elements in _element_texts(text) if count else [[]]:
        converted = convert_plain(elements, dtype)
        if converted is None:
            return None
        if values is None:
            values = np.empty(count, converted.dtype)
        values[filled : filled + len(converted)] = converted
        filled += len(converted)
    assert values is not None, "the shape has been read from the text"
    assert filled == count, "the shape has been read from the text"
    return _with_shape(values, shape, dtype)


def _element_texts(text: str) -> Iterator[list[str]]:
    """Yield the element texts of a regular literal, some thousands at a time."""
    start = 0
    while start <= len(text):
        end = text.find(",", min(start + _CHUNK, len(text)))
        end = end if end >= 0 else len(text)
        # Brackets become spaces, so that a number next to a misplaced bracket does not join its neighbour.
        yield text[start:end].translate(_NO_BRACKETS).split(",")
        start = end + 1


def _regular_shape(skeleton: str, *, has_elements: bool) -> tuple[int, ...] | None:
    """Return the shape of a list from its brackets and commas, or None where it is not regular."""
    depth = len(skeleton) - len(skeleton.lstrip("["))
    if not 1 <= depth <= MAX_DEPTH:
        return None
    shape: list[int] = []
    unit = ""
    for level in range(depth):
        end = skeleton.find("]")
        row = skeleton[skeleton.rfind("[", 0, end) : end + 1] if end >= 0 else ""
        count = row.count(unit) if level else (row.count(",") + 1) * has_elements
        if not row or row != f"[{(unit + ',') * (count - 1)}{unit if count else ''}]":
            return None
        # A character of its own for every level, so that a list and its neighbour of another depth differ.
        unit = chr(_FIRST_UNIT + level)
        skeleton = skeleton.replace(row, unit)
        shape.append(count)
    return tuple(reversed(shape)) if skeleton == unit else None


def _read_elementwise(token: Token, source: SourceText, dtype: DType) -> Array:
    """Return a literal of any spelling; its text is read twice, rather than all elements kept."""
    if token.type != "LIST":
        leaves = iter((Leaf(token.text, token.type, token.start_pos, token.end_pos),))
        shape: tuple[int, ...] = ()
    else:
        shape = _nested_shape(token, source)
        leaves = (part for part in _parts(token, source) if part.kind not in ("OPEN", "CLOSE"))
    pieces = [_convert([], source, dtype)]
    while some := list(islice(leaves, _CHUNK_ELEMENTS)):
        pieces.append(_convert(some, source, dtype))
    return _with_shape(np.concatenate(pieces), shape, dtype)


def _convert(leaves: list[Leaf], source: SourceText, dtype: DType) -> Array:
    try:
        return convert_elements([leaf.text for leaf in leaves], dtype)
    except Problem as problem:
        leaf = leaves[problem.index]
        fail(source, problem.code, problem.message, leaf.start_pos, leaf.end_pos, problem.help)


@dataclass(slots=True)
class _Level:
    """The lists and numbers at one depth of a literal.

    Attributes:
        lengths: The lengths of the lists there.
        has_numbers: Whether numbers stand there, too.
        begins_with_number: Whether the first thing there is a number.
    """

    lengths: set[int] = field(default_factory=set)
    has_numbers: bool = False
    begins_with_number: bool = False


def _nested_shape(token: Token, source: SourceText) -> tuple[int, ...]:
    """Return the shape of a nested list; reports E3010 where it is ragged."""
    shape: list[int] = []
    for level in _levels(token, source):
        if level.begins_with_number:
            break
        lengths = sorted(level.lengths | ({-1} if level.has_numbers else set()))
        if len(lengths) > 1:
            found = " and ".join("a number" if n < 0 else f"{n} elements" for n in lengths[:2])
            message = f"the literal is ragged: dimension {len(shape)} has {found}"
            help_text = "all lists of one level must have the same length"
            fail(source, "E3010", message, token.start_pos, token.end_pos, help_text)
        shape += lengths
    else:
        return tuple(shape)
    if level.lengths:
        message = f"the literal is ragged: dimension {len(shape)} mixes numbers and lists"
        help_text = "all elements of one level must have the same depth"
        fail(source, "E3010", message, token.start_pos, token.end_pos, help_text)
    return tuple(shape)


def _levels(token: Token, source: SourceText) -> list[_Level]:
    """Return what stands at every depth of a list, the list itself first."""
    levels: list[_Level] = []
    lengths: list[int] = []  # so far, of the lists that are open
    for part in _parts(token, source):
        if part.kind == "CLOSE":
            levels[len(lengths) - 1].lengths.add(lengths.pop())
            continue
        is_number = part.kind != "OPEN"
        if len(lengths) == len(levels):
            levels.append(_Level(begins_with_number=is_number))
        if lengths:
            lengths[-1] += 1
        if is_number:
            levels[len(lengths)].has_numbers = True
        else:
            lengths.append(0)
    return levels


def _with_shape(values: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    """Shape the elements; a complex number is written as a list of its two parts."""
    if dtype.kind is DTypeKind.COMPLEX:
        if shape and shape[-1] == 2:
            return values.reshape(shape).view(dtype.numpy).reshape(shape[:-1])
        return values.reshape(shape).astype(dtype.numpy)
    return values.reshape(shape)
