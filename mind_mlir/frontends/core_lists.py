"""Reads bracketed lists: nested attribute values, and tensor literals of any size.

A literal takes the fast path where its text is regular: the nesting is checked on a skeleton of the text and
all numbers are converted by one call. Everything else (errors, comments, hexadecimal numbers) goes through
the element-wise path, which knows the position of each element.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.frontends.core_lexer import (
    COMMENT,
    ESCAPE,
    ESCAPES_HELP,
    NUMBER,
    NUMBER_RUN,
    NUMBERS_HELP,
    STRING,
    WORD,
    Token,
    describe,
    is_bad_escape,
)
from mind_mlir.frontends.core_numbers import convert_elements, convert_plain
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.elements import Problem
from mind_mlir.ir.nested import MAX_DEPTH, flattened
from mind_mlir.ir.types import DType, DTypeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mind_mlir.frontends.positions import Positions

_ELEMENT = re.compile(
    rf"(?P<SPACE>[ \t\r\f\v\n]+|{COMMENT})|(?P<WORD>{WORD})|(?P<NUMBER>{NUMBER_RUN})|(?P<STRING>{STRING})"
    r"|(?P<OPEN>[\[(])|(?P<CLOSE>[\])])|(?P<COMMA>,)|(?P<COLON>:)"
)
#: Number characters, brackets and the letters of inf, nan, true and false. What else these letters can
#: spell, the conversion refuses.
_PLAIN = re.compile(r"[-+0-9.eE,\[\] \t\r\nainfstrul]*\Z")
_FIRST_UNIT = 0x100
_NUMBERS = re.compile(r"[^\[\],]+")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One element of a list as written; ``kind`` is WORD, NUMBER or STRING."""

    text: str
    kind: str
    start_pos: int
    end_pos: int


def fail(
    positions: Positions, code: str, message: str, start: int, end: int, help_text: str | None = None
) -> NoReturn:
    """Raise the finding about ``[start, end)``."""
    raise ParseError(Diagnostic(code, message, positions.locate(start, end), (), help_text))


def read_list(token: Token, positions: Positions, leaf: Callable[[Leaf], Any]) -> tuple[Any, ...]:
    """Return the nested tuple that a LIST token spells, each element converted by ``leaf``.

    Raises:
        ParseError: E1101 for anything that is not a list; E1005 for a malformed number.
    """
    stack: list[list[Any]] = []
    expects_element = True
    for kind, text, start in _elements(token, positions):
        if kind == "OPEN" and expects_element:
            if len(stack) >= MAX_DEPTH:
                fail(positions, "E1101", f"lists nest more than {MAX_DEPTH} deep", start, start + 1)
            stack.append([])
        elif kind == "CLOSE":
            # An element may be missing before the bracket: `[]`, and the trailing comma of `(2,)`.
            closed = tuple(stack.pop())
            if not stack:
                return closed
            stack[-1].append(closed)
            expects_element = False
        elif kind == "COMMA" and not expects_element:
            expects_element = True
        elif kind in ("WORD", "NUMBER", "STRING") and expects_element:
            stack[-1].append(leaf(Leaf(text, kind, start, start + len(text))))
            expects_element = False
        else:
            expected = "an element" if expects_element else "',' or a closing bracket"
            message = f"syntax error: expected {expected}, found '{text[:20]}'"
            fail(positions, "E1101", message, start, start + len(text))
    raise AssertionError("the lexer only makes balanced lists")


def _elements(token: Token, positions: Positions) -> Iterator[tuple[str, str, int]]:
    """Yield kind, text and offset of the elements, brackets and commas of a list."""
    text, base, position = token.text, token.start_pos, 0
    while position < len(text):
        match = _ELEMENT.match(text, position)
        start = base + position
        if match is None:
            fail(positions, "E1002", f"unexpected character {describe(text[position])}", start, start + 1)
        kind, position = match.lastgroup, match.end()
        assert kind is not None, "every alternative of the expression is named"
        if kind == "NUMBER" and not NUMBER.match(match[0]):
            message = f"malformed number '{match[0][:40]}'"
            fail(positions, "E1005", message, start, base + position, NUMBERS_HELP)
        if kind == "STRING":
            _check_escapes(match[0], start, positions)
        if kind != "SPACE":
            yield kind, match[0], start


