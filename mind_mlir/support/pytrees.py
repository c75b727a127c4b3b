"""Nested containers: arguments and results of functions taken apart into leaves, and put together again.

    leaves, form = flatten({"w": w, "b": (b0, None)}, "params")
    form.names("params")            # ["params.b.0", "params.w"]
    form.unflatten(leaves)          # {"w": w, "b": (b0, None)}

Containers are dicts whose keys are strings, lists, tuples, named tuples, dataclasses and None, which holds
nothing; whatever else there is, an array or a number, is a leaf. Each is put together as what it was: an
object of the same class, a dict in the order of its keys. The leaves of a dict come in the order of its
sorted keys, so that two dicts that differ in order alone have equal forms, and leaves that belong together.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

#: What holds itself is endless, and what is deeper than this is a mistake.
MAX_DEPTH = 64

#: More than any function has arguments: somebody passes a list of numbers for an array.
MAX_PARTS = 100_000

#: So many classes are known at a time: those of a caller may come and go.
_MAX_KNOWN = 1024


class Form:
    """The structure of a tree of leaves; equal where what is put together has the same classes and keys.

    Attributes:
        container: What takes values of the class apart; None for a leaf.
        keys: Of dicts, named tuples and dataclasses what each part is called; of others nothing.
        parts: The form of each part.
        fixed: Of a dataclass its static fields, which are no leaves.
        count: How many leaves there are.
        order: Of a dict its keys in its own order, which takes no part in equality.
    """

    __slots__ = ("_hash", "container", "count", "fixed", "keys", "order", "parts")

    def __init__(
        self,
        container: Container | None = None,
        keys: tuple[str, ...] = (),
        parts: tuple[Form, ...] = (),
        fixed: tuple[tuple[str, Any], ...] = (),
        order: tuple[str, ...] = (),
    ) -> None:
        self.container, self.keys, self.parts, self.fixed, self.order = container, keys, parts, fixed, order
        self.count: int = sum([part.count for part in parts]) if container else 1
        self._hash = hash((container and container.cls, keys, parts, fixed))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Form):
            return NotImplemented
        return (
            self._hash == other._hash
            and (self.container and self.container.cls) is (other.container and other.container.cls)
            and self.keys == other.keys
            and self.parts == other.parts
            and self.fixed == other.fixed
        )

    def __reduce__(self) -> tuple[Callable[..., Form], tuple[Any, ...]]:
        cls = self.container.cls if self.container else None
        return _form, (cls, self.keys, self.parts, self.fixed, self.order)

    def __repr__(self) -> str:
        return f"<Form {self}>"

    def __str__(self) -> str:
        """Return it as Python writes it, with ``*`` for a leaf."""
        return self.container.show(self) if self.container else "*"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return ``leaves`` put together, which are as many as there are in the form.

        Dataclasses are made by setting their fields: neither ``__init__`` nor ``__post_init__`` runs.

        Raises:
            ValueError: There are more leaves, or fewer.
        """
        given = list(leaves)
        if len(given) != self.count:
            raise ValueError(f"leaves must be {self.count}, not {len(given)}")
        return _put_together(self, iter(given))

    def names(self, prefix: str = "") -> list[str]:
        """Return what each leaf is called in the container called ``prefix``, all of them different.

        Parts are called ``prefix.key``, or by their numbers: ``params.w``, ``params.0``. A key that is no
        identifier stands in brackets: ``params['dense/kernel']``; without a prefix they are called ``key``.
        """
        found: list[str] = []
        _name(self, prefix, found)
        return found

    def items(self) -> list[tuple[str, Callable[[str], list[str]]]]:
        """Return the parts of a tuple or list, else this one: each with its `record`, and its `names`."""
        listed = self.container is not None and not self.keys and bool(self.parts)
        return [(part.record, part.names) for part in (self.parts if listed else (self,))]

    @property
    def record(self) -> str:
        """Return the name of the class of a named tuple or dataclass; else an empty string."""
        return self.container.cls.__name__ if self.container and self.keys and not self.order else ""

    def slices(self) -> list[slice]:
        """Return where the leaves of each part are among all leaves."""
        found, begin = [], 0
        for part in self.parts:
            found.append(slice(begin, begin + part.count))
            begin += part.count
        return found

    def difference(self, other: Form, name: str) -> str | None:
        """Return what is the first difference of ``other``, for a message; None where they are equal.

        Args:
            other: Another form.
            name: What values of both forms are called.
        """
        if self == other:
            return None
        alike = (
            self.container
            and other.container
            and self.container.cls is other.container.cls
            and self.keys == other.keys
            and len(self.parts) == len(other.parts)
            and self.fixed == other.fixed
        )
        if not alike:
            return f"{name} is {_sort(self)} and {_sort(other)}"
        parts = zip(_called(self, name), self.parts, other.parts, strict=True)
        return next(found for called, one, two in parts if (found := one.difference(two, called)))


