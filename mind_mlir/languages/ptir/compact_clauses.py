"""The clauses of the compact text, such as ``axes[1]`` or ``pad_value[-inf]``, read and written.

    clause ::= name "[" item ("," item)* "]"
    item   ::= number | word | string | ?symbol | ^region | "[" items "]" | complex(number, number)
             | word "[" items "]" | name = item

What an item means depends on the kind of the field. The data are those of JSON, and what is wrong with them
is told by the same rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.ir.types import DType
from mind_mlir.languages.ptir import spelling
from mind_mlir.languages.ptir.schema import DTYPE_NAMES, DTYPES, snake
from mind_mlir.languages.ptir.text import NON_FINITE, Spans, TextReader, spelled_dim
from mind_mlir.ops.contract import MAP_KINDS, Field, FieldKind

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.reading import Path
    from mind_mlir.languages.text.cursor import Token

_MAX_NESTING = 8


class Item(NamedTuple):
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
    return [_item(reader, depth) for _ in reader.separated(closing, trailing=False)]


def _item(reader: TextReader, depth: int) -> Item:
    token = reader.advance()
    if token.kind in _ATOMS:
        return _ATOMS[token.kind](reader, token, depth)
    if token.text == "?":
        text, end = reader.symbol()
        return Item("dim", text, token.start, end)
    if token.text == "[":
        return Item("list", read_items(reader, "]", depth + 1), token.start, reader.end)
    return reader.unexpected(token, "a number, a word, a string or a list")


def _number(reader: TextReader, token: Token, _depth: int) -> Item:
    value = reader.number(token)
    look = "uint" if token.text.endswith("u") else "int" if isinstance(value, int) else "float"
    return Item(look, value, token.start, token.end)


def _string(reader: TextReader, token: Token, depth: int) -> Item:
    text = reader.string(token.text, token)
    if reader.accept("="):
        return _named(reader, text, token.start, depth)
    return Item("string", text, token.start, token.end)


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


def _named(reader: TextReader, name: str, start: int, depth: int) -> Item:
    if depth > _MAX_NESTING:
        reader.fail("something that nests less deep")
    return Item("named", _item(reader, depth + 1), start, reader.end, name)


_ATOMS: dict[str, Callable[[TextReader, Token, int], Item]] = {
    "NUMBER": _number,
    "STRING": _string,
    "REGION": lambda reader, token, _depth: Item(
        "region", reader.identifier(token.text.lstrip("^r"), token), token.start, token.end
    ),
    "WORD": _word,
}

# The data of items.

_CONSTANTS = {"true": True, "false": False, "none": None}


def data_of(field: Field, items: list[Item], path: Path, spans: Spans) -> Any:
    """Return the data of a clause for a field, and note where their parts stand."""
    kind = field.kind
    inner = (*path, "dims") if kind is FieldKind.SHAPE else path
    for index, item in enumerate(items):
        spans[(*inner, index)] = spans[(*inner, item.name)] = (item.start, item.end)
    if kind is FieldKind.MAP and all(item.look == "named" for item in items):
        return _attributes(items)
    if kind in _LISTS:
        return _LISTS[kind](items)
    if len(items) != 1:
        return list(map(_plain, items))
    (item,) = items
    spans[path] = (item.start, item.end)
    if kind is FieldKind.SCALAR:
        return _scalar(item)
    return _word_of(field, item) if item.look == "word" else _plain(item)


def _word_of(field: Field, item: Item) -> Any:
    """Return what a word means to a field: dtypes and choices are spelled otherwise in JSON."""
    if field.kind in (FieldKind.DTYPE, FieldKind.OPTIONAL_DTYPE):
        dtype = DType.from_name(item.value) or DTYPES.get(item.value)
        return DTYPE_NAMES[dtype] if dtype else _plain(item)
    if field.kind is FieldKind.WORD:
        return {snake(choice): choice for choice in field.choices}.get(item.value, item.value)
    return _plain(item)


def _attributes(items: list[Item]) -> Any:
    names = {item.name for item in items}
    return (
        {item.name: _attribute(item.value) for item in items} if len(names) == len(items) else "a name twice"
    )


def _plain(item: Item) -> Any:
    if item.look == "word":
        return _CONSTANTS.get(item.value, item.value)
    if item.look in ("list", "complex", "array"):
        return [_plain(each) for each in item.value]
    if item.look == "named":
        return {item.name: _plain(item.value)}
    return {"Dynamic": item.value} if item.look == "dim" else item.value


def _dim(item: Item) -> Any:
    return _plain(item) if item.look == "dim" else {"Static": _plain(item)}


def _scalar(item: Item) -> Any:
    kinds = {"int": "Signed", "uint": "Unsigned", "float": "Float", "word": "I1"}
    if item.look == "complex" and len(item.value) == 2:
        real, imaginary = map(_plain, item.value)
        return {"Complex": {"re": real, "im": imaginary}}
    kind = kinds.get(item.look)
    return {kind: _plain(item)} if kind else _plain(item)


def _attribute(item: Item) -> dict[str, Any]:
    kinds = {"int": "I64", "float": "F64", "word": "Bool", "string": "String"}
    if item.look == "array":
        return {"kind": item.name, "value": _plain(item)}
    if item.look == "list":
        first = item.value[0].look if item.value else ""
        return {"kind": f"{kinds.get(first, 'String')}Array", "value": _plain(item)}
    return {"kind": kinds.get(item.look, "String"), "value": _plain(item)}


_LISTS: dict[FieldKind, Callable[[list[Item]], Any]] = {
    FieldKind.INTEGERS: lambda items: list(map(_plain, items)),
    FieldKind.PAIRS: lambda items: list(map(_plain, items)),
    FieldKind.SHAPE: lambda items: {"dims": list(map(_dim, items))},
    FieldKind.NEW_SHAPE: lambda items: [
        "Infer" if item.value == "infer" else {"Explicit": _dim(item)} for item in items
    ],
}

# Writing.

_WORD = re.compile(r"[A-Za-z_]\w*\Z", re.A)


def spell_field(field: Field, value: Any) -> str:
    """Return what stands between the brackets."""
    spell = _SPELLED.get(field.kind)
    return spell(value) if spell else _spell_plain(spelling.field(field.kind, value))


def _spell_map(value: Any) -> str:
    data = spelling.field(FieldKind.MAP, value)
    return ", ".join(f"{_spell_name(name)} = {_spell_attribute(**each)}" for name, each in data.items())


def _spell_plain(data: Any) -> str:
    if isinstance(data, bool):
        return "true" if data else "false"
    return data if isinstance(data, str) else repr(data)


def _spell_scalar(value: Any) -> str:
    ((kind, data),) = spelling.field(FieldKind.SCALAR, value).items()
    if kind == "Complex":
        return f"complex({_spell_plain(data['re'])}, {_spell_plain(data['im'])})"
    return f"{_spell_plain(data)}{'u' if kind == 'Unsigned' else ''}"


def _spell_attribute(kind: str, value: Any) -> str:
    if not kind.endswith("Array"):
        return json.dumps(value) if kind == "String" else _spell_plain(value)
    return f"{'' if value else kind}[{_joined(kind, value)}]"


def _joined(kind: str, values: Iterable[Any]) -> str:
    return ", ".join(map(json.dumps if kind == "StringArray" else _spell_plain, values))


def _spell_name(name: str) -> str:
    return name if _WORD.match(name) else json.dumps(name)


_SPELLED: dict[FieldKind, Callable[[Any], str]] = {
    FieldKind.DTYPE: lambda value: str(value.value),
    FieldKind.OPTIONAL_DTYPE: lambda value: str(value.value),
    FieldKind.WORD: snake,
    FieldKind.TEXT: json.dumps,
    FieldKind.SHAPE: lambda value: ", ".join(map(spelled_dim, value)),
    FieldKind.NEW_SHAPE: lambda value: ", ".join(
        "infer" if extent is None else spelled_dim(extent) for extent in value
    ),
    FieldKind.INTEGERS: lambda value: ", ".join(map(str, value)),
    FieldKind.PAIRS: lambda value: ", ".join(f"[{low}, {high}]" for low, high in value),
    FieldKind.REGION: lambda value: f"^{value}",
    FieldKind.SCALAR: _spell_scalar,
    FieldKind.MAP: _spell_map,
}
