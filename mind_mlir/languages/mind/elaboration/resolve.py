"""Types as they are written, against types of values: what names of types and of dimensions mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.builders.type_rules import size
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.mind.elaboration.types import DTYPES, UNIT, StructOf, SurfaceType, TupleOf
from mind_mlir.languages.mind.elaboration.wording import reworded
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.file import File

#: What is known of the type that an expression is to have: all of it, the dtype of a tensor, or nothing.
Expected: TypeAlias = SurfaceType | DType | None

_UNIT = "unit"


def resolved(file: File, node: nodes.Type, extents: Mapping[str, int]) -> SurfaceType | None:
    """Return the type that ``node`` says; None where a dimension is not bound, or it has been reported."""
    if isinstance(node, nodes.Tensor):
        dtype = DTYPES.get(node.dtype.text)
        shape = [_extent(each, extents) for each in node.dimensions]
        known = tuple([extent for extent in shape if extent is not None])
        return TensorType(dtype, known) if dtype and len(known) == len(shape) else None
    if isinstance(node, nodes.TupleType):
        items = [resolved(file, item, extents) for item in node.items]
        found = tuple([item for item in items if item is not None])
        return TupleOf(found) if len(found) == len(items) else None
    if not isinstance(node, nodes.NamedType):
        return None
    name = node.name.text
    if name in DTYPES:
        return TensorType(DTYPES[name])
    if name == _UNIT:
        return UNIT
    if name in file.aliases:
        return resolved(file, file.aliases[name].type, extents)
    if name not in file.structs:
        return None
    fields = [(each.name.text, resolved(file, each.type, extents)) for each in file.structs[name].fields]
    complete = tuple([(label, type_) for label, type_ in fields if type_ is not None])
    return StructOf(name, complete) if len(complete) == len(fields) else None


def hint(file: File, node: nodes.Type | None, extents: Mapping[str, int]) -> Expected:
    """Return what is known of the type that ``node`` says."""
    if node is None:
        return None
    found = resolved(file, node, extents)
    if found is None and isinstance(node, nodes.Tensor):
        return DTYPES.get(node.dtype.text)
    return found


def fits(file: File, node: nodes.Type, type_: SurfaceType, extents: dict[str, int]) -> bool:
    """Return whether ``type_`` is what ``node`` says, and bind the dimensions that are met first."""
    if isinstance(node, nodes.Tensor):
        return (
            isinstance(type_, TensorType)
            and type_.dtype is DTYPES.get(node.dtype.text)
            and type_.rank == len(node.dimensions)
            and all(
                _bind(each, extent, extents)
                for each, extent in zip(node.dimensions, type_.extents, strict=True)
            )
        )
    if isinstance(node, nodes.TupleType):
        return (
            isinstance(type_, TupleOf)
            and len(type_.items) == len(node.items)
            and all(
                fits(file, item, found, extents) for item, found in zip(node.items, type_.items, strict=True)
            )
        )
    if isinstance(node, nodes.Invalid):
        return True
    name = node.name.text
    if name in file.aliases:
        return fits(file, file.aliases[name].type, type_, extents)
    if name not in file.structs:
        return resolved(file, node, extents) == type_
    if not isinstance(type_, StructOf) or type_.name not in ("", name):
        return False
    declared = {each.name.text: each.type for each in file.structs[name].fields}
    return list(declared) == [label for label, _ in type_.fields] and all(
        fits(file, declared[label], part, extents) for label, part in type_.fields
    )


def dimension_names(file: File, node: nodes.Type | None) -> Iterator[str]:
    """Yield the names of dimensions in a type, in the order in which they are met."""
    if isinstance(node, nodes.Tensor):
        yield from [each.text for each in node.dimensions if isinstance(each, nodes.Ident)]
    elif isinstance(node, nodes.TupleType):
        for item in node.items:
            yield from dimension_names(file, item)
    elif isinstance(node, nodes.NamedType) and node.name.text in file.aliases:
        yield from dimension_names(file, file.aliases[node.name.text].type)
    elif isinstance(node, nodes.NamedType) and node.name.text in file.structs:
        for each in file.structs[node.name.text].fields:
            yield from dimension_names(file, each.type)


def shown(node: nodes.Type) -> str:
    """Return a type as it is written: ``Tensor<f32, [n, 4]>``."""
    if isinstance(node, nodes.Tensor):
        return f"Tensor<{node.dtype.text}, [{', '.join(each.text for each in node.dimensions)}]>"
    if isinstance(node, nodes.TupleType):
        return f"({', '.join(map(shown, node.items))})" if node.items else _UNIT
    return node.name.text if isinstance(node, nodes.NamedType) else "?"


def bound_notes(file: File, node: nodes.Type, extents: Mapping[str, int]) -> tuple[str, ...]:
    """Return what the dimensions of a type are bound to, as a note, where it has some."""
    found = dict.fromkeys(name for name in dimension_names(file, node) if name in extents)
    return (f"{', '.join(f'{name} is {extents[name]}' for name in found)}",) if found else ()


def distinct(file: File, names: Sequence[nodes.Ident], what: str) -> None:
    """Report names that are the same (E2201); ``_`` is none."""
    seen: set[str] = set()
    for name in names:
        if name.text in seen and name.text != "_":
            message, help_ = f"{name.text} is {what} twice", "give one of them another name"
            file.report("E2201", message, name.span, help=help_, name=name.text)
        seen.add(name.text)


def check_type(file: File, node: nodes.Type | None) -> None:
    """Report what is wrong with a type as it is written: unknown names (E2202), extents of 0 (E3006)."""
    if isinstance(node, nodes.Tensor):
        if node.dtype.text not in DTYPES:
            said, help_ = f"there is no element type {node.dtype.text}", f"elements are {', '.join(DTYPES)}"
            file.unknown("E2202", said, node.dtype, DTYPES, help_)
        for index, each in enumerate(node.dimensions):
            if isinstance(each, nodes.Number) and (not isinstance(each.value, int) or each.value < 1):
                message = f"dimension {index} is {each.text}, and must be a whole number of 1 or more"
                help_ = "write a number, or a name for any extent"
                facts: dict[str, Any] = {"shape": [dim.text for dim in node.dimensions], "index": index}
                file.report("E3006", message, each.span, help=help_, **facts, value=each.value)
        _check_size(file, node)
    elif isinstance(node, nodes.TupleType):
        for item in node.items:
            check_type(file, item)
    elif isinstance(node, nodes.NamedType):
        known = (*DTYPES, _UNIT, "Tensor", *file.structs, *file.aliases)
        if node.name.text not in known:
            help_ = "declare it: struct Name { field: type }, or type Name = type;"
            file.unknown("E2202", f"there is no type {node.name.text}", node.name, known, help_)
        elif node.name.text == "Tensor":
            help_ = "write Tensor<f32, [2, 3]>; a dimension may be a name, which stands for any extent"
            file.report("E2003", "a Tensor without a dtype and a shape", node.span, help=help_)


def _check_size(file: File, node: nodes.Tensor) -> None:
    """Report a tensor that no array can be (E4104, E4106), whatever its open dimensions are."""
    extents = [each.value if isinstance(each, nodes.Number) else 1 for each in node.dimensions]
    known = [extent for extent in extents if isinstance(extent, int) and extent >= 1]
    if node.dtype.text in DTYPES and len(known) == len(extents):
        wrong = size(TensorType(DTYPES[node.dtype.text], tuple(known)), None)
        file.extend(reworded([wrong] if wrong else []), node.span)


def _extent(node: nodes.Ident | nodes.Number, extents: Mapping[str, int]) -> int | None:
    if isinstance(node, nodes.Ident):
        return extents.get(node.text)
    return node.value if isinstance(node.value, int) and node.value >= 1 else None


def _bind(node: nodes.Ident | nodes.Number, extent: int, extents: dict[str, int]) -> bool:
    if isinstance(node, nodes.Number):
        return node.value == extent
    return extents.setdefault(node.text, extent) == extent
