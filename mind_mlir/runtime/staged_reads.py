"""The reads of objects by a program, beside its arguments: of the object of a method, above all.

While a method is traced, what it reads of its object is noted (`mind_mlir.tracing.subjects`). Arrays are
inputs of the program, which each call takes from the object as they are then. Whatever else it reads has
decided on the program: a call looks whether that is as it was, and finds another program, or has it made,
where it is not.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.arguments.tensors import viewed
from mind_mlir.diagnostics.tracebacks import WRITTEN
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: Values that are compared; of all others, it has to be the same object.
_COMPARED = (bool, int, float, complex, str, bytes, type(None), range, np.dtype)


class Mismatch(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """The arguments, or what else is read, are not what the code is for."""


class ReadRecord:
    """The base of the records of what has been read at one place."""


@dataclass(slots=True, eq=False)
class ConstantRead(ReadRecord):
    """A value that has decided on the program."""

    value: Any


@dataclass(slots=True, eq=False)
class Leaf(ReadRecord):
    """An array: an input of the program."""

    name: str
    type: TensorType
    value: Any


@dataclass(slots=True, eq=False)
class Parts(ReadRecord):
    """A list, tuple or dict, all of which counts as read."""

    cls: type
    keys: tuple[Hashable, ...]
    parts: list[ReadRecord]


@dataclass(slots=True, eq=False)
class Subject(ReadRecord):
    """An object: only those of its attributes are read that are named here."""

    value: Any
    name: str
    attributes: dict[str, ReadRecord] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    @property
    def cls(self) -> type:
        """Return its class."""
        return type(self.value)


@dataclass(slots=True, eq=False)
class Reads:
    """The values of objects that a program reads.

    Attributes:
        fetch: Returns the arrays, given the object of the method; raises `Mismatch` where what else is read
            is not as it was.
        names: What the arrays are called as inputs.
        types: Their types.
    """

    fetch: Callable[[object], list[Any]]
    names: list[str]
    types: list[TensorType]

    def arrays(self, subject: object) -> list[Array] | None:
        """Return the arrays of a call; None where the program is not for what they are now."""
        try:
            found = self.fetch(subject)
        except Mismatch:
            return None
        for place, (value, type_) in enumerate(zip(found, self.types, strict=True)):
            array = viewed(value)[0]
            if array is None or array.shape != type_.shape or array.dtype != type_.dtype.numpy:
                return None
            found[place] = array
        return found


def reads_of(subject: object, roots: Sequence[Subject], leaves: Sequence[Leaf]) -> Reads:
    """Return what is read of objects.

    Args:
        subject: The object of the method, which every call has one of; or None.
        roots: The objects, each with what is read of it. None of them is kept alive.
        leaves: The arrays, in the order of the inputs.
    """
    writer = _Writer()
    for root in roots:
        known = "subject" if root.value is subject else f"{writer.known(_held(root.value))}()"
        writer.read(root, known)
    arrays = ", ".join(writer.places[leaf] for leaf in leaves)
    text = ["def fetch(subject):", " try:", "  pass", *writer.lines, *writer.told_apart()]
    text += [" except (AttributeError, KeyError):", "  raise Mismatch from None", f" return [{arrays}]"]
    exec(compile("\n".join(text), WRITTEN, "exec"), writer.names)  # noqa: S102 -- written above; of a caller's, only quoted names
    return Reads(writer.names["fetch"], [leaf.name for leaf in leaves], [leaf.type for leaf in leaves])


def array_type(value: Any) -> TensorType | None:
    """Return the type of an array; None where ``value`` is none, but a number or something else."""
    if isinstance(value, np.generic) or not any(hasattr(type(value), name) for name in _ARRAYS):
        return None
    array = viewed(value)[0]
    dtype = None if array is None else DType.from_numpy(array.dtype)
    return None if dtype is None or array is None else TensorType(dtype, array.shape)


_ARRAYS = ("__array__", "__array_interface__", "__dlpack__")


class _Writer:
    """Python code that fetches what is read, and compares."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._same: list[str] = []
        self.names: dict[str, Any] = {"Mismatch": Mismatch, "same": _same}
        self.places: dict[Leaf, str] = {}
        self._subjects: dict[int, str] = {}
        self._alike: dict[type, list[str]] = {}
        self._count = 0

    def known(self, value: object) -> str:
        """Return a name for an object."""
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def read(self, node: ReadRecord, source: str) -> None:
        """Read what the expression ``source`` stands for."""
        self._count += 1
        v = f"v{self._count}"
        self.lines.append(f"  {v} = {source}")
        if isinstance(node, Leaf):
            self.places[node] = v
        elif isinstance(node, ConstantRead):
            self._constant(v, node.value)
        elif isinstance(node, Parts):
            self._parts(v, node)
        elif isinstance(node, Subject):
            self._subject(v, node)

    def told_apart(self) -> list[str]:
        """Return what checks which objects are the same ones, as programs may have asked."""
        several = [found for found in self._alike.values() if len(found) > 1]
        different = [
            f"  if len({{{', '.join(f'id({v})' for v in found)}}}) != {len(found)}: raise Mismatch"
            for found in several
        ]
        return [*self._same, *different]

    def _check(self, wrong: str) -> None:
        self.lines.append(f"  if {wrong}: raise Mismatch")

    def _constant(self, v: str, value: object) -> None:
        if isinstance(value, (*_COMPARED, np.generic)):
            known = self.known(value)
            self._check(f"{v} is not {known} and not same({v}, {known})")
        else:
            self._check(f"{v} is not {self.known(_held(value))}()")

    def _parts(self, v: str, node: Parts) -> None:
        self._check(f"type({v}) is not {self.known(node.cls)} or len({v}) != {len(node.parts)}")
        if issubclass(node.cls, dict):
            self._check(f"tuple({v}) != {self.known(node.keys)}")
        for key, part in zip(node.keys, node.parts, strict=True):
            self.read(part, f"{v}[{self.known(key)}]")

    def _subject(self, v: str, node: Subject) -> None:
        if id(node.value) in self._subjects:  # reached in another way, too
            self._same.append(f"  if {v} is not {self._subjects[id(node.value)]}: raise Mismatch")
            return
        self._subjects[id(node.value)] = v
        self._alike.setdefault(node.cls, []).append(v)
        self._check(f"type({v}) is not {self.known(node.cls)}")
        for name in sorted(node.absent):
            self._check(f"hasattr({v}, '__dict__') and {name!r} in {v}.__dict__")
        for name, part in node.attributes.items():
            plain = name.isidentifier() and name.isascii() and not name.startswith("__")
            self.read(part, f"{v}.{name}" if plain and not iskeyword(name) else f"getattr({v}, {name!r})")


def _same(one: object, other: object) -> bool:
    """Return whether two values are of one type and the same to the bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (float, complex, np.generic)):
        return repr(one) == repr(other)
    return one == other


def _held(value: object) -> Callable[[], object]:
    """Return what gives an object as long as it lives; one that cannot be watched is kept."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value
