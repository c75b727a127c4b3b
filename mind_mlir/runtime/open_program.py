"""`OpenProgram`: a program for a range of extents, and its calls.

A call copies arguments with open dimensions to arrays of the greatest extents; its results are the part of
what comes back that is no padding (`mind_mlir.passes.open_extents`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.entry import exported
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.result_names import distinct
from mind_mlir.ops.open_axes import Axis, Factor, extent_of, is_open
from mind_mlir.passes.open_extents import OpenModule, for_open_extents
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.extent_ranges import range_of

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions

#: Arrays of one parameter that are kept for the calls to come.
_KEPT = 4


class ExtentRanges:
    """The ranges that the extents of a call are in.

    Attributes:
        ranges: The least and the greatest extent of each open dimension, by its name.
        moved: The names of those whose range has more than one extent.
    """

    def __init__(self, bound: Mapping[str, int], buckets: Mapping[str, Sequence[int]]) -> None:
        """Find the range of each extent."""
        self.ranges = {name: range_of(extent, buckets.get(name, ())) for name, extent in bound.items()}
        self.moved = tuple([name for name, (first, last) in self.ranges.items() if first != last])

    def module(self, trace: Callable[[Mapping[str, int]], Module]) -> OpenModule:
        """Return the program of the ranges, which ``trace`` returns for some extents.

        Raises:
            NotOpen: There is no such program.
        """
        greatest = {name: last for name, (_, last) in self.ranges.items()}
        several = [greatest]
        several += [{**greatest, name: self.ranges[name][0]} for name in self.moved]
        # What an extent leaves when it is divided is told by its neighbour.
        several.append({**greatest, **{name: greatest[name] - 1 for name in self.moved}})
        modules = [trace(extents) for extents in several]
        taken = _names(modules[0])
        counts = distinct([*taken, *self.moved])[len(taken) :]
        return for_open_extents(
            modules, [tuple([each[name] for name in self.moved]) for each in several], counts
        )


class OpenProgram:
    """The program of a range of extents.

    Attributes:
        executable: What runs it.
        parameters: The axes of its parameters.
        results: The axes of its results.
    """

    def __init__(
        self,
        executable: Executable,
        parameters: Sequence[tuple[Axis, ...]],
        results: Sequence[tuple[Axis, ...]],
    ) -> None:
        """Hold a program that has been compiled."""
        self.executable, self.parameters, self.results = executable, parameters, results
        #: Arrays of parameters that no call uses at present, by place: fresh memory takes longer to write.
        self._free: dict[int, deque[Array]] = {
            place: deque(maxlen=_KEPT) for place, axes in enumerate(parameters) if any(map(is_open, axes))
        }

    @classmethod
    def of(
        cls, made: OpenModule, options: CompileOptions, constants: Mapping[str, Array] | None = None
    ) -> OpenProgram:
        """Compile a program; the parameters that ``constants`` names become part of the code."""
        module, parameters = made.module, made.parameters
        if constants:
            given = zip(parameters, _names(module), strict=False)
            parameters = tuple([axes for axes, name in given if name not in constants])
            module = with_constants(module, constants)
        return cls(Executable(module, options), parameters, made.results)

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenProgram, (self.executable, self.parameters, self.results)

    def bound(self, extents: Sequence[int]) -> Callable[..., list[Array]]:
        """Return the program for the extents of the dimensions that are open, as a function of arrays."""
        counts = [np.array(extent, np.int64) for extent in extents]  # numbers are looked at with more care
        parts = [_part_of(axes, extents) for axes in self.results]
        pads = [(place, free, _Pad(self.parameters[place], extents)) for place, free in self._free.items()]

        def run(*arrays: Array) -> list[Array]:
            given = list(arrays)
            for place, free, pad in pads:
                given[place] = pad(free, arrays[place])
            results = self.executable(*given, *counts)
            for place, free, _ in pads:
                free.append(given[place])
            return [
                array if part is None else part(array) for part, array in zip(parts, results, strict=True)
            ]

        return run


class _Pad:
    """Writes an argument to an array of the greatest extents, with zeros behind its elements."""

    def __init__(self, axes: Sequence[Axis], extents: Sequence[int]) -> None:
        self._shape = [extent_of(axis) for axis in axes]
        shape = [extent_of(axis, extents) for axis in axes]
        self._part = tuple(map(slice, shape))
        self._rest = [
            (*map(slice, shape[:axis]), slice(extent, None))
            for axis, extent in enumerate(shape)
            if extent != self._shape[axis]
        ]

    def __call__(self, free: deque[Array], array: Array) -> Array:
        try:
            found = free.pop()
        except IndexError:
            found = np.empty(self._shape, array.dtype)
        found[self._part] = array
        for rest in self._rest:
            found[rest] = 0
        return found


def _names(module: Module) -> list[str]:
    (function,) = exported(module)
    return [each.name for each in interface_of(function).parameters]


def _part_of(axes: Sequence[Axis], extents: Sequence[int]) -> Callable[[Array], Array] | None:
    """Return what cuts the padding off a result, where it has some."""
    shape = [extent_of(axis, extents) for axis in axes]
    if shape == [extent_of(axis) for axis in axes]:
        return None
    factors = [factor for axis in axes for factor in axis or (Factor(1),)]
    whole = [factor.extent for factor in factors]
    part = tuple([slice(factor.at(extents)) for factor in factors])
    return lambda array: np.ascontiguousarray(array.reshape(whole)[part]).reshape(shape)
