"""Reads bracketed lists: nested attribute values, and tensor literals of any size.

A literal takes the fast path where its text is regular: the nesting is checked on a skeleton of the text and
all numbers are converted by one call. Everything else (errors, comments, hexadecimal numbers) goes through
the element-wise path, which knows the position of each element.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import Array, TensorLiteral
from mind_mlir.ir.elements import ElementProblem
from mind_mlir.ir.nested import MAX_DEPTH
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.languages.core.lexer import bad_escapes, describe
from mind_mlir.languages.core.numbers import convert_elements, convert_plain
from mind_mlir.languages.core.tokens import (
    COMMENT,
    ESCAPES_HELP,
    MAX_ELEMENTS,
    NUMBER,
    NUMBER_RUN,
    NUMBERS_HELP,
    STRING,
    WORD,
)
from mind_mlir.languages.text.cursor import Token, token_pattern

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Report

_ELEMENT = token_pattern(
    {
        "SPACE": rf"[ \t\r\f\v\n]+|{COMMENT}",
        "WORD": WORD,
        "NUMBER": NUMBER_RUN,
        "STRING": STRING,
        "OPEN": r"[\[(]",
        "CLOSE": r"[\])]",
        "COMMA": ",",
        "COLON": ":",
    }
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


def parts_at_commas(token: Token) -> list[tuple[str, int]] | None:
    """Return the parts of a short list and where they begin; a comma may stand behind the last one.

    For more than `MAX_ELEMENTS` parts, it is None.
    """
    parts = token.text[1:-1].split(",", MAX_ELEMENTS)
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    starts = accumulate((len(part) + 1 for part in parts), initial=token.start + 1)
    return None if len(parts) > MAX_ELEMENTS else list(zip(parts, starts, strict=False))


def read_list(token: Token, report: Report, convert: Callable[[Token], Any]) -> tuple[Any, ...]:
    """Return the nested tuple that a LIST token spells, each element made by ``convert``.

    Raises:
        ParseError: E1101 for anything that is not a list; E1005 for a malformed number; E1103 for a list of
            more than `MAX_ELEMENTS` elements.
    """
    stack: list[list[Any]] = [[]]
    for number, part in enumerate(_parts(token, report)):
        if number > MAX_ELEMENTS:
            message = f"the list of an attribute has more than {MAX_ELEMENTS:,} elements"
            raise report.error("E1103", message, token.span)
        if part.kind == "OPEN":
            stack.append([])
        elif part.kind == "CLOSE":
            closed = tuple(stack.pop())
            stack[-1].append(closed)
        else:
            stack[-1].append(convert(part))
    ((found,),) = stack
    assert isinstance(found, tuple), "a list is made of lists"
    return found


def _parts(token: Token, report: Report) -> Iterator[Token]:
    """Yield the elements of a list, of kind WORD, NUMBER or STRING, and its brackets, OPEN and CLOSE."""
    depth = 0
    expects_element = True
    for part in _elements(token, report):
        kind = part.kind
        if kind == "OPEN" and expects_element:
            if depth >= MAX_DEPTH:
                raise report.error("E1101", f"lists nest more than {MAX_DEPTH} deep", part.span)
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
            message = f"syntax error: expected {expected}, found '{part.text[:20]}'"
            raise report.error("E1101", message, part.span)
        yield part


def _elements(token: Token, report: Report) -> Iterator[Token]:
    """Yield the elements, brackets and commas of a list."""
    text, base, position = token.text, token.start, 0
    while position < len(text):
        match = _ELEMENT.match(text, position)
        start = base + position
        if match is None:
            raise report.error(
                "E1002", f"unexpected character {describe(text[position])}", (start, start + 1)
            )
        kind, position = match.lastgroup, match.end()
        assert kind is not None, "every alternative of the expression is named"
        part = Token(kind, match[0], start, base + position)
        if kind == "NUMBER" and not NUMBER.match(part.text):
            raise report.error("E1005", f"malformed number '{part.text[:40]}'", part.span, NUMBERS_HELP)
        if kind == "STRING":
            for escape in bad_escapes(part.text, 0, len(part.text)):
                span = (start + escape.start(), start + escape.end())
                raise report.error("E1004", f"Invalid escape sequence '{escape[0]}'", span, ESCAPES_HELP)
        if kind != "SPACE":
            yield part


def read_literal(token: Token, report: Report, dtype: DType) -> TensorLiteral:
    """Return the tensor that a LIST token or a single number spells.

    Raises:
        ParseError: E3010 where the nesting is ragged, E4005 where ``dtype`` cannot hold an element.
    """
    plain = _read_plain(token.text, dtype) if token.kind == "LIST" else None
    if plain is None:
        plain = _read_elementwise(token, report, dtype)
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


def _read_elementwise(token: Token, report: Report, dtype: DType) -> Array:
    """Return a literal of any spelling; its text is read twice, rather than all elements kept."""
    if token.kind != "LIST":
        leaves = iter((token,))
        shape: tuple[int, ...] = ()
    else:
        shape = _nested_shape(token, report)
        leaves = (part for part in _parts(token, report) if part.kind not in ("OPEN", "CLOSE"))
    pieces = [_convert([], report, dtype)]
    while some := list(islice(leaves, _CHUNK_ELEMENTS)):
        pieces.append(_convert(some, report, dtype))
    return _with_shape(np.concatenate(pieces), shape, dtype)


def _convert(leaves: list[Token], report: Report, dtype: DType) -> Array:
    try:
        return convert_elements([leaf.text for leaf in leaves], dtype)
    except ElementProblem as problem:
        raise report.error(problem.code, problem.message, leaves[problem.index].span, problem.help) from None


def _nested_shape(token: Token, report: Report) -> tuple[int, ...]:
    """Return the shape of a nested list; reports E3010 where it is ragged."""
    shape: list[int] = []
    for found, begins_with_number in _levels(token, report):
        lengths = sorted(found)
        if begins_with_number and len(lengths) > 1:
            message = f"the literal is ragged: dimension {len(shape)} mixes numbers and lists"
            help_text = "all elements of one level must have the same depth"
            raise report.error("E3010", message, token.span, help_text)
        if begins_with_number:
            break
        if len(lengths) > 1:
            both = " and ".join("a number" if n < 0 else f"{n} elements" for n in lengths[:2])
            message = f"the literal is ragged: dimension {len(shape)} has {both}"
            help_text = "all lists of one level must have the same length"
            raise report.error("E3010", message, token.span, help_text)
        shape += lengths
    return tuple(shape)


def _levels(token: Token, report: Report) -> list[tuple[set[int], bool]]:
    """Return the lengths of the lists at every depth of a list, the list itself first.

    Numbers count as a length of -1; with each depth comes whether a number is the first thing there.
    """
    levels: list[tuple[set[int], bool]] = []
    lengths: list[int] = []  # so far, of the lists that are open
    for part in _parts(token, report):
        if part.kind == "CLOSE":
            levels[len(lengths) - 1][0].add(lengths.pop())
            continue
        is_number = part.kind != "OPEN"
        if len(lengths) == len(levels):
            levels.append((set(), is_number))
        if lengths:
            lengths[-1] += 1
        if is_number:
            levels[len(lengths)][0].add(-1)
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
