"""Records of plain data as attributes: what one stage decides, and a later one reads."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Attribute

Record = TypeVar("Record")


def attribute_of(value: bool | int | str) -> Attribute:
    """Return ``value`` as an attribute, integers as i64."""
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def record_attribute(record: Any, **others: bool | int | str) -> Attribute:
    """Return the fields of ``record``, a dataclass of flags, integers and strings, and ``others`` as one."""
    fields = {**others, **{_key(each): getattr(record, each.name) for each in dataclasses.fields(record)}}
    return ir.DictAttr.get({name: attribute_of(value) for name, value in fields.items()})


def read_record(type_: type[Record], attribute: Attribute) -> Record:
    """Return the record of ``type_`` that `record_attribute` made ``attribute`` of."""
    values = ir.DictAttr(attribute)
    fields = dataclasses.fields(type_)  # type: ignore[arg-type] # a dataclass, which no type says
    return type_(**{each.name: _read(values[_key(each)]) for each in fields})


def spelled(name: str) -> dict[str, str]:
    """Return the metadata of a field that attributes, which people read in dumps, call ``name``."""
    return {"name": name}


def _key(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("name", field.name))


def _read(attribute: Attribute) -> bool | int | str:
    if isinstance(attribute, ir.StringAttr | ir.BoolAttr):
        value: bool | str = attribute.value
        return value
    return int(ir.IntegerAttr(attribute).value)
