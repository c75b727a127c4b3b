"""What is known of one program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.unseen.libraries import NUMPY, OURS, Library

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A program, written once for libraries that have numpy's functions.

    Attributes:
        name: What it is called.
        inputs: Its arguments, of random numbers and a size.
        small: The size that tests run it in.
        usual: The size that it is timed in.
        code: The program: a function of a library and the arguments.
        judge: A function of numpy's arrays that computes the same otherwise; by default `code` with numpy.
        loops: A function of loops over elements, which numba compiles.
        bound: How large a difference may be, relative to the greatest element of a result.
    """

    name: str
    inputs: Callable[[Generator, int], tuple[Any, ...]]
    small: int
    usual: int
    code: Callable[..., Any]
    judge: Callable[..., Any] | None = None
    loops: Callable[..., Any] | None = None
    bound: float = 1e-4

    def arguments(self, size: int) -> tuple[Any, ...]:
        """Return arguments of a size: the same ones each time."""
        return self.inputs(np.random.default_rng(len(self.name)), size)

    def of(self, library: Library) -> Callable[..., Any]:
        """Return the function of the arguments that computes with a library."""

        def program(*arguments: Any) -> Any:
            return self.code(library, *arguments)

        return program

    @property
    def needs_judge(self) -> bool:
        """Whether numpy has not all that `code` takes from a library."""
        return self.judge is not None

    def judged(self, found: Any, arguments: tuple[Any, ...]) -> float:
        """Return how far results are from numpy's, as a part of `bound`; 1 and less is right."""
        with np.errstate(all="ignore"):
            wanted = self.judge(*arguments) if self.judge else self.of(NUMPY)(*arguments)
        return max(_apart(one, other) for one, other in zip(_leaves(found), _leaves(wanted), strict=True)) / (
            self.bound
        )

    def ours(self) -> Callable[..., Any]:
        """Return the function that we compile."""
        return self.of(OURS)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in _leaves(each)]
    return [np.asarray(value)]


def _apart(one: Any, other: Any) -> float:
    """Return the greatest difference relative to the greatest element; infinite where kinds differ."""
    if one.shape != other.shape or (one.dtype.kind == "f") != (other.dtype.kind == "f"):
        return float("inf")
    if one.dtype.kind != "f":
        return 0.0 if np.array_equal(one, other) else float("inf")
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(one.astype(np.float64) - other))
    finite = np.abs(other[np.isfinite(other)])
    scale = float(finite.max()) if finite.size else 1.0
    worst = float(apart.max()) if apart.size else 0.0
    return float("inf") if np.isnan(worst) else worst / (scale or 1.0)
