"""Texts that read as the same `.mind` program: other blanks, lines, comments, parentheses, commas."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.reading import read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from mind_mlir.languages.text.cursor import Token

_COMMENTS = (
    *(" // {}\n ", "\n // {}\n ", "\n\n\n // {}\n // and more\n ", "// {}\n\n "),
    *("/* {} */", " /* {} */ ", "\n /* {} */ ", " /* {} */\n ", "\n /* {} */\n ", "/* {} *//* more */"),
    *(" /* {}\n  lines */ ", "\n /* {}\n * lines\n */\n "),
)
#: Before a bracket, a line feed would end the expression.
_BESIDE = ("/* {} */", " /* {} */ ")
_BLANKS = (*[" "] * 12, "  ", "\n ", "\n\n\n\t", "\r\n ")
_WRAPPED = (
    nodes.Name,
    nodes.Number,
    nodes.Call,
    nodes.Binary,
    nodes.Unary,
    nodes.Index,
    nodes.Field,
    nodes.List,
)


def shape(node: Any) -> Any:
    """Return what a tree says, without its places."""
    if is_dataclass(node):
        names = (each.name for each in fields(node) if "span" not in each.name and each.name != "head")
        return (type(node).__name__, *[shape(getattr(node, name)) for name in names])
    return [shape(each) for each in node] if isinstance(node, list) else node


def comments(text: str) -> list[str]:
    """Return the comments of a text, in any order, without the blanks that lines begin with."""
    source = SourceText("text", text)
    found = [token.text for token in read(source).tokens if token.kind == "comment"]
    return sorted("\n".join(line.strip() for line in each.splitlines()) for each in found)


def mangled(text: str, random: Random, density: float) -> str:
    """Return a text that reads as the same tree, with comments before so many of its words."""
    text = _wrapped(text, random, density)
    tokens = [token for token in read(SourceText("text", text)).tokens if token.kind != "comment"]
    parts: list[str] = []
    for number, token in enumerate(tokens):
        behind = tokens[number - 1].text if number else ""
        if behind == "}" and token.text in ("(", "["):
            parts.append("\n ")  # it would be called
        elif behind != ".":
            parts.append(_between(token, random, density, len(parts)))
        if token.text == "]" and behind not in ("[", ",", ":", "::") and _is_list(tokens, number):
            parts.append(random.choice(("", ",")))
        parts.append(token.text)
    return "".join(parts)


def _between(token: Token, random: Random, density: float, number: int) -> str:
    beside = token.text in ("(", "[", "{")
    if random.random() < density:
        return random.choice(_BESIDE if beside else _COMMENTS).format(f"c{number}")
    return " " if beside else random.choice(_BLANKS)


def _is_list(tokens: list[Token], number: int) -> bool:
    """Return whether what closes at a word is a list: a comma stands in it already."""
    depth = 0
    for token in reversed(tokens[:number]):
        if token.text in (")", "]", "}"):
            depth += 1
        elif token.text in ("(", "[", "{"):
            depth -= 1
            if depth < 0:
                return False
        elif token.text == "," and depth == 0:
            return True
    return False


def _wrapped(text: str, random: Random, density: float) -> str:
    """Return the text with parentheses around some of its expressions."""
    inserted: list[tuple[int, int, str]] = []
    for node in _expressions(read(SourceText("text", text)).program):
        if random.random() < density / 4:
            start, end = node.span
            inserted += ((start, -end, "("), (end, -start, ")"))
    parts: list[str] = []
    last = 0
    for place, _, bracket in sorted(inserted, key=lambda each: (each[0], each[2] == "(", each[1])):
        parts += (text[last:place], bracket)
        last = place
    return "".join((*parts, text[last:]))


def _expressions(node: Any) -> Iterator[Any]:
    """Yield the expressions that may have parentheses around them."""
    if isinstance(node, nodes.FieldValue) and node.short:
        return
    if isinstance(node, _WRAPPED):
        yield node
    parts = node if isinstance(node, list) else ()
    if is_dataclass(node) and not isinstance(node, nodes.Tensor):
        parts = [getattr(node, each.name) for each in fields(node)]
    for part in parts:
        yield from _expressions(part)
