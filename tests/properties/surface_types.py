"""Types of generated `.mind` programs, and the nodes that spell them and their literals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable

#: An extent, or the name of one.
Extent: TypeAlias = "int | str"


@dataclass(frozen=True)
class TensorOf:
    dtype: str
    shape: tuple[Extent, ...] = ()

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("f")

    @property
    def is_open(self) -> bool:
        """Whether a dimension has a name."""
        return any(isinstance(extent, str) for extent in self.shape)


@dataclass(frozen=True)
class StructOf:
    name: str
    fields: tuple[tuple[str, TensorOf], ...]


@dataclass(frozen=True)
class TupleOf:
    items: tuple[Type, ...]


Type: TypeAlias = TensorOf | StructOf | TupleOf

BOOL, COUNT, FLOAT = TensorOf("bool"), TensorOf("i64"), TensorOf("f32")


@dataclass(frozen=True)
class Signature:
    """What can be called, and whether it has a gradient everywhere that finite differences agree with."""

    name: str
    parameters: tuple[Type, ...]
    result: Type
    smooth: bool = False


def ident(name: str) -> nodes.Ident:
    return nodes.Ident(name)


def name(text: str) -> nodes.Name:
    return nodes.Name(text)


def whole(value: int) -> nodes.Number:
    return nodes.Number(value, str(value))


def real(value: float) -> nodes.Number:
    return nodes.Number(value, repr(value))


def call(
    function: str | nodes.Expression, *values: nodes.Expression, **named: nodes.Expression
) -> nodes.Call:
    callee = name(function) if isinstance(function, str) else function
    arguments = [nodes.Argument(value) for value in values]
    return nodes.Call(callee, arguments + [nodes.Argument(value, ident(key)) for key, value in named.items()])


def numbers(*values: int) -> nodes.List:
    return nodes.List([whole(value) for value in values])


def type_node(type_: Type) -> nodes.Type:
    if isinstance(type_, StructOf):
        return nodes.NamedType(ident(type_.name))
    if isinstance(type_, TupleOf):
        return nodes.TupleType([type_node(item) for item in type_.items])
    if not type_.shape:
        return nodes.NamedType(ident(type_.dtype))
    extents = [ident(each) if isinstance(each, str) else whole(each) for each in type_.shape]
    return nodes.Tensor(ident(type_.dtype), extents)


def nested(shape: tuple[Extent, ...], element: Callable[[], nodes.Expression]) -> nodes.Expression:
    """Return a list of lists of elements, as deep as the shape."""
    if not shape:
        return element()
    assert isinstance(shape[0], int), "a literal has known extents"
    return nodes.List([nested(shape[1:], element) for _ in range(shape[0])])