@dataclass(frozen=True, slots=True)
class Container:
    """The functions that take values of one class apart and put them together.

    Attributes:
        cls: The class.
        take: Returns the keys, the parts, the static fields and the order of a value of the parameter.
        make: Returns a value of a form from its parts.
        show: Returns a form as text.
    """

    cls: type
    take: Callable[[Any, str], Taken]
    make: Callable[[Form, list[Any]], Any]
    show: Callable[[Form], str]


if TYPE_CHECKING:
    Taken = tuple[tuple[str, ...], Sequence[Any], tuple[tuple[str, Hashable], ...], tuple[str, ...]]

LEAF = Form()

#: The attribute of a class whose objects stand in for those of another one, which it says.
STANDS_FOR = "__mind_mlir_stands_for__"

_ARRAYS = ("__array__", "__array_interface__", "__dlpack__")


def flatten(value: Any, parameter: str = "value") -> tuple[list[Any], Form]:
    """Return the leaves of ``value``, and its form.

    Raises:
        TypeError: A key of a dict is no string, or a static field of a dataclass is not hashable.
        ValueError: It is nested more than `MAX_DEPTH` levels deep, holds itself, or has more parts than
            `MAX_PARTS`.
    """
    if is_leaf(value):
        return [value], LEAF
    taking = _Taking(parameter)
    form = taking.apart(value, MAX_DEPTH)
    return taking.leaves, form


def is_leaf(value: Any) -> bool:
    """Return whether ``value`` is no container."""
    return is_leaf_class(type(value))


def is_leaf_class(cls: type) -> bool:
    """Return whether objects of a class are no containers."""
    return _container(cls) is None


def register_leaf(cls: type) -> None:
    """Make objects of a class leaves that is a dataclass or a class of named tuples."""
    _OWN[cls] = _known[cls] = None


def register(container: Container) -> None:
    """Make objects of a class containers, as `container` says."""
    _OWN[container.cls] = _known[container.cls] = container


def register_mapping(cls: type) -> None:
    """Make objects of a class containers as dicts are; what is put together again is a dict."""
    register(Container(cls, _take_dict, _make_dict, lambda form: f"{cls.__name__}({{{_dict_items(form)}}})"))


def stood_for(cls: type) -> type:
    """Return the class that objects of ``cls`` stand in for, or ``cls``."""
    found: type = cls.__dict__.get(STANDS_FOR, cls)
    return found


class _Taking:
    """Takes the argument of a parameter apart."""

    __slots__ = ("leaves", "parameter", "room")

    def __init__(self, parameter: str) -> None:
        self.parameter = parameter
        self.leaves: list[Any] = []
        self.room = MAX_PARTS

    def apart(self, value: Any, depth: int) -> Form:
        """Return the form of ``value``, and collect its leaves."""
        container = _container(type(value))
        if container is None:
            self.leaves.append(value)
            return LEAF
        if not depth:
            raise ValueError(
                f"{self.parameter} must be nested at most {MAX_DEPTH} levels deep, and not hold itself"
            )
        keys, values, fixed, order = container.take(value, self.parameter)
        self.room -= len(values)
        if self.room < 0:
            help_ = "make one array of a list of numbers: numpy.asarray"
            raise ValueError(f"{self.parameter} must have at most {MAX_PARTS} parts; {help_}")
        parts = tuple([self.apart(part, depth - 1) for part in values])
        return Form(container, keys, parts, fixed, order)


def _put_together(form: Form, leaves: Iterator[Any]) -> Any:
    if form.container is None:
        return next(leaves)
    parts = [next(leaves) if part.container is None else _put_together(part, leaves) for part in form.parts]
    return form.container.make(form, parts)


def _name(form: Form, prefix: str, found: list[str]) -> None:
    if form.container is None:
        found.append(prefix)
        return
    for name, part in zip(_called(form, prefix), form.parts, strict=True):
        _name(part, name, found)


def _called(form: Form, prefix: str) -> list[str]:
    dot = f"{prefix}." if prefix else ""
    if not form.keys:
        return [f"{dot}{index}" for index in range(len(form.parts))]
    return [f"{dot}{key}" if key.isidentifier() or not prefix else f"{prefix}[{key!r}]" for key in form.keys]


