"""Compares the gradients of a program with differences of its results: `check_grad` and ``--check-grad``.

What is compared is what the program computes, in its own dtypes; the differences are of the same program in
f64 (`mind_mlir.passes.in_f64`), so that their error is far below that of gradients in f32. For each argument
the slope along some random directions is compared, which every element has a part in, and the derivatives
with respect to some single elements, the greatest among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.regions import value_types
from mind_mlir.ops.printing import silently
from mind_mlir.passes.autodiff import differentiate
from mind_mlir.passes.forms import verified
from mind_mlir.passes.in_f64 import in_f64
from mind_mlir.runtime.executable import Executable
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.ir.types import TensorType

DIRECTIONS, ELEMENTS = 2, 4
#: The step of a difference, for arguments whose elements are about 1. Two steps make its error of the fourth
#: order: some 1e-12 by rounding in f64, and as much by what the function is like in between.
_STEP = 1e-3
#: A step and half of it give slopes that differ by more than this, of their size, where there is an edge.
_SMOOTH = 1e-2
_TURN = 0.375
_TOLERANCES = ((64, 1e-6), (32, 1e-3), (0, 5e-2))
_AGREES, _EDGE, _DIFFERS, _NOT_FINITE = "agrees", "has an edge here", "differs", "is not finite"
_WRONG = (_DIFFERS, _NOT_FINITE)


@dataclass(frozen=True, slots=True)
class Slope:
    """The derivative along one direction, as the gradient has it and as differences have it.

    Attributes:
        element: The element that changes; None for a random direction of all of them.
        gradient: What the gradient says.
        difference: What differences say.
        error: How far they are apart, relative to the size of slopes of this kind.
        outcome: ``agrees``, ``differs``, ``is not finite``, where one of the two is not, or ``has an edge
            here``, where the function has no derivative and the two need not agree.
    """

    element: tuple[int, ...] | None
    gradient: float
    difference: float
    error: float
    outcome: str

    def __str__(self) -> str:
        where = "along a direction" if self.element is None else f"[{', '.join(map(str, self.element))}]"
        return f"{where}: {self.gradient:.6g} by the gradient, {self.difference:.6g} by differences"


@dataclass(frozen=True, slots=True)
class CheckedArgument:
    """What was compared for one argument.

    Attributes:
        name: What the program calls it.
        type: Its type.
        slopes: What was compared: directions first.
    """

    name: str
    type: TensorType
    slopes: tuple[Slope, ...]

    @property
    def worst(self) -> Slope:
        """Return the slope whose two values are furthest apart, one that differs first."""
        return max(self.slopes, key=lambda each: (each.outcome in _WRONG, each.error))


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """The gradients of a program beside differences; it prints as a table.

    Attributes:
        arguments: Those that hold floats, and not none of them, in order.
        tolerance: How large an error may be.
    """

    arguments: tuple[CheckedArgument, ...]
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Return whether no slope differs by more than the tolerance."""
        return all(each.worst.outcome not in _WRONG for each in self.arguments)

    def __repr__(self) -> str:
        return f"<GradientCheck of {len(self.arguments)} arguments: agrees={self.agrees}>"

    def __str__(self) -> str:
        rows = [("argument", "type", "compared", "error", "outcome", "worst")]
        for each in self.arguments:
            worst = each.worst
            counted = f"{len(each.slopes)} slope{'s' * (len(each.slopes) != 1)}"
            rows.append((each.name, f"{each.type}", counted, f"{worst.error:.1e}", worst.outcome, f"{worst}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        wrong = [each.name for each in self.arguments if each.worst.outcome in _WRONG]
        if not self.arguments:
            return "no argument has elements that are floats: there are no gradients to compare"
        ending = f"the gradients of {', '.join(wrong)} differ" if wrong else "the gradients agree"
        return "\n".join([*lines, f"{ending} (errors up to {self.tolerance:g} are allowed)"])


def check_gradients(
    module: Module,
    arguments: Mapping[str, Array],
    wrt: Sequence[str] | None = None,
    *,
    seed: int = 0,
    options: CompileOptions | None = None,
) -> GradientCheck:
    """Compare the gradients of the function of a module that is meant with differences.

    Args:
        module: A module.
        arguments: An array for each input, by name.
        wrt: The inputs whose gradients are compared; by default all that hold floats.
        seed: The seed of the directions, and of the elements.
        options: How both are compiled.

    Raises:
        AutodiffError: As `mind_mlir.differentiate`.
        ExecutionError: As a call of the program.
    """
    options = options or CompileOptions()
    plain = verified(module)
    parameters = interface_of(entry_function(plain)).parameters
    names = [each.name for each in parameters if each.type.dtype.is_float] if wrt is None else list(wrt)
    module = differentiate(plain, wrt=names or None, extensions=True).module
    gradient = Executable(module, options)
    tolerance = _tolerance(plain)
    random = np.random.default_rng(seed)
    found = []
    types = {each.name: each.type for each in parameters}
    results = gradient(**arguments)
    gradients = results[len(results) - len(names) :]  # its prints are the only ones that are shown
    difference = _Differences(Executable(in_f64(plain), options), arguments)
    for name, array in zip(names, gradients, strict=True):
        slopes = _slopes(array.astype(np.float64), partial(difference, name), random, tolerance)
        if slopes:  # an empty array has none
            found.append(CheckedArgument(name, types[name], tuple(slopes)))
    return GradientCheck(tuple(found), tolerance)


class _Differences:
    """Slopes of the sum of all results of a program in f64."""

    def __init__(self, executable: Executable, arguments: Mapping[str, Array]) -> None:
        self._executable = executable
        types = {each.name: each.type.dtype.numpy for each in executable.parameters}
        self._arguments = {name: np.asarray(array).astype(types[name]) for name, array in arguments.items()}
        self._middle = self._total({})

    def _total(self, changed: Mapping[str, Array]) -> float:
        with silently():
            results = self._executable(**{**self._arguments, **changed})
        with np.errstate(invalid="ignore", over="ignore"):
            return sum(float(each.sum()) for each in results if each.dtype.kind == "f")

    def __call__(self, name: str, direction: Array) -> tuple[float, bool]:
        """Return the slope along a change of one argument, and whether there is an edge nearby."""
        base = self._arguments[name]
        size = math.sqrt(float(np.mean(base * base))) if base.size else 0.0
        step = _STEP * (size or 1.0)

        ends = {at: self._total({name: base + at * step * direction}) for at in (-1.0, -0.5, 0.5, 1.0)}
        full, half = (ends[1.0] - ends[-1.0]) / (2 * step), (ends[0.5] - ends[-0.5]) / step
        # How much the slope turns: of a smooth function a quarter with half of the step, at an edge half.
        turn, less = (abs(ends[at] + ends[-at] - 2 * self._middle) / step for at in (1.0, 0.5))
        size = _SMOOTH * max(abs(half), abs(full))
        is_edge = not abs(half - full) <= size or (turn > size and less > _TURN * turn)
        return (4 * half - full) / 3, is_edge


def _slopes(
    gradient: Array,
    difference: Callable[[Array], tuple[float, bool]],
    random: np.random.Generator,
    tolerance: float,
) -> list[Slope]:
    """Return the slopes that are compared for an argument."""
    compared: list[tuple[tuple[int, ...] | None, Array]] = [
        (None, random.standard_normal(gradient.shape)) for _ in range(DIRECTIONS if gradient.size > 1 else 0)
    ]
    greatest = [int(np.argmax(np.abs(gradient)))] if gradient.size else []
    places = [*greatest, *random.permutation(gradient.size).tolist()]
    for place in list(dict.fromkeys(places))[:ELEMENTS]:
        index = tuple(map(int, np.unravel_index(place, gradient.shape)))
        one = np.zeros(gradient.shape)
        one[index] = 1.0
        compared.append((index, one))
    root = math.sqrt(float(np.sum(gradient * gradient)))
    found = []
    for element, direction in compared:
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is said
            by_gradient = float(np.sum(gradient * direction))
        by_difference, edge = difference(direction)
        size = root if element is None else root / math.sqrt(gradient.size)
        size = max(size, abs(by_gradient), abs(by_difference))
        error = abs(by_gradient - by_difference) / size if size else 0.0
        outcome = _AGREES if error <= tolerance else _EDGE if edge else _DIFFERS
        if not math.isfinite(by_gradient) or not math.isfinite(by_difference):
            error, outcome = math.inf, _NOT_FINITE
        found.append(Slope(element, by_gradient, by_difference, error, outcome))
    return found


def _tolerance(module: Module) -> float:
    """Return how large errors may be: as the least precise dtype that a program computes in has them."""
    types = [type_ for each in module.functions for type_ in value_types(each.blocks).values()]
    bits = min((type_.dtype.bits for type_ in types if type_.dtype.is_float), default=64)
    return next(tolerance for least, tolerance in _TOLERANCES if bits >= least)
