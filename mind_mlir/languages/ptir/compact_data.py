"""The clauses of the compact text, such as ``axes[1]`` or ``pad_value[-inf]``, and the data they stand for.

What an item means depends on the kind of the field. The data are those of JSON, and what is wrong with them
is told by the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.ir.types import DType
from mind_mlir.languages.ptir.schema import DTYPE_NAMES, DTYPES, snake
from mind_mlir.ops.contract import FieldKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.languages.ptir.compact_items import Item
    from mind_mlir.languages.ptir.reading import Path
    from mind_mlir.ops.contract import Field

#: Where each part of some data stands.
Spans: TypeAlias = "dict[Path, tuple[int, int]]"

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
    return _word(field, item) if item.look == "word" else _plain(item)


def _word(field: Field, item: Item) -> Any:
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


def _shape(items: list[Item]) -> Any:
    return {"dims": list(map(_dim, items))}


def _new_shape(items: list[Item]) -> Any:
    return ["Infer" if item.value == "infer" else {"Explicit": _dim(item)} for item in items]


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
    FieldKind.SHAPE: _shape,
    FieldKind.NEW_SHAPE: _new_shape,
}
