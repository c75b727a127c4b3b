"""`OpenFunction`: a function that is compiled for ranges of extents rather than for each extent.

A call finds the range that its extents are in, and runs the program that was made for all of that: its
arguments are copied to arrays of the greatest extents, and its results are the part of what comes back that
is no padding (`mind_mlir.passes.open_extents`).
"""

from __future__ import annotations

import functools
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics import ArgumentError, Diagnostic, UnsupportedError
from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ops.open_axes import Factor, NotOpen, extent_of, is_open
from mind_mlir.passes.open_extents import for_open_extents
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.extent_ranges import checked_buckets, checked_dynamic, range_of
from mind_mlir.runtime.lowered import Lowered
from mind_mlir.runtime.staged import StagedFunction
from mind_mlir.runtime.staged_arguments import as_arrays, distinct
from mind_mlir.runtime.staged_values import StagedValue
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ops.open_axes import Axis
    from mind_mlir.passes.open_extents import OpenModule
    from mind_mlir.runtime.staged_gradient import Pullback
    from mind_mlir.support.pytrees import Form

#: Arrays of one parameter that are kept for the calls to come.
_KEPT = 4


@dataclass(frozen=True, slots=True)
class _OpenProgram:
    """The program of one range of extents.

    Attributes:
        executable: What runs it.
        made: It, and the axes of its parameters and results.
        returned: The form of its result.
        moved: Which of the function's dimensions are open in it.
        free: Arrays of parameters that no call uses at present, by place: fresh memory takes longer to write.
    """

    executable: Executable
    made: OpenModule
    returned: Form
    moved: tuple[int, ...]
    free: Mapping[int, deque[Array]]

    def __call__(self, arrays: Sequence[Array], bound: Sequence[int]) -> Any:
        """Run the program on arrays, whose dimensions have the extents ``bound``."""
        extents = [bound[place] for place in self.moved]
        given = list(arrays)
        for place in self.free:
            given[place] = self._padded(place, arrays[place])
        results = self.executable(*given, *[np.int64(extent) for extent in extents])
        for place, kept in self.free.items():
            kept.append(given[place])
        parts = [_part(each, axes, extents) for each, axes in zip(results, self.made.results, strict=True)]
        return parts[0] if self.returned.container is None else self.returned.unflatten(parts)

    def _padded(self, place: int, array: Array) -> Array:
        """Return an argument in the extents that the program has, with zeros behind its elements."""
        try:
            found = self.free[place].pop()
        except IndexError:
            found = np.empty([extent_of(axis) for axis in self.made.parameters[place]], array.dtype)
        found[tuple(map(slice, array.shape))] = array
        for axis, extent in enumerate(array.shape):
            if extent != found.shape[axis]:
                found[(*[slice(each) for each in array.shape[:axis]], slice(extent, None))] = 0
        return found


