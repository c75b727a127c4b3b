"""`OpenFunction`: a function that is compiled for ranges of extents rather than for each extent.

A call finds the range that its extents are in, and runs the program that was made for all of that
(`mind_mlir.runtime.open_program`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from mind_mlir.diagnostics import ArgumentError, Diagnostic, UnsupportedError
from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ops.open_axes import NotOpen
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.extent_ranges import checked_buckets, checked_dynamic
from mind_mlir.runtime.lowered import Lowered
from mind_mlir.runtime.open_program import ExtentRanges, OpenProgram
from mind_mlir.runtime.staged import StagedFunction
from mind_mlir.runtime.staged_arguments import as_arrays
from mind_mlir.runtime.staged_pickles import found, travels, with_state
from mind_mlir.runtime.staged_values import StagedValue
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.ir.types import TensorType
    from mind_mlir.passes.open_extents import OpenModule
    from mind_mlir.runtime.staged_gradient import Pullback
    from mind_mlir.support.pytrees import Form

P = ParamSpec("P")
R = TypeVar("R")

#: For so many shapes it is kept what runs them.
_KEPT_CALLS = 256


class OpenFunction(Generic[P, R]):
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
        self._programs: BindingCache[tuple[Any, ...], tuple[OpenProgram, Form]] = BindingCache(
            function.max_signatures
        )
        #: What calls of the shapes that came last run.
        self._calls: BindingCache[Hashable, Any] = BindingCache(_KEPT_CALLS)

    def __repr__(self) -> str:
        return f"<OpenFunction {self.function.name}{self.__signature__} of {self.dynamic}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return it bound to an object, as functions of a class are."""
        return self if instance is None else functools.partial(cast("Any", self), instance)

    def __reduce__(self) -> Any:
        """Pickle it as what its module calls it, as functions are; else as what it is made of.

        The programs that there are for ranges of extents go along.
        """
        name, module = str(getattr(self, "__qualname__", "")), self.__module__
        made: Any = name
        if module == "__main__" or found(module, name) is not self:
            made = OpenFunction, (self.function, dict(self.dynamic), dict(self.buckets))
        kept = [
            (form, alike, ranges, program, returned)
            for (form, alike, ranges), (program, returned) in self._programs.items()
            if travels(form) and travels(returned)
        ]
        return with_state(self, made, kept)

    def __setstate__(self, programs: Any) -> None:
        """Take the programs that came with a pickle."""
        for *key, program, returned in programs:
            known, _ = self._programs.get(tuple(key), functools.partial(_pair, program, returned))
            if not known.executable.is_same(program.executable):  # what was sent is what runs
                self._programs.put(tuple(key), (program, returned))
                self._calls.clear()

    @property
    def plain_function(self) -> Any:
        """Return what pickles have in the place of a plain function (`mind_mlir.tracing.pickling`)."""
        return getattr(self.function, "plain_function")  # noqa: B009 -- functions of other languages have none

    @public
    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function, as `StagedFunction.__call__`.

        Raises:
            ArgumentError: E6107, two arguments have different extents for one dimension; E6104, an argument
                lacks an axis that is named; and as there.
            UnsupportedError: E7001, the function has no program for a range of extents.
        """
        results: R = self._run(args, kwargs)
        return results

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        leaves, form = self.function.flatten(args, kwargs)
        watched = self.function.interprets or self.function.options.check_nan  # at what users wrote
        if watched or any(isinstance(leaf, StagedValue) for leaf in leaves):
            return self.function(*args, **kwargs)
        arrays, kinds = as_arrays(leaves, lambda: self.function.names(form))
        run = self._calls.get((form, kinds), lambda: self._call(form, leaves, arrays, kinds))
        if not run:
            return self.function(*args, **kwargs)
        call, returned = run
        results = call(*arrays)
        return results[0] if returned.container is None else returned.unflatten(results)

    def grad(self, argnums: Any = 0) -> OpenFunction[P, Any]:
        """Return the function of the same arguments that returns gradients (see `mind_mlir.grad`)."""
        return OpenFunction(self.function.grad(argnums), self.dynamic, self.buckets)

    def value_and_grad(self, argnums: Any = 0) -> OpenFunction[P, tuple[R, Any]]:
        """Return the function that returns its result and gradients (see `mind_mlir.value_and_grad`)."""
        return OpenFunction(self.function.value_and_grad(argnums), self.dynamic, self.buckets)

    @public
    def vjp(self, *args: P.args, **kwargs: P.kwargs) -> tuple[R, Pullback]:
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
        made, _ = self._lowered(form, types, names, ExtentRanges(bound, self.buckets))
        return Lowered(made.module, self.function.options)

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

    def _call(
        self, form: Form, leaves: Sequence[Any], arrays: Sequence[Array], kinds: Sequence[Hashable]
    ) -> tuple[Callable[..., list[Array]], Form] | tuple[()]:
        """Return what runs arrays of some shapes, and the form of its result; nothing where none is open."""
        names = self.function.names(form)
        bound, fixed = self._bound(arrays, names)
        ranges = ExtentRanges(bound, self.buckets)
        if not ranges.moved:
            return ()
        alike = tuple([fixed.get(place, kind) for place, kind in enumerate(kinds)])

        def make() -> tuple[OpenProgram, Form]:
            made, returned = self._lowered(form, self.function.types_of(form, leaves), names, ranges)
            return OpenProgram.of(made, self.function.options), returned

        program, returned = self._programs.get((form, alike, tuple(ranges.ranges.values())), make)
        return program.bound([bound[name] for name in ranges.moved]), returned

    def _lowered(
        self, form: Form, types: Sequence[TensorType], names: Sequence[str], ranges: ExtentRanges
    ) -> tuple[OpenModule, Form]:
        """Return the program of some ranges, and the form of its result."""
        returned: Form = form

        def trace(extents: Mapping[str, int]) -> Module:
            nonlocal returned
            module, returned, reads = self.function._module(form, self._with_extents(types, names, extents))
            if reads is not None:
                raise NotOpen("it reads attributes of objects")
            return module

        try:
            return ranges.module(trace), returned
        except NotOpen as reason:
            raise UnsupportedError(_not_open(self.function.name, reason)) from None

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


def _pair(program: OpenProgram, returned: Form) -> tuple[OpenProgram, Form]:
    return program, returned


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
    return Diagnostic(
        "E7001",
        f"{function} has no program for a range of extents: {reason.full}",
        location=None if reason.operation is None else reason.operation.location,
        help="leave the dimension out of dynamic=: then there is a program for each extent",
        context=FrozenDict({"form": "open dimensions"}),
    )
