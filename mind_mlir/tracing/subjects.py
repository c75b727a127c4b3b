"""Objects that stand in for those of methods while these are traced, and note what is read of them.

A method is given, for its object, one of a class derived from the object's. Attributes are read from the
object: an array is an input of the program, and what else there is decides on the program
(`mind_mlir.runtime.staged_reads`). Lists, tuples, dicts and further objects are looked into in the same way.
Nothing can be written.
"""

from __future__ import annotations

import enum
from dataclasses import field
from types import GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn

from mind_mlir.arguments.tensors import viewed
from mind_mlir.runtime.call import Called
from mind_mlir.runtime.staged_reads import (
    ConstantRead,
    Leaf,
    Parts,
    ReadRecord,
    Reads,
    Subject,
    array_type,
    reads_of,
)
from mind_mlir.runtime.staged_values import Captured, StagedValue
from mind_mlir.support.argument_checks import describe
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.pytrees import STANDS_FOR
from mind_mlir.tracing.places import refuse

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.trace import Trace

_STATE = "__mind_mlir_state__"
_MISSING = object()
#: In the flags of a class: it has been made by Python's `class`, or as that would.
_HEAP_TYPE = 1 << 9


class StandIn:
    """The base of what stands in for objects."""

    __slots__ = ()

    def __init_subclass__(cls, **_: Any) -> None:
        """Keep the news from the classes around: no registry of theirs is to hear of a stand-in's."""

    def __getattribute__(self, name: str) -> Any:
        state = _state(self)
        return object.__getattribute__(self, name) if state is None else state.get(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if _state(self) is not None:
            _refuse_to_write(self, name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if _state(self) is not None:
            _refuse_to_write(self, name)
        object.__delattr__(self, name)


def _state(stand_in: object) -> _StandInState | None:
    found: _StandInState | None = object.__getattribute__(stand_in, "__dict__").get(_STATE)
    return found


def _refuse_to_write(stand_in: StandIn, name: str) -> NoReturn:
    refuse(
        "E2306",
        f"{describe(stand_in)} is written to ({name}) by a method that is traced",
        "return what is to be kept, and set it where the method is called: what is traced runs once",
    )


@dataclass(slots=True, eq=False)
class ObjectReads:
    """The reads of objects by the functions that are being made for one program.

    Attributes:
        subject: The object of the method that is called, if any.
        trace: The outermost trace, whose parameters arrays are.
        count: How often something has been read.
    """

    subject: object
    trace: Trace | None = None
    count: int = 0
    _roots: list[Subject] = field(default_factory=list)
    _leaves: list[Leaf] = field(default_factory=list)
    _values: dict[Leaf, Value] = field(default_factory=dict)
    _known: dict[int, tuple[Subject, Any]] = field(default_factory=dict)

    def begin(self, trace: Trace) -> None:
        """Let ``trace`` take the arrays, unless one around it does."""
        if self.trace is None:
            self.trace = trace

    def of(self, value: Any) -> Any:
        """Return what stands in for the object of a method, or is it where there can be nothing."""
        state = _state(value) if isinstance(type(value).__dict__.get(STANDS_FOR), type) else None
        if state is not None:
            if state.reading is not self:
                raise Captured
            return value
        known = id(value) in self._known
        node = self._node(value, type(value).__name__ if value is not self.subject else "self")
        if isinstance(node, Subject) and not known:
            self._roots.append(node)
        return self.shown(node)

    def finished(self) -> Reads | None:
        """Return what has been read."""
        return reads_of(self.subject, self._roots, self._leaves) if self._roots else None

    def read(self, subject: Subject, name: str) -> Any:
        """Return an attribute of an object as what stands in for it."""
        self.count += 1
        node = subject.attributes.get(name)
        if node is None:
            node = self._node(getattr(subject.value, name), f"{subject.name}.{name}")
            subject.attributes[name] = node
        return self.shown(node)

    def shown(self, node: ReadRecord) -> Any:
        """Return what stands for a node."""
        if isinstance(node, Leaf):
            return self._array(node)
        if isinstance(node, Subject):
            return self._known[id(node.value)][1]
        if isinstance(node, ConstantRead):
            return node.value
        assert isinstance(node, Parts), "there are four kinds"
        parts = [self.shown(part) for part in node.parts]
        if issubclass(node.cls, dict):
            return dict(zip(node.keys, parts, strict=True))
        cls: Any = node.cls
        return cls._make(parts) if hasattr(cls, "_make") else cls(parts)

    def _node(self, value: Any, name: str) -> ReadRecord:
        cls = type(value)
        if id(value) in self._known:
            return self._known[id(value)][0]
        type_ = array_type(value)
        if type_ is not None:
            return Leaf(name, type_, value)
        named = issubclass(cls, tuple) and hasattr(cls, "_make")
        if cls in (list, tuple) or named:
            return Parts(
                cls,
                tuple(range(len(value))),
                [self._node(each, f"{name}.{at}") for at, each in enumerate(value)],
            )
        if cls is dict:
            return Parts(
                cls, tuple(value), [self._node(each, f"{name}.{key}") for key, each in value.items()]
            )
        stand_in = _stand_in(value) if is_plain(cls) else None
        if stand_in is None:
            return ConstantRead(value)
        node = Subject(value, name)
        object.__getattribute__(stand_in, "__dict__")[_STATE] = _StandInState(node, self)
        self._known[id(value)] = node, stand_in
        return node

    def _array(self, leaf: Leaf) -> Any:
        """Return the parameter that stands for an array, a new one behind a branch that made it."""
        assert self.trace is not None, "something is being traced"
        value = self._values.get(leaf)
        if value is None or value.id in self.trace.builder.hidden:
            array = viewed(leaf.value)[0]
            assert array is not None, "an array has been read"
            value = self.trace.input(leaf.type, array)
            self._values[leaf] = value
            self._leaves.append(leaf)
        return self.trace.wrap(value)


@dataclass(slots=True, eq=False)
class _StandInState:
    """The state of a stand-in: the object that it stands for, and the reading that records its attributes."""

    node: Subject
    reading: ObjectReads

    def get(self, stand_in: object, name: str) -> Any:
        """Return an attribute, found as Python finds those of objects."""
        real, cls = self.node.value, self.node.cls
        if name == "__class__":
            return cls
        own: dict[str, Any] = getattr(real, "__dict__", {})
        if name == "__dict__":
            return {key: self.get(stand_in, key) for key in own}
        found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), _MISSING)
        kind: Any = type(found)
        if hasattr(kind, "__set__") and not isinstance(found, (MemberDescriptorType, GetSetDescriptorType)):
            return kind.__get__(found, stand_in, cls)
        if name in own or (found is not _MISSING and not hasattr(kind, "__get__")):
            return self.reading.read(self.node, name)
        if found is _MISSING:
            self.node.absent.add(name)
            self.reading.count += 1
            raise AttributeError(
                f"{cls.__name__!r} object has no attribute {name!r}", name=name, obj=stand_in
            )
        if isinstance(found, (MemberDescriptorType, GetSetDescriptorType)):
            return self.reading.read(self.node, name)
        return kind.__get__(found, stand_in, cls)


def is_plain(cls: type) -> bool:
    """Return whether objects of a class are what their attributes are: all of it is written in Python."""
    return (
        all(base.__flags__ & _HEAP_TYPE for base in cls.__mro__[:-1])
        and not any("__getattribute__" in vars(base) for base in cls.__mro__[:-1])
        and not issubclass(cls, (type, enum.Enum, Called, StagedValue))
    )


def _stand_in(value: object) -> Any:
    """Return an object of a class derived from that of ``value``; None where there can be none."""
    cls = type(value)
    try:
        # Neither a metaclass of the caller's nor `__init_subclass__` runs.
        made = type.__new__(
            type(cls), cls.__name__, (StandIn, cls), {"__module__": cls.__module__, STANDS_FOR: cls}
        )
        return object.__new__(made)
    except TypeError:  # the class is final, or part of it is not written in Python
        return None
