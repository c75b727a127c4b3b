"""Grows a random valid flat module one operation at a time, drawing every choice from Hypothesis.

Operands are values that exist already or, now and then, fresh inputs and constants, so that generated modules
share values the way programs do. `SMALL` programs have extents that are 1 or primes, which no vector length
or tile divides, and take no time; `LARGE` ones have rows and columns around vector lengths and tile sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from mind_mlir.builders.builder import Builder
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import ANY, Domain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from hypothesis.strategies import DrawFn

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value

MAX_RANK = 4
MAX_CONSTANT = 24

Shape = tuple[int, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """The extents of a program's tensors, and the most elements that one may hold."""

    extents: tuple[int, ...]
    elements: int

    def fit(self, shape: Shape) -> bool:
        """Return whether the program may hold a tensor of ``shape``."""
        return math.prod(shape) <= self.elements and len(shape) <= MAX_RANK


SMALL = Sizes((1, 2, 3, 5, 7), 240)
LARGE = Sizes((1, 2, 3, 13, 16, 31, 32, 64, 67, 130), 20_000)


@dataclass(frozen=True)
class InputDomain:
    """What values an input takes: any, positive ones, or indices into an axis of ``extent`` elements."""

    domain: Domain = Domain.ANY
    extent: int = 0


@dataclass
class Growth:
    """A module under construction.

    Attributes:
        draw: Draws from a Hypothesis strategy.
        dtypes: The dtypes that the program uses, the most used one first.
        sizes: What shapes it may have.
        extents: The extents that most of its shapes have, so that values fit together.
        wild: Whether constants may be infinite, NaN or otherwise awkward.
        empties: Whether tensors without elements appear.
        builder: Holds the operations so far.
        values: The values so far, in order.
        domains: What each input takes.
        positive: Values whose elements are all positive for finite inputs.
        inexact: Values whose last bits compiled and interpreted code may disagree about.
        bounds: Index tensors, with the least extent that they are valid for.
        places: Those that do not count from the end, likewise.
    """

    draw: DrawFn
    dtypes: Sequence[DType] = ANY
    sizes: Sizes = SMALL
    extents: Sequence[int] = SMALL.extents
    wild: bool = False
    empties: bool = True
    builder: Builder = field(default_factory=Builder)
    values: list[Value] = field(default_factory=list)
    domains: dict[str, InputDomain] = field(default_factory=dict)
    positive: set[int] = field(default_factory=set)
    inexact: set[int] = field(default_factory=set)
    bounds: dict[int, int] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)

    # Choices

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def subset(self, items: Sequence[T]) -> list[T]:
        """Return some of ``items``, in any order."""
        if not items:
            return []
        return list(self.draw(st.permutations(items)))[: self.number(0, len(items))]

    def dtype(self, allowed: Collection[DType] = ANY) -> DType:
        usable = [dtype for dtype in self.dtypes if dtype in allowed] or list(allowed)
        return usable[0] if self.number(0, 3) < 3 else self.pick(usable)

    def shape(self, low: int = 0, high: int = MAX_RANK) -> Shape:
        """Return a shape of ``low`` to ``high`` dimensions."""
        shape: list[int] = []
        for _ in range(self.number(low, high)):
            shape.append(self.extent(tuple(shape)))
        return tuple(shape)

    def extent(self, *shapes: Shape) -> int:
        """Return an extent that may be added to a tensor with all the extents of ``shapes``."""
        room = self.sizes.elements // max(math.prod(map(math.prod, shapes)), 1)
        usual = self.extents if self.number(0, 3) < 3 else self.sizes.extents
        return self.pick([extent for extent in usual if extent <= room] or [1])

    # Values

    def accumulated(self, value: Value) -> Value:
        """Return a sum or product of many numbers, whose last bits depend on their order if it is a float."""
        if value.type.dtype.is_float:
            self.inexact.add(value.id)
        return value

    def emit(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        """Append an operation; its value is inexact if an operand is (the recipes say where it starts)."""
        value = self.builder.emit(opcode, *operands, **attributes)
        if any(operand.id in self.inexact for operand in operands) and value.type.dtype.is_float:
            self.inexact.add(value.id)
        self.values.append(value)
        return value

    def existing(self, wanted: Callable[[Value], bool]) -> Value | None:
        """Return one of the values so far that is ``wanted``, mostly, or None."""
        found = [value for value in self.values if wanted(value)]
        if not found or self.number(0, 4) == 4:
            return None
        latest = found[::-1]  # programs mostly go on with what they have just computed
        return self.pick(latest[:2] if self.number(0, 3) < 3 else latest)

    def operand(
        self,
        dtypes: Collection[DType] = ANY,
        ranks: tuple[int, int] = (0, MAX_RANK),
        wanted: Callable[[Value], bool] = lambda _: True,
    ) -> Value:
        """Return a value of one of ``dtypes`` and of a rank in ``ranks``; a fresh one has no extent of 0."""

        def fits(value: Value) -> bool:
            return value.type.dtype in dtypes and ranks[0] <= value.type.rank <= ranks[1] and wanted(value)

        return self.existing(fits) or self.fresh(TensorType(self.dtype(dtypes), self.shape(*ranks)))

    def of_type(self, type_: TensorType, wanted: Callable[[Value], bool] = lambda _: True) -> Value:
        """Return a value of exactly ``type_``."""
        return self.existing(lambda value: value.type == type_ and wanted(value)) or self.fresh(type_)

    def broadcastable(self, value: Value) -> Value:
        """Return a value of the same dtype that broadcasts with ``value``."""

        def fits(other: Value) -> bool:
            shape = broadcast(value.shape, other.shape)
            return other.type.dtype is value.type.dtype and shape is not None and self.sizes.fit(shape)

        found = self.existing(fits)
        if found is not None:
            return found
        shape = value.shape[self.number(0, value.type.rank) :]
        return self.fresh(value.type.with_shape(tuple(1 if self.number(0, 2) == 0 else e for e in shape)))

    def fresh(self, type_: TensorType, domain: InputDomain | None = None) -> Value:
        """Return a new input, or a small constant, of ``type_``; one without elements is sliced."""
        if 0 in type_.shape:
            return self._empty(type_)
        domain = domain or InputDomain()
        if type_.element_count <= MAX_CONSTANT and self.number(0, 4) == 4:
            return self.constant(type_, domain)
        name = f"x{len(self.domains)}"
        self.domains[name] = domain
        return self._append(self.builder.input(name, type_), domain)

    def constant(self, type_: TensorType, domain: InputDomain | None = None) -> Value:
        """Return a new constant of ``type_``."""
        domain = domain or InputDomain()
        return self._append(self.builder.constant(self._data(type_, domain), type_.dtype), domain)

    def _append(self, value: Value, domain: InputDomain) -> Value:
        if domain.domain is Domain.POSITIVE:
            self.positive.add(value.id)
        self.values.append(value)
        return value

    def indices(self, extent: int, shape: Shape) -> Value:
        """Return an integer tensor of ``shape`` whose elements are valid indices for ``extent``."""
        found = self.existing(lambda v: v.shape == shape and 0 < self.bounds.get(v.id, 0) <= extent)
        if found is not None:
            return found
        dtype = self.dtype((DType.SI32, DType.SI64))
        value = self.fresh(TensorType(dtype, shape), InputDomain(Domain.INDEX, extent))
        self.bounds[value.id] = extent
        return value

    def positions(self, extent: int, shape: Shape) -> Value:
        """Return an integer tensor of ``shape`` whose elements are at least 0 and less than ``extent``."""
        found = self.existing(lambda v: v.shape == shape and 0 < self.places.get(v.id, 0) <= extent)
        if found is not None:
            return found
        dtype = self.dtype((DType.SI32, DType.SI64))
        value = self.fresh(TensorType(dtype, shape), InputDomain(Domain.POSITION, extent))
        self.places[value.id] = extent
        return value

    def _empty(self, type_: TensorType) -> Value:
        whole = self.fresh(type_.with_shape(tuple(max(extent, 1) for extent in type_.extents)))
        zeros = (0,) * type_.rank
        return self.emit("Slice", whole, starts=zeros, ends=type_.extents, steps=(1,) * type_.rank)

    def _data(self, type_: TensorType, domain: InputDomain) -> Array:
        count = type_.element_count
        elements = self.draw(
            st.lists(self._element(type_.dtype, domain), min_size=count, max_size=count)
            if count <= 4
            else st.integers(0, 2**16).map(lambda seed: sample(type_, domain, np.random.default_rng(seed)))
        )
        return np.asarray(elements, type_.dtype.numpy).reshape(type_.extents)

    def _element(self, dtype: DType, domain: InputDomain) -> st.SearchStrategy[object]:
        if domain.domain is Domain.INDEX:
            return st.integers(-domain.extent, domain.extent - 1)
        if domain.domain is Domain.POSITION:
            return st.integers(0, domain.extent - 1)
        if dtype is DType.I1:
            return st.booleans()
        if dtype.is_integer:
            return st.integers(-9, 9) | (st.integers(-(2**31), 2**31 - 1) if self.wild else st.nothing())
        if domain.domain is Domain.POSITIVE:
            return st.sampled_from([0.5, 1.0, 1.25, 2.0])
        if self.wild:
            return st.floats(width=32, allow_nan=False) | st.just(
                math.nan
            )  # one NaN: payloads have no spelling
        return st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.5, 0.1, 3.0])


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """Return the broadcast shape, or None where the shapes do not fit."""
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        return None


