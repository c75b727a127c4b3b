"""The values of expressions while a function is elaborated.

    value ::= tensor (a `Value` of the IR) | tuple | struct | literal | function | bad

Functions are values that exist only then. A value *leaves* its function, for a block's parameters or for a
function that captures it, as the tensors that it holds (`leaves`), and is put together again from others
(`rebuilt`); two values with one `key` differ in these tensors alone. What is `BAD` has been reported.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ir.value import Value
from mind_mlir.languages.mind.elaboration.types import StructOf, SurfaceType, TupleOf
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax import nodes
    from mind_mlir.languages.staging import Instance
    from mind_mlir.ops.opdef import OpDef


class Bad:
    """The value of what has been reported."""

    def __repr__(self) -> str:
        return "BAD"


BAD = Bad()


@dataclass(frozen=True, slots=True, eq=False)
class TupleValue:
    """A tuple; of no items, unit."""

    items: tuple[SurfaceValue, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StructValue:
    """A struct."""

    name: str
    fields: Mapping[str, SurfaceValue]


@dataclass(frozen=True, slots=True, eq=False)
class LiteralValue:
    """A number, a truth value, or nested lists of them, as written.

    Attributes:
        data: The number, or the lists.
        kind: ``int``, ``float`` or ``bool``.
        dtype: Its dtype, where that is settled; else the place where it is used settles it.
        value: The constant that has been made of it.
    """

    data: Any
    kind: str
    dtype: DType | None = None
    value: Value | None = None

    @property
    def is_scalar(self) -> bool:
        """Return whether it is a single number or truth value."""
        return not isinstance(self.data, list)

    @property
    def default_dtype(self) -> DType:
        """Return the dtype that it has where nothing else says one."""
        return self.dtype or {"int": DType.SI64, "float": DType.F32, "bool": DType.I1}[self.kind]


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """A function or closure of the program, and what it reads around it: values, and dimensions."""

    node: nodes.Function | nodes.Closure
    captured: Mapping[str, SurfaceValue] = field(default_factory=dict)
    extents: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """Return what it is called in the IR."""
        return getattr(getattr(self.node, "name", None), "text", "closure")


@dataclass(frozen=True, slots=True, eq=False)
class Builtin:
    """A function that is there without being declared.

    Attributes:
        name: What it is called.
        record: Its operation, where it has one.
        preset: Attributes of the operation that its name settles.
    """

    name: str
    record: OpDef | None = None
    preset: Mapping[str, Any] = field(default_factory=FrozenDict)


@dataclass(frozen=True, slots=True, eq=False)
class Foreign:
    """A function of Python."""

    name: str
    function: Any


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """``grad(f)``, ``vjp(f)`` or ``value_and_grad(f)``; ``kind`` is the word."""

    kind: str
    function: SurfaceValue


@dataclass(frozen=True, slots=True, eq=False)
class PullbackValue:
    """The second result of ``vjp(f)(x)``: a function from a cotangent to gradients of the arguments.

    Attributes:
        instance: What was called.
        arguments: The arguments.
        captured: What the function reads around it, which follows them.
    """

    instance: Instance
    arguments: tuple[SurfaceValue, ...]
    captured: tuple[SurfaceValue, ...]


SurfaceFunction: TypeAlias = Routine | Builtin | Foreign | Derived | PullbackValue
SurfaceValue: TypeAlias = Value | TupleValue | StructValue | LiteralValue | SurfaceFunction | Bad

UNIT_VALUE = TupleValue(())
FUNCTIONS = (Routine, Builtin, Foreign, Derived, PullbackValue)


def inner(value: SurfaceValue) -> tuple[SurfaceValue, ...]:
    """Return the values that ``value`` is made of, or reads."""
    if isinstance(value, TupleValue):
        return value.items
    if isinstance(value, StructValue):
        return tuple(value.fields.values())
    if isinstance(value, Routine):
        return tuple(value.captured.values())
    if isinstance(value, Derived):
        return (value.function,)
    return (*value.arguments, *value.captured) if isinstance(value, PullbackValue) else ()


def leaves(value: SurfaceValue) -> Iterator[Value]:
    """Yield the tensors that ``value`` holds, in order."""
    if isinstance(value, Value):
        yield value
        return
    for part in inner(value):
        yield from leaves(part)


def rebuilt(value: SurfaceValue, tensors: Iterator[Value]) -> SurfaceValue:
    """Return ``value`` with other tensors for its `leaves`; literals are made constants anew."""
    if isinstance(value, Value):
        return next(tensors)
    if isinstance(value, LiteralValue):
        return replace(value, value=None) if value.value else value
    parts = tuple([rebuilt(part, tensors) for part in inner(value)])
    if isinstance(value, TupleValue):
        return TupleValue(parts)
    if isinstance(value, StructValue):
        return StructValue(value.name, dict(zip(value.fields, parts, strict=True)))
    if isinstance(value, Routine):
        return replace(value, captured=dict(zip(value.captured, parts, strict=True))) if parts else value
    if isinstance(value, Derived):
        return replace(value, function=parts[0])
    if isinstance(value, PullbackValue):
        count = len(value.arguments)
        return replace(value, arguments=parts[:count], captured=parts[count:])
    return value


def key(value: SurfaceValue) -> Hashable:
    """Return what two values have in common that differ in their tensors alone."""
    if isinstance(value, Value):
        return value.type
    if isinstance(value, LiteralValue):
        return ("literal", repr(value.data), value.kind, value.dtype)
    about: Hashable = None
    if isinstance(value, StructValue):
        about = (value.name, tuple(value.fields))
    elif isinstance(value, Routine):
        about = (value.node, value.extents, tuple(value.captured))
    elif isinstance(value, (Builtin, Foreign)):
        about = value.name
    elif isinstance(value, Derived):
        about = value.kind
    elif isinstance(value, PullbackValue):
        about = value.instance.name
    return (type(value).__name__, about, *map(key, inner(value)))


def type_of(value: SurfaceValue) -> SurfaceType | None:
    """Return the type of a value; None where it is or holds a function, or is bad."""
    if isinstance(value, Value):
        return value.type
    if isinstance(value, LiteralValue):
        return TensorType(value.default_dtype, literal_shape(value.data))
    if not isinstance(value, (TupleValue, StructValue)):
        return None
    types = [type_of(part) for part in inner(value)]
    known = tuple([type_ for type_ in types if type_ is not None])
    if len(known) < len(types):
        return None
    if isinstance(value, TupleValue):
        return TupleOf(known)
    return StructOf(value.name, tuple(zip(value.fields, known, strict=True)))


def literal_shape(data: Any) -> tuple[int, ...]:
    """Return the shape of nested lists, going by the first of each."""
    shape: list[int] = []
    while isinstance(data, list):
        shape.append(len(data))
        data = data[0] if data else None
    return tuple(shape)


def typed(type_: SurfaceType, tensors: Iterator[Value]) -> SurfaceValue:
    """Return a value of ``type_`` that holds ``tensors``, one for each of its leaves."""
    if isinstance(type_, TensorType):
        return next(tensors)
    if isinstance(type_, TupleOf):
        return TupleValue(tuple([typed(item, tensors) for item in type_.items]))
    return StructValue(type_.name, {name: typed(part, tensors) for name, part in type_.fields})


def is_bad(value: SurfaceValue) -> bool:
    """Return whether ``value``, or a part of it, has been reported."""
    return value is BAD or any(map(is_bad, inner(value)))
