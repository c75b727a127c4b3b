"""Dataclasses whose methods are made when they are first used.

`dataclasses.dataclass` compiles the text of up to six methods for each class, which takes 0.4 ms. There are
hundreds of classes here, of which a process makes objects of a few, and compares, hashes or prints fewer.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import reprlib
import threading
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 -- for others
else:

    def dataclass(
        cls=None,
        /,
        *,
        init=True,
        repr=True,  # noqa: A002 -- its name
        eq=True,
        frozen=False,
        slots=False,
        kw_only=False,
        weakref_slot=False,
    ):
        """Return ``cls``, or a decorator, as `dataclasses.dataclass` does, with the same methods."""

        def made(cls):
            own = dict(vars(cls))
            found = _with_slots(cls, own, weakref=weakref_slot) if slots else cls
            facts = _Facts(cls, found, kw_only=kw_only)
            for name in _FACTS:
                setattr(found, name, _Fact(facts, name))
            found.__replace__ = dataclasses.replace
            wanted = [(_init, init and "__init__" not in own), (_repr, repr and "__repr__" not in own)]
            wanted.append((_eq, eq and "__eq__" not in own))
            if eq and (own.get("__hash__") is None and ("__hash__" not in own or "__eq__" in own)):
                found.__hash__ = None
                wanted.append((_hash, frozen))
            for make, is_wanted in wanted:
                if is_wanted:
                    setattr(found, f"_{make.__name__}__", _Method(found, make, frozen=frozen))
            if frozen:
                _freeze(found, slots=slots)
            return found

        return made if cls is None else made(cls)


#: What `dataclasses` says of a class besides its methods.
_FACTS = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")


class _Facts:
    """What is found out about a class when it is first asked for."""

    def __init__(self, written: Any, found: Any, *, kw_only: bool) -> None:
        """Remember the class as it is written, and as others know it: the same one, unless that has slots."""
        self._written, self._found, self._kw_only = written, found, kw_only

    def settle(self) -> None:
        """Find out. Each attribute changes at once: other threads may ask."""
        # Else `dataclasses` writes down the signature, for which it compiles the tokenizer's expressions.
        self._written.__doc__ = self._written.__doc__ or self._written.__name__
        cls: Any = dataclasses.dataclass(
            self._written, init=False, repr=False, eq=False, match_args=False, kw_only=self._kw_only
        )
        by_place = [field.name for field in dataclasses.fields(cls) if field.init and not field.kw_only]
        fields, params = cls.__dataclass_fields__, cls.__dataclass_params__
        for name, fact in zip(_FACTS, (fields, params, tuple(by_place)), strict=True):
            setattr(self._found, name, fact)


class _Fact:
    """An attribute of a class, until it is first looked up."""

    def __init__(self, facts: _Facts, name: str) -> None:
        self._facts, self._name = facts, name

    def __get__(self, instance: object, owner: Any) -> Any:
        with _settling:
            if any(vars(each).get(self._name) is self for each in owner.__mro__):
                self._facts.settle()
        return getattr(owner, self._name)


_settling = threading.RLock()


def _with_slots(cls: Any, own: Mapping[str, Any], *, weakref: bool) -> Any:
    """Return ``cls`` anew, with a slot for each field of its own."""
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    names = [
        name for name, type_ in cls.__annotations__.items() if "ClassVar" not in type_ and type_ != "KW_ONLY"
    ]
    left = {*names, "__dict__", "__weakref__"}
    content = {name: value for name, value in own.items() if name not in left}
    slots = [name for name in names if name not in inherited]
    content["__slots__"] = (*slots, *(["__weakref__"] if weakref else []))
    found = type(cls)(cls.__name__, cls.__bases__, content)
    found.__qualname__ = cls.__qualname__
    return found


class _Missing:
    """What signatures show of fields whose default is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


_MISSING = _Missing()


class _Method:
    """A method of a class, until it is first looked up."""

    def __init__(self, owner: type, make: Callable[[Any, bool], Any], *, frozen: bool) -> None:
        self._owner, self._make, self._frozen = owner, make, frozen

    def __get__(self, instance: object, _: type | None = None) -> Any:
        method, name = self._make(self._owner, self._frozen), f"_{self._make.__name__}__"
        method.__name__, method.__qualname__ = name, f"{self._owner.__qualname__}.{name}"
        method.__module__ = self._owner.__module__
        setattr(self._owner, name, method)
        return method if instance is None else method.__get__(instance)


