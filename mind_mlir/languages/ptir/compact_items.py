"""The items between the brackets of a clause of the compact text.

    clause ::= name "[" item ("," item)* "]"
    item   ::= number | word | string | ?symbol | ^region | "[" items "]" | complex(number, number)
             | word "[" items "]" | name = item

The meaning of an item is a matter of its field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.ptir.text import NON_FINITE
from mind_mlir.ops.contract import MAP_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.languages.ptir.text import TextReader, Token

_MAX_NESTING = 8


@dataclass(frozen=True, slots=True)
class Item:
    """One item.

    Attributes:
        look: int, uint, float, word, string, dim, region, list, complex, array or named.
        value: A number or a text, or the items within.
        name: Of what is named, or the word before an array.
    """

    look: str
    value: Any
    start: int
    end: int
    name: str = ""


def read_items(reader: TextReader, closing: str = "]", depth: int = 0) -> list[Item]:
    """Return the items up to a closing bracket, and go behind it."""
    if depth > _MAX_NESTING:
        reader.fail("something that nests less deep")
    found: list[Item] = []
    while not reader.accept(closing):
        if found:
            reader.expect(",")
        found.append(_item(reader, depth))
    return found


def _item(reader: TextReader, depth: int) -> Item:
    token = reader.take()
    if token.kind in _ATOMS:
        return _ATOMS[token.kind](reader, token, depth)
    if token.text == "?":
        return _dim(reader, token)
    if token.text == "[":
        return Item("list", read_items(reader, "]", depth + 1), token.start, reader.end)
    reader.go_to(token.start)
    return reader.fail("a number, a word, a string or a list")


def _number(reader: TextReader, token: Token, _depth: int) -> Item:
    value = reader.number(token)
    look = "uint" if token.text.endswith("u") else "int" if isinstance(value, int) else "float"
    return Item(look, value, token.start, token.end)


def _string(reader: TextReader, token: Token, depth: int) -> Item:
    text = reader.string(token.text, token)
    if reader.accept("="):
        return _named(reader, text, token.start, depth)
    return Item("string", text, token.start, token.end)


def _region(reader: TextReader, token: Token, _depth: int) -> Item:
    return Item("region", reader.identifier(token.text.lstrip("^r"), token), token.start, token.end)


def _word(reader: TextReader, token: Token, depth: int) -> Item:
    word, start = token.text, token.start
    if reader.accept("="):
        return _named(reader, word, start, depth)
    if word == "complex" and reader.accept("("):
        return Item("complex", read_items(reader, ")", depth + 1), start, reader.end)
    if word in MAP_KINDS and reader.accept("["):
        return Item("array", read_items(reader, "]", depth + 1), start, reader.end, word)
    if word in NON_FINITE:
        return Item("float", NON_FINITE[word], start, token.end)
    return Item("word", word, start, token.end)


def _dim(reader: TextReader, token: Token) -> Item:
    text, end = reader.symbol()
    return Item("dim", text, token.start, end)


def _named(reader: TextReader, name: str, start: int, depth: int) -> Item:
    if depth > _MAX_NESTING:
        reader.fail("something that nests less deep")
    return Item("named", _item(reader, depth + 1), start, reader.end, name)


_ATOMS: dict[str, Callable[[TextReader, Token, int], Item]] = {
    "NUMBER": _number,
    "STRING": _string,
    "REGION": _region,
    "WORD": _word,
}