def sample(type_: TensorType, domain: InputDomain, rng: np.random.Generator, wild: bool = False) -> Array:
    """Return random values of ``type_`` from ``domain``; ``wild`` sprinkles in awkward ones."""
    shape, dtype = type_.extents, type_.dtype
    if domain.domain is Domain.INDEX:
        return np.asarray(rng.integers(-domain.extent, domain.extent, shape), dtype.numpy)
    if domain.domain is Domain.POSITION:
        return np.asarray(rng.integers(0, domain.extent, shape), dtype.numpy)
    if dtype is DType.I1:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.is_integer:
        array = np.asarray(rng.integers(-50, 51, shape), dtype.numpy)
        limits = np.iinfo(dtype.numpy)
        awkward = np.array([0, -1, limits.min, limits.max], dtype.numpy)
    else:
        positive = domain.domain is Domain.POSITIVE
        array = np.exp(rng.uniform(-1, 1, shape)) if positive else rng.standard_normal(shape)
        tiny = np.finfo(dtype.numpy).smallest_subnormal
        awkward = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, tiny, -tiny], dtype.numpy)
    if wild:
        array = np.where(rng.random(shape) < 0.3, rng.choice(awkward, shape), array)
    return np.asarray(array, dtype.numpy)


def has_elements(value: Value) -> bool:
    """Return whether the tensor has elements."""
    return value.type.element_count > 0