def _check_escapes(text: str, start: int, positions: Positions) -> None:
    for escape in ESCAPE.finditer(text, 1, len(text) - 1):
        if is_bad_escape(escape):
            message = f"Invalid escape sequence '{escape[0]}'"
            fail(positions, "E1004", message, start + escape.start(), start + escape.end(), ESCAPES_HELP)


def read_literal(token: Token, positions: Positions, dtype: DType) -> TensorLiteral:
    """Return the tensor that a LIST token or a single number spells.

    Raises:
        ParseError: E3010 where the nesting is ragged, E4005 where ``dtype`` cannot hold an element.
    """
    plain = _read_plain(token.text, dtype) if token.type == "LIST" else None
    if plain is None:
        plain = _read_elementwise(token, positions, dtype)
    plain.setflags(write=False)
    return TensorLiteral(plain)


def _read_plain(text: str, dtype: DType) -> np.ndarray[Any, Any] | None:
    """Return the literal where its text is regular, else None."""
    if not _PLAIN.match(text):
        return None
    skeleton = _NUMBERS.sub("", text)
    # Brackets become spaces, so that a number next to a misplaced bracket does not join its neighbour.
    numbers = text.translate({ord("["): " ", ord("]"): " "})
    shape = _regular_shape(skeleton, has_elements=bool(numbers.replace(",", "").strip()))
    if shape is None:
        return None
    elements = numbers.split(",") if 0 not in shape else []
    if len(elements) != int(np.prod(shape)):
        return None
    values = convert_plain(elements, dtype)
    return None if values is None else _with_shape(values, shape, dtype)


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
        if not row or row != f"[{','.join([unit] * count)}]":
            return None
        # A character of its own for every level, so that a list and its neighbour of another depth differ.
        unit = chr(_FIRST_UNIT + level)
        skeleton = skeleton.replace(row, unit)
        shape.append(count)
    return tuple(reversed(shape)) if skeleton == unit else None


def _read_elementwise(token: Token, positions: Positions, dtype: DType) -> np.ndarray[Any, Any]:
    leaves: list[Leaf] = []
    if token.type != "LIST":
        leaves.append(Leaf(token.text, token.type, token.start_pos, token.end_pos))
        shape: tuple[int, ...] = ()
    else:
        nested = read_list(token, positions, leaves.append)
        shape = _nested_shape(nested, token, positions)
    try:
        values = convert_elements([leaf.text for leaf in leaves], dtype)
    except Problem as problem:
        leaf = leaves[problem.index]
        fail(positions, problem.code, problem.message, leaf.start_pos, leaf.end_pos, problem.help)
    return _with_shape(values, shape, dtype)


def _nested_shape(nested: Any, token: Token, positions: Positions) -> tuple[int, ...]:
    """Return the shape of a nested tuple whose leaves are None; reports E3010 where it is ragged."""
    try:
        return flattened(nested)[0]
    except Problem as problem:
        fail(positions, problem.code, problem.message, token.start_pos, token.end_pos, problem.help)


def _with_shape(values: np.ndarray[Any, Any], shape: tuple[int, ...], dtype: DType) -> np.ndarray[Any, Any]:
    """Shape the elements; a complex number is written as a list of its two parts."""
    if dtype.kind is DTypeKind.COMPLEX:
        if shape and shape[-1] == 2:
            return values.reshape(shape).view(dtype.numpy).reshape(shape[:-1])
        return values.reshape(shape).astype(dtype.numpy)
    return values.reshape(shape)
