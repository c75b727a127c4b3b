"""The clauses of the compact text, written: what `compact_data` reads."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.ptir import spelling
from mind_mlir.languages.ptir.schema import snake
from mind_mlir.languages.ptir.text import spelled_dim
from mind_mlir.ops.contract import FieldKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mind_mlir.ops.contract import Field

_WORD = re.compile(r"[A-Za-z_]\w*\Z", re.A)


def spell_field(field: Field, value: Any) -> str:
    """Return what stands between the brackets."""
    spell = _SPELLED.get(field.kind)
    return spell(value) if spell else _spell_plain(spelling.field(field.kind, value))


def _spell_new_shape(value: Any) -> str:
    return ", ".join("infer" if extent is None else spelled_dim(extent) for extent in value)


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
    FieldKind.NEW_SHAPE: _spell_new_shape,
    FieldKind.INTEGERS: lambda value: ", ".join(map(str, value)),
    FieldKind.PAIRS: lambda value: ", ".join(f"[{low}, {high}]" for low, high in value),
    FieldKind.REGION: lambda value: f"^{value}",
    FieldKind.SCALAR: _spell_scalar,
    FieldKind.MAP: _spell_map,
}
