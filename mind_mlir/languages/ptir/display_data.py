"""The notation that the display text has for the spec of an operation, and the data that it stands for.

    data  ::= number | string | true | false | None | Word | [data, ...] | (data, ...) | {"name": data, ...}
            | Word(data) | Word { name: data, ... }

It is how Rust prints its values. A word in front of a value tells what it is where the contract has several
(``Static(2)``, ``Float(0.5)``); elsewhere (``ReduceSpec { ... }``, ``Some(...)``) it says nothing more. So
the data are those of JSON, and what is wrong with them is told by the same rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.ptir import spelling
from mind_mlir.languages.ptir.literals import ByteList, spell_bytes
from mind_mlir.languages.ptir.reading import MAX_NESTING, Path
from mind_mlir.languages.ptir.text import NON_FINITE, Spans, TextReader
from mind_mlir.ops.contract import MAP_KINDS, SCALAR_KINDS, Field, FieldKind

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import TensorLiteral
    from mind_mlir.languages.ptir.schema import OperationForm

#: Words that say which of several a value is.
_TAGS = frozenset(("Static", "Dynamic", "Explicit", *SCALAR_KINDS))
_CONSTANTS = {"true": True, "false": False, "None": None}


def read_data(reader: TextReader, path: Path, spans: Spans) -> Any:
    """Return the data that begin here, and note where their parts stand."""
    start = reader.token.start
    if reader.depth == MAX_NESTING:
        reader.fail("something that nests less deep")
    reader.depth += 1
    data = _data(reader, path, spans)
    reader.depth -= 1
    spans.setdefault(path, (start, reader.end))
    return data


def _data(reader: TextReader, path: Path, spans: Spans) -> Any:
    token = reader.advance()
    match token.kind, token.text:
        case "NUMBER", _:
            return reader.number(token)
        case "STRING", text:
            return reader.string(text, token)
        case "REGION", text:
            return reader.identifier(text.lstrip("^r"), token)
        case _, "?":
            return {"Dynamic": reader.symbol()[0]}
        case _, "[":
            return _items(reader, "]", path, spans)
        case _, "(":
            return _items(reader, ")", path, spans)
        case _, "{":
            return _map(reader, path, spans)
        case "WORD", word:
            return _word(reader, word, path, spans)
    return reader.unexpected(token, "a value")


def _word(reader: TextReader, word: str, path: Path, spans: Spans) -> Any:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word in NON_FINITE:
        return NON_FINITE[word]
    inner = (*path, word) if word in _TAGS else path
    if word in MAP_KINDS and reader.word == "(":
        inner = (*path, "value")
    if reader.accept("("):
        data = read_data(reader, inner, spans)
        reader.expect(")")
    elif reader.word == "{":
        data = read_struct(reader, inner, spans)
    else:
        return word
    if word in MAP_KINDS:
        return {"kind": word, "value": data}
    return {word: data} if word in _TAGS else data


def _items(reader: TextReader, closing: str, path: Path, spans: Spans) -> list[Any]:
    found: list[Any] = []
    for _ in reader.separated(closing):
        found.append(read_data(reader, (*path, len(found)), spans))
    return found


def _map(reader: TextReader, path: Path, spans: Spans) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in reader.separated("}", trailing=False):
        token = reader.kind("STRING", "a name in quotes")
        key = reader.string(token.text, token)
        if key in found:
            reader.unexpected(token, "a name that has not been there yet")
        reader.expect(":")
        found[key] = read_data(reader, (*path, key), spans)
    return found


def read_struct(reader: TextReader, path: Path, spans: Spans) -> dict[str, Any]:
    """Return the fields between the braces that begin here."""
    reader.expect("{")
    found: dict[str, Any] = {}
    for _ in reader.separated("}"):
        key = reader.kind("WORD", "the name of a field")
        if key.text in found:
            reader.unexpected(key, "a field that has not been there yet")
        reader.expect(":")
        start = reader.token.start
        if key.text == "bytes" and reader.word == "[":
            found["bytes"] = _bytes(reader)
        else:
            found[key.text] = read_data(reader, (*path, key.text), spans)
        spans[(*path, key.text)] = (start, reader.end)
    return found


def _bytes(reader: TextReader) -> ByteList:
    start = reader.token.end
    end = reader.text.find("]", start)
    if end < 0:
        reader.go_to(len(reader.text))
        reader.fail("']' at the end of a list of bytes")
    reader.go_to(end + 1)
    return ByteList(reader.text, start, end)


# Writing.


def spell_spec(form: OperationForm, fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what stands behind the name of an operation, in pieces."""
    if form.variant is not None:
        yield f"({form.variant})"
    elif form.literal is not None:
        yield "("
        yield from spell_literal(fields[form.literal.name])
        yield ")"
    elif form.fields:
        inner = ", ".join(f"{field.name}: {_field(field, fields[field.name])}" for field in form.fields)
        yield f" {{ {inner} }}" if form.spec is None else f"({form.spec} {{ {inner} }})"


def spell_literal(literal: TensorLiteral) -> Iterator[str]:
    """Yield ``TensorLiteral { ... }``, in pieces."""
    spec = spelling.tensor_spec(literal.type)
    yield f"TensorLiteral {{ spec: TensorSpec {{ dtype: {spec['dtype']}, shape: {_shape(spec['shape'])} }}, "
    yield "bytes: ["
    yield from spell_bytes(literal.data, ", ")
    yield "] }"


def _field(field: Field, value: Any) -> str:
    data = spelling.field(field.kind, value)
    match field.kind:
        case FieldKind.OPTIONAL_INTEGER | FieldKind.OPTIONAL_DTYPE:
            return "None" if data is None else f"Some({data})"
        case FieldKind.BOOLEAN:
            return "true" if data else "false"
        case FieldKind.TEXT:
            return json.dumps(data)
        case FieldKind.SHAPE:
            return _shape(data)
        case FieldKind.NEW_SHAPE:
            return _list(
                extent if extent == "Infer" else f"Explicit({_dim(extent['Explicit'])})" for extent in data
            )
        case FieldKind.PAIRS:
            return _list(f"({low}, {high})" for low, high in data)
        case FieldKind.SCALAR:
            ((kind, number),) = data.items()
            return f"{kind}{_plain(number) if isinstance(number, dict) else f'({_plain(number)})'}"
        case FieldKind.MAP:
            items = (f"{json.dumps(name)}: {_attribute(each)}" for name, each in data.items())
            return f"{{{', '.join(items)}}}"
        case FieldKind.REGION:
            return f"RegionId({data})"
    return _plain(data)


def _plain(data: Any) -> str:
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, dict):
        return f" {{ {', '.join(f'{key}: {_plain(item)}' for key, item in data.items())} }}"
    if isinstance(data, list):
        return _list(map(_plain, data))
    return str(data) if isinstance(data, str) else repr(data)


def _attribute(attribute: dict[str, Any]) -> str:
    """Return one of a custom call's; strings have quotes, unlike the words of numbers."""
    kind, value = attribute["kind"], attribute["value"]
    return f"{kind}({json.dumps(value) if kind.startswith('String') else _plain(value)})"


def _list(items: Any) -> str:
    return f"[{', '.join(items)}]"


def _shape(data: dict[str, Any]) -> str:
    return f"Shape {{ dims: {_list(map(_dim, data['dims']))} }}"


def _dim(data: dict[str, Any]) -> str:
    ((kind, value),) = data.items()
    return f"{kind}({json.dumps(value)})"
