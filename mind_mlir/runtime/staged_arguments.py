"""The arguments of a `StagedFunction`: which are part of the program, and what the others are as arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.arguments.tensors import viewed
from mind_mlir.diagnostics import Diagnostic, TracingError
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.runtime.staged_values import NUMBERS, StagedValue, WeakType
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.runtime.staged_calls import StagedProgram

_DTYPES = {dtype.numpy: dtype for dtype in DType}


@dataclass(frozen=True, slots=True)
class Static:
    """An argument that is part of the program; 1, 1.0 and True are three."""

    value: Hashable = field(metadata={"static": True})
    kind: type = field(metadata={"static": True})


@dataclass(frozen=True, slots=True)
class Order:
    """The parameters of a function whose arguments can all be given by position.

    Attributes:
        names: What they are called.
        defaults: The defaults of those that have one.
        gathers: Whether further arguments by position are taken.
        tails: What a call leaves out that gives so many arguments, all of them by position.
    """

    names: tuple[str, ...]
    defaults: Mapping[str, Any]
    gathers: bool
    tails: Mapping[int, tuple[Any, ...]]

    @staticmethod
    def of(signature: inspect.Signature) -> Order | None:
        """Return the parameters, or None where one can be given by its name alone, or never by that."""
        kinds = inspect.Parameter
        found = [each for each in signature.parameters.values() if each.kind is not kinds.VAR_POSITIONAL]
        if any(each.kind is not kinds.POSITIONAL_OR_KEYWORD for each in found):
            return None
        defaults = {each.name: each.default for each in found if each.default is not each.empty}
        gathers = len(found) < len(signature.parameters)
        names = tuple([each.name for each in found])
        first = len(names) - len(defaults)
        tails = {at: tuple([defaults[name] for name in names[at:]]) for at in range(first, len(names))}
        return Order(names, defaults, gathers, tails)

    def placed(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Return all arguments of a call by position, or None where they do not fit."""
        count = len(self.names)
        if not kwargs and (len(args) == count or (self.gathers and len(args) > count)):
            return args
        if len(args) >= count:
            return None
        if not kwargs and len(args) in self.tails:
            return args + self.tails[len(args)]
        found, named = list(args), 0
        for name in self.names[len(args) :]:
            if name in kwargs:
                found.append(kwargs[name])
                named += 1
            elif name in self.defaults:
                found.append(self.defaults[name])
            else:
                return None
        return tuple(found) if named == len(kwargs) else None

    def static(self, program: StagedProgram, names: Collection[str]) -> list[bool]:
        """Return of each argument of a program whether it is static: called one of ``names``."""
        count = len(program.arguments.parts[0].parts)
        return [place < len(self.names) and self.names[place] in names for place in range(count)]


def as_static(value: Any, name: str) -> Static:
    """Return an argument as part of the program (TypeError: it is not hashable)."""
    if isinstance(value, Static):  # the object of a method
        return value
    try:
        hash(value)
    except TypeError:
        argument_checks.reject(f"the static argument {name}", "hashable", value)
    return Static(value, type(value))


def as_arrays(
    leaves: Sequence[Any], names: Callable[[], Sequence[str]]
) -> tuple[list[Array], tuple[Hashable, ...]]:
    """Return the leaves of arguments as arrays, and what of each decides on the program.

    Raises:
        TracingError: E2305, one is no array.
    """
    arrays: list[Array] = []
    kinds: list[Hashable] = []
    for place, leaf in enumerate(leaves):
        if type(leaf) is np.ndarray and leaf.dtype in _DTYPES:
            arrays.append(leaf)
            kinds.append((leaf.dtype, leaf.shape))
            continue
        array, type_ = _as_array(leaf, lambda at=place: names()[at])  # type: ignore[misc]  # bound now
        arrays.append(array)
        kinds.append(type_ if isinstance(type_, WeakType) else (array.dtype, array.shape))
    return arrays, tuple(kinds)


def type_of(leaf: Any, name: Callable[[], str]) -> TensorType:
    """Return the type of an argument: an array, a number, a stand-in or a type (E2305: it is none)."""
    if isinstance(leaf, StagedValue):
        return leaf.type
    return leaf if isinstance(leaf, TensorType) else _as_array(leaf, name)[1]


def _as_array(leaf: Any, name: Callable[[], str]) -> tuple[Array, TensorType]:
    weak = NUMBERS.get(type(leaf))
    if weak is not None:
        try:
            return np.asarray(leaf, weak.dtype.numpy), weak
        except OverflowError:
            raise _not_an_array(name, "it is an integer beyond 64 bits") from None
    array, reason = (None, f"it is {argument_checks.describe(leaf)}") if callable(leaf) else viewed(leaf)
    if array is None:
        raise _not_an_array(name, reason)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    dtype = DType.from_numpy(array.dtype)
    if dtype is None:
        raise _not_an_array(name, f"it is {argument_checks.describe(leaf)}, with elements of {array.dtype}")
    return array, TensorType(dtype, array.shape)


def _not_an_array(name: Callable[[], str], reason: str) -> TracingError:
    return TracingError(
        Diagnostic(
            "E2305",
            f"argument '{name()}' is no array: {reason}",
            help="pass arrays, numbers, and containers of these; what else decides on the program is named "
            "in jit(..., static_argnames=...)",
        )
    )


def leaked() -> TracingError:
    """Return the error about a stand-in that is met where nothing is being traced."""
    return TracingError(
        Diagnostic(
            "E2303",
            "a traced array is used after its function has returned",
            help="return it from the function that mind_mlir.jit is given; the call then gives the numbers",
        )
    )