class OpenFunction:
    """A function some of whose dimensions are open: `mind_mlir.jit` makes one where it is told ``dynamic``.

    Attributes:
        function: The function, which has a program for each of its extents.
        dynamic: The names of open dimensions by axis, of the arguments that have some.
        buckets: The greatest extents of ranges, of the dimensions that have other ranges than most.
    """

    def __init__(
        self,
        function: StagedFunction,
        dynamic: Mapping[str, Mapping[int, str]],
        buckets: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """Hold a function.

        Raises:
            TypeError: An argument is not of the type above.
            ValueError: ``dynamic`` names no axis, ``buckets`` no open dimension, or an extent below 1.
        """
        self.function = argument_checks.expect(function, StagedFunction, "function", "a StagedFunction")
        axes = checked_dynamic(dynamic)
        self.dynamic = FrozenDict({name: FrozenDict(each) for name, each in axes.items()})
        self.buckets = FrozenDict(checked_buckets(buckets, axes))
        functools.update_wrapper(self, function, updated=())
        self.__signature__ = function.__signature__
        self._programs: BindingCache[Hashable, _OpenProgram] = BindingCache(function.max_signatures)

    def __repr__(self) -> str:
        return f"<OpenFunction {self.function.name}{self.__signature__} of {self.dynamic}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return it bound to an object, as functions of a class are."""
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        """Pickle it as what its module calls it, as functions are; else as what it is made of."""
        name = getattr(self, "__qualname__", None)
        if isinstance(name, str):
            return name
        return OpenFunction, (self.function, dict(self.dynamic), dict(self.buckets))

    @public
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the function, as `StagedFunction.__call__`.

        Raises:
            ArgumentError: E6107, two arguments have different extents for one dimension; E6104, an argument
                lacks an axis that is named; and as there.
            UnsupportedError: E7001, the function has no program for a range of extents.
        """
        leaves, form = self.function.flatten(args, kwargs)
        if any(isinstance(leaf, StagedValue) for leaf in leaves):
            return self.function(*args, **kwargs)
        names = self.function.names(form)
        arrays, kinds = as_arrays(leaves, lambda: names)
        bound, fixed = self._bound(arrays, names)
        ranges = tuple([range_of(each, self.buckets.get(name, ())) for name, each in bound.items()])
        if all(first == last for first, last in ranges):
            return self.function(*args, **kwargs)
        alike = tuple([fixed.get(place, kind) for place, kind in enumerate(kinds)])
        program = self._programs.get(
            (form, alike, ranges),
            lambda: self._made(form, self.function.types_of(form, leaves), names, ranges),
        )
        return program(arrays, tuple(bound.values()))

    def grad(self, argnums: Any = 0) -> OpenFunction:
        """Return the function of the same arguments that returns gradients (see `mind_mlir.grad`)."""
        return OpenFunction(self.function.grad(argnums), self.dynamic, self.buckets)

    def value_and_grad(self, argnums: Any = 0) -> OpenFunction:
        """Return the function that returns its result and gradients (see `mind_mlir.value_and_grad`)."""
        return OpenFunction(self.function.value_and_grad(argnums), self.dynamic, self.buckets)

    @public
    def vjp(self, *args: Any, **kwargs: Any) -> tuple[Any, Pullback]:
        """Return the result, and what takes its cotangents to the arguments' (see `mind_mlir.vjp`).

        That has a program for each extent.
        """
        from mind_mlir.runtime.staged_gradient import Pullback  # noqa: PLC0415 -- few functions need it

        return self(*args, **kwargs), Pullback(self.function, args, kwargs)

    @public
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Return the program of the range of extents that arguments have, without running it.

        Its parameters are arrays of the greatest extents, and then the extents of a call.
        """
        leaves, form = self.function.flatten(args, kwargs)
        names = self.function.names(form)
        types = self.function.types_of(form, leaves)
        bound, _ = self._bound(types, names)
        ranges = [range_of(each, self.buckets.get(name, ())) for name, each in bound.items()]
        return Lowered(self._lowered(form, types, names, ranges)[0].module, self.function.options)

    @property
    def compiled(self) -> int:
        """Return for how many ranges of extents there is a program."""
        return len(self._programs.items())

    def _bound(
        self, given: Sequence[Array | TensorType], names: Sequence[str]
    ) -> tuple[dict[str, int], dict[int, Hashable]]:
        """Return the extents of the open dimensions in a call.

        And of each argument that has some, by place, what of it decides on the program.
        """
        found: dict[str, tuple[str, int]] = {}
        fixed: dict[int, Hashable] = {}
        for name, axes in self.dynamic.items():
            if name not in names:
                raise ArgumentError(_no_argument(self.function.name, name, names))
            place = names.index(name)
            shape: list[Any] = list(given[place].shape)
            for axis, symbol in axes.items():
                if axis >= len(shape):
                    raise ArgumentError(_no_axis(name, axis, len(shape)))
                other, extent = found.setdefault(symbol, (name, shape[axis]))
                if extent != shape[axis]:
                    raise ArgumentError(_disagree(symbol, (other, extent), (name, shape[axis])))
                shape[axis] = None
            fixed[place] = (str(given[place].dtype), tuple(shape))
        return {symbol: extent for symbol, (_, extent) in found.items()}, fixed

    def _made(
        self, form: Form, types: Sequence[TensorType], names: Sequence[str], ranges: Sequence[tuple[int, int]]
    ) -> _OpenProgram:
        made, returned, moved = self._lowered(form, types, names, ranges)
        free: dict[int, deque[Array]] = {
            place: deque(maxlen=_KEPT)
            for place, axes in enumerate(made.parameters)
            if any(map(is_open, axes))
        }
        return _OpenProgram(Executable(made.module, self.function.options), made, returned, moved, free)

    def _lowered(
        self, form: Form, types: Sequence[TensorType], names: Sequence[str], ranges: Sequence[tuple[int, int]]
    ) -> tuple[OpenModule, Form, tuple[int, ...]]:
        """Return the program of some ranges, the form of its result, and which dimensions are open in it."""
        symbols = tuple(dict.fromkeys(symbol for axes in self.dynamic.values() for symbol in axes.values()))
        moved = tuple([place for place, (first, last) in enumerate(ranges) if first != last])
        extents = [[last for _, last in ranges]]
        for place in moved:
            extents.append([*extents[0][:place], ranges[place][0], *extents[0][place + 1 :]])
        modules: list[Module] = []
        for each in extents:
            bound = self._with_extents(types, names, dict(zip(symbols, each, strict=True)))
            module, returned, reads = self.function._module(form, bound)
            if reads is not None:
                raise UnsupportedError(
                    _not_open(self.function.name, NotOpen("it reads attributes of objects"))
                )
            modules.append(module)
        counts = distinct([*names, *[symbols[place] for place in moved]])[len(names) :]
        try:
            made = for_open_extents(
                modules, [tuple([each[place] for place in moved]) for each in extents], counts
            )
        except NotOpen as reason:
            raise UnsupportedError(_not_open(self.function.name, reason)) from None
        return made, returned, moved

    def _with_extents(
        self, types: Sequence[TensorType], names: Sequence[str], bound: Mapping[str, int]
    ) -> tuple[TensorType, ...]:
        found = list(types)
        for name, axes in self.dynamic.items():
            place = names.index(name)
            shape = [
                bound[axes[axis]] if axis in axes else extent
                for axis, extent in enumerate(found[place].shape)
            ]
            found[place] = found[place].with_shape(tuple(shape))
        return tuple(found)


def _part(array: Array, axes: Sequence[Axis], extents: Sequence[int]) -> Array:
    """Return the part of a result that is no padding."""
    if not any(map(is_open, axes)):
        return array
    factors = [axis or (Factor(1),) for axis in axes]
    split = array.reshape([factor.extent for axis in factors for factor in axis])
    part = split[tuple([slice(factor.at(extents)) for axis in factors for factor in axis])]
    shape = [extent_of(axis, extents) for axis in axes]
    return np.ascontiguousarray(part).reshape(shape)


# Mistakes


def _no_argument(function: str, name: str, names: Sequence[str]) -> Diagnostic:
    return Diagnostic(
        "E6101",
        f"{function} has open dimensions of {brief(repr(name))}, which this call does not give",
        help=f"dynamic= names arguments as the program calls them: {brief(', '.join(names))}",
        context=FrozenDict({"input": name}),
    )


def _no_axis(name: str, axis: int, rank: int) -> Diagnostic:
    return Diagnostic(
        "E6104",
        f"axis {axis} of argument {name!r} is an open dimension, but it has {rank} axes",
        help="give an array with this axis, or name another axis in dynamic=",
        context=FrozenDict({"input": name, "axis": axis, "rank": rank}),
    )


def _disagree(symbol: str, one: tuple[str, int], other: tuple[str, int]) -> Diagnostic:
    return Diagnostic(
        "E6107",
        f"dimension {symbol!r} is {one[1]} in argument {one[0]!r}, but {other[1]} in argument {other[0]!r}",
        help="give arrays that have one extent for one dimension",
        context=FrozenDict({"symbol": symbol, "extents": (one[1], other[1])}),
    )


def _not_open(function: str, reason: NotOpen) -> Diagnostic:
    operation = reason.operation
    subject = "it" if operation is None else f"{operation.opcode} of {operation.label}"
    return Diagnostic(
        "E7001",
        f"{function} has no program for a range of extents: {subject}: {reason}"
        if operation is not None
        else f"{function} has no program for a range of extents: {reason}",
        location=None if operation is None else operation.location,
        help="leave the dimension out of dynamic=: then there is a program for each extent",
        context=FrozenDict({"form": "open dimensions"}),
    )
