"""Programs of two: what moves elements, in front of or behind each kind of schedule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from movers import Mover
    from schedule_kinds import Kind

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]

NUMPY = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "i8": np.dtype(np.int8),
    "c64": np.dtype(np.complex64),
    "bool": np.dtype(np.bool_),
}


@dataclass(frozen=True)
class Pair:
    """A mover in front of an operand of a schedule, or behind its result.

    Attributes:
        kind: The schedule.
        shapes: Of its operands.
        dtype: Of them.
        mover: What moves elements.
        place: Of which operand it is in front; -1 for behind.
        source: What it moves, if it is in front: an argument ("given"), something computed ("made"),
            something computed that is a result, too ("shared"), a constant ("constant"), or what a loop
            carries and changes ("carried"). Behind, what is "shared" is a result, too.
    """

    kind: Kind
    shapes: tuple[Shape, ...]
    dtype: str
    mover: Mover
    place: int
    source: str = "given"

    def __str__(self) -> str:
        where = "behind" if self.place < 0 else f"in front of operand {self.place} of"
        return f"{self.mover} {where} {self.kind.name}, {self.dtype} {self.shapes}, {self.source}"

    def _given_shapes(self) -> list[Shape] | None:
        shapes = list(self.shapes)
        if self.place >= 0:
            before = self.mover.before(shapes[self.place])
            if before is None:
                return None
            shapes[self.place] = before
        return shapes

    def arguments(self) -> tuple[Array, ...]:
        """Return arguments of a pair that fits."""
        shapes = self._given_shapes()
        assert shapes is not None
        rng = np.random.default_rng(len(shapes[0]) + sum(shapes[-1]))
        return tuple(_numbers(shape, self, rng) for shape in shapes)

    def fits(self) -> bool:
        """Return whether there is such a program."""
        if self.place >= 0:
            return self._given_shapes() is not None
        results = result_shapes(self.kind, self.shapes, self.dtype)
        return any(self.mover.after(shape) is not None for shape in results)

    def __call__(self, *arguments: Any) -> Any:
        """Return the results for arrays."""
        if self.place < 0:
            return self._behind(*arguments)
        operands = list(arguments)
        given = operands[self.place]
        if self.source == "carried":
            return self._carried(operands)
        if self.source == "constant":
            given = mnp.asarray(self.arguments()[self.place])
        elif self.source != "given":
            given = _changed(given)
        operands[self.place] = self.mover.apply(given, self.shapes[self.place])
        result = self.kind.apply(*operands)
        return (result, given) if self.source == "shared" else result

    def _carried(self, operands: list[Any]) -> Any:
        given = operands[self.place]

        def of(x: Any) -> Any:
            operands[self.place] = self.mover.apply(x, self.shapes[self.place])
            return self.kind.apply(*operands)

        return mind_mlir.fori_loop(
            0, 2, lambda _, state: (_changed(state[0]), of(state[0])), (given, of(given))
        )

    def _behind(self, *operands: Any) -> Any:
        results = flat(self.kind.apply(*operands))
        shapes = [self.mover.after(tuple(each.shape)) for each in results]
        moved = [
            self.mover.apply(each, shape)
            for each, shape in zip(results, shapes, strict=True)
            if shape is not None
        ]
        return (*moved, *results) if self.source == "shared" else tuple(moved)


@cache
def result_shapes(kind: Kind, shapes: tuple[Shape, ...], dtype: str) -> tuple[Shape, ...]:
    """Return the shapes of the results of a kind of schedule."""
    found: list[Shape] = []

    def traced(*operands: Any) -> Any:
        results = flat(kind.apply(*operands))
        found[:] = [tuple(each.shape) for each in results]
        return results

    mind_mlir.jit(traced).lower(*(np.zeros(shape, NUMPY[dtype]) for shape in shapes))
    return tuple(found)


def _changed(x: Any) -> Any:
    return x != x[..., ::-1] if x.dtype == np.bool_ else x + x


def _numbers(shape: Shape, pair: Pair, rng: np.random.Generator) -> Array:
    dtype = NUMPY[pair.dtype]
    if pair.dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    most = 2 if dtype.itemsize < 4 else 4
    if pair.kind.tolerance:
        return (
            np.asarray(rng.standard_normal(shape)).astype(dtype)
            if dtype.kind != "i"
            else rng.integers(-9, 10, shape).astype(dtype)
        )
    whole = rng.integers(-most, most + 1, shape)
    if pair.dtype == "c64":
        return np.asarray(whole + 1j * rng.integers(-most, most + 1, shape), dtype)
    return np.asarray(whole).astype(dtype)


def flat(tree: Any) -> list[Any]:
    """Return the leaves of a result."""
    return mind_mlir.support.pytrees.flatten(tree)[0]


def program(pairs: Sequence[Pair]) -> tuple[Any, list[Array]]:
    """Return a module that computes ``pairs``, each of arguments of its own, and arguments."""
    given = [pair.arguments() for pair in pairs]

    def all_of(arguments: Any) -> Any:
        return [pair(*each) for pair, each in zip(pairs, arguments, strict=True)]

    lowered = mind_mlir.jit(all_of).lower(given)
    return lowered, [array for each in given for array in each]