def _init(cls: Any, frozen: bool) -> Any:
    known: dict[str, Any] = {"set__": object.__setattr__, "missing__": _MISSING}
    names: dict[str, str] = {}
    by_place: list[str] = []
    by_name: list[str] = []
    defaults: dict[str, Any] = {}
    lines: list[str] = []
    for number, field in enumerate(dataclasses.fields(cls)):
        place = value = f"p{number}"
        names[place] = field.name
        made = field.default_factory is not dataclasses.MISSING
        known[f"{place}__"] = default = field.default_factory if made else field.default
        if field.init:
            (by_name if field.kw_only else by_place).append(place)
            value = f"{place}__() if {place} is missing__ else {place}" if made else place
            if default is not dataclasses.MISSING:
                defaults[place] = _MISSING if made else default
        elif default is dataclasses.MISSING:
            continue
        else:
            value = f"{place}__()" if made else f"{place}__"
        lines.append(f"set__(self, '{place}', {value})" if frozen else f"self.{place} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    method = _function(["self", *by_place, *(["*"] if by_name else []), *by_name], lines, names, known)
    method.__defaults__ = tuple(defaults[place] for place in by_place if place in defaults)
    method.__kwdefaults__ = {names[place]: defaults[place] for place in by_name if place in defaults}
    types = {each.name: each.type for each in dataclasses.fields(cls) if each.init}
    method.__annotations__ = {**types, "return": None}
    return method


def _eq(cls: Any, _: bool) -> Any:
    names = _numbered(field.name for field in dataclasses.fields(cls) if field.compare)
    lines = [
        "if other.__class__ is not self.__class__: return NotImplemented",
        f"return {_tuple('self', names)} == {_tuple('other', names)}",
    ]
    return _function(["self", "other"], lines, names, {})


def _hash(cls: Any, _: bool) -> Any:
    hashed = [each for each in dataclasses.fields(cls) if (each.compare if each.hash is None else each.hash)]
    names = _numbered(each.name for each in hashed)
    return _function(["self"], [f"return hash({_tuple('self', names)})"], names, {})


def _repr(cls: Any, _: bool) -> Any:
    names = [field.name for field in dataclasses.fields(cls) if field.repr]

    @reprlib.recursive_repr()
    def shown(self: Any) -> str:
        parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({parts})"

    return shown


def _numbered(names: Iterable[str]) -> dict[str, str]:
    return {f"p{number}": name for number, name in enumerate(names)}


def _tuple(of: str, names: Iterable[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _function(
    parameters: Sequence[str], lines: Sequence[str], names: Mapping[str, str], known: dict[str, Any]
) -> Any:
    """Return a function of ``lines``, which call fields by numbers, and know names of our own besides."""
    body = "".join(f"\n {line}" for line in lines or ["pass"])
    code = _compiled(f"def method({', '.join(parameters)}):{body}")
    replaced = code.replace(
        co_varnames=_named(code.co_varnames, names),
        co_names=_named(code.co_names, names),
        co_consts=_named(code.co_consts, names),
    )
    return FunctionType(replaced, {"__builtins__": builtins, **known})


def _named(parts: tuple[Any, ...], names: Mapping[str, str]) -> tuple[Any, ...]:
    return tuple([names.get(each, each) for each in parts])


@functools.cache
def _compiled(text: str) -> CodeType:
    """Return the code of a function, which many classes have in common but for the names of fields."""
    found = compile(text, "<dataclass>", "exec").co_consts
    return next(each for each in found if isinstance(each, CodeType))


def _freeze(cls: Any, *, slots: bool) -> None:
    """Refuse that fields of objects of ``cls`` are set or deleted; with slots, they are copied so."""

    def is_fixed(self: Any, name: str) -> bool:
        return type(self) is cls or name in {field.name for field in dataclasses.fields(cls)}

    def set_(self: Any, name: str, value: Any) -> None:
        if is_fixed(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if is_fixed(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = set_, delete
    if slots:
        cls.__getstate__, cls.__setstate__ = _state, _set_state


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