def _sort(form: Form) -> str:
    """Return what a form is, for a message."""
    if form.container is None:
        return "an array"
    shown = str(form)
    return shown if len(shown) <= 60 else f"{form.container.cls.__name__} of {len(form.parts)}"


def _container(cls: type) -> Container | None:
    """Return how values of a class are taken apart; None where they are leaves."""
    try:
        return _known[cls]
    except KeyError:
        return _meet(cls)


def _meet(cls: type) -> Container | None:
    """Return how values of a class are taken apart that is met for the first time."""
    if stood_for(cls) is not cls:  # which is there for one trace
        return _container(stood_for(cls))
    if len(_known) >= _MAX_KNOWN:
        for known in [known for known in list(_known) if known not in _OWN]:
            _known.pop(known, None)
    found = None
    if issubclass(cls, tuple) and hasattr(cls, "_make") and hasattr(cls, "_fields"):
        found = _named_tuple(cls)
    elif dataclasses.is_dataclass(cls) and not any(hasattr(cls, name) for name in _ARRAYS):
        found = _dataclass(cls)
    _known[cls] = found
    return found


def _form(cls: type | None, *facts: Any) -> Form:
    """Return a form that has been pickled."""
    if cls is None:
        return LEAF
    return Form(_container(cls), *facts)


def _take_dict(value: dict[Any, Any], parameter: str) -> Taken:
    for key in value:
        if not isinstance(key, str):
            argument_checks.reject(f"each key of a dict in {parameter}", "a string", key)
    order = tuple([argument_checks.text(key, parameter) for key in value])
    keys = tuple(sorted(order))
    return keys, [value[key] for key in keys], (), order


def _make_dict(form: Form, parts: list[Any]) -> dict[str, Any]:
    found = dict(zip(form.keys, parts, strict=True))
    return {key: found[key] for key in form.order}


def _dict_items(form: Form) -> str:
    shown = dict(zip(form.keys, form.parts, strict=True))
    return ", ".join(f"{key!r}: {shown[key]}" for key in form.order)


def _listed(form: Form) -> str:
    return ", ".join(map(str, form.parts))


def _by_key(form: Form) -> str:
    assert form.container, "a leaf has no keys"
    items = [f"{key}={part}" for key, part in zip(form.keys, form.parts, strict=True)]
    items += [f"{key}={value!r}" for key, value in form.fixed]
    return f"{form.container.cls.__name__}({', '.join(items)})"


def _named_tuple(cls: Any) -> Container:
    keys = tuple(cls._fields)
    return Container(cls, lambda value, _: (keys, value, (), ()), lambda _, parts: cls._make(parts), _by_key)


def _dataclass(cls: Any) -> Container:
    """Return how a dataclass is taken apart; its fields with ``metadata={"static": True}`` are no leaves."""
    fields = dataclasses.fields(cls)
    keys = tuple(field.name for field in fields if not field.metadata.get("static"))
    static = tuple(field.name for field in fields if field.metadata.get("static"))

    def take(value: Any, parameter: str) -> Taken:
        fixed = tuple([(name, getattr(value, name)) for name in static])
        for name, kept in fixed:
            if getattr(type(kept), "__hash__", None) is None:
                argument_checks.reject(
                    f"the static field {name} of {cls.__name__} in {parameter}", "hashable", kept
                )
        return keys, [getattr(value, name) for name in keys], fixed, ()

    def make(form: Form, parts: list[Any]) -> Any:
        made = object.__new__(cls)
        for name, part in [*zip(keys, parts, strict=True), *form.fixed]:
            object.__setattr__(made, name, part)  # a frozen one refuses what is plainly set
        return made

    return Container(cls, take, make, _by_key)


#: Those that come with Python.
_OWN: dict[type, Container | None] = {
    container.cls: container
    for container in (
        Container(type(None), lambda *_: ((), (), (), ()), lambda *_: None, lambda _: "None"),
        Container(
            list, lambda value, _: ((), value, (), ()), lambda _, parts: parts, lambda f: f"[{_listed(f)}]"
        ),
        Container(
            tuple,
            lambda value, _: ((), value, (), ()),
            lambda _, parts: tuple(parts),
            lambda f: f"({_listed(f)}{',' * (len(f.parts) == 1)})",
        ),
        Container(dict, _take_dict, _make_dict, lambda f: f"{{{_dict_items(f)}}}"),
        Container(
            OrderedDict,
            _take_dict,
            lambda form, parts: OrderedDict(_make_dict(form, parts)),
            lambda f: f"OrderedDict({{{_dict_items(f)}}})",
        ),
    )
}

#: How values of each class are taken apart that has been met; None for leaves.
_known: dict[type, Container | None] = dict(_OWN)
