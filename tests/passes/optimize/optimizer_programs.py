"""Random functions for the optimiser: much of what it looks for, in branches and loops, on awkward numbers.

Hypothesis would take longer to draw one than all passes take to go over it.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.builders.builder import Builder
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value

PROFILE = "ptir-v0.4"
DTYPES = (DType.F32, DType.F64, DType.SI32, DType.F32)
SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (3, 2), (1, 3), (2, 1, 3))
#: Numbers for which identities of real numbers do not hold.
AWKWARD = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.0, 1e-40, 3e38)
#: Operations that need not have the same bits when they are written in another way.
INEXACT = frozenset(("Exp", "Tanh", "Sum", "DotGeneral", "Convolution"))


class Drawing:
    """One function in the making."""

    def __init__(self, rng: Random, *, exact: bool) -> None:
        self.rng = rng
        self.exact = exact
        self.builder = Builder(profile=PROFILE)
        self.values: list[Value] = []
        #: What has been emitted, to be emitted again: nothing is as good for finding what should be merged.
        self.emitted: list[Callable[[], Value]] = []
        self.depth = 0

    def module(self, size: int) -> Module:
        """Return a function ``main`` of about ``size`` operations, as a module."""
        for index in range(self.rng.randint(2, 4)):
            type_ = TensorType(self.rng.choice(DTYPES), self.rng.choice(SHAPES))
            self.values.append(self.builder.parameter(type_, f"x{index}"))
        self.values.append(self.builder.parameter(TensorType(DType.SI64), "n"))
        for _ in range(size):
            self.step()
        # Not all that is computed is needed.
        results = [self.values[-1], *self.rng.choices(self.values, k=3)]
        return Module(Functions((self.builder.function("main", results),)), PROFILE)

    # Values

    def value(self, *dtypes: DType, rank: int | None = None) -> Value:
        """Return a value of one of ``dtypes``, made if there is none."""
        wanted = dtypes or (DType.F32, DType.F64, DType.SI32)
        found = [v for v in self.values if v.type.dtype in wanted and rank in (None, len(v.shape))]
        if found and self.rng.random() < 0.95:
            return self.rng.choice(found[-6:] if self.rng.random() < 0.7 else found)
        shape = self.rng.choice([s for s in SHAPES if rank in (None, len(s))])
        return self.constant(self.rng.choice(wanted), shape)

    def like(self, value: Value) -> Value:
        """Return a value of the type of ``value``, itself at times, or a constant."""
        found = [v for v in self.values if v.type == value.type]
        if self.rng.random() < 0.4:
            return self.constant(value.type.dtype, value.shape)
        return self.rng.choice(found or [value])

    def constant(self, dtype: DType, shape: Sequence[int]) -> Value:
        if not dtype.is_float:
            number: float = self.rng.choice((0, 1, -1, 2, 5))
        else:
            number = self.rng.choice(AWKWARD if self.exact else (0.0, 1.0, -1.0, 0.5, 2.0))
        return self.builder.constant(np.full(shape, number, dtype.numpy), dtype)

    def emit(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        self.emitted.append(lambda: self.builder.emit(opcode, *operands, **attributes))
        return self.emitted[-1]()

    # Operations

    def step(self) -> None:
        """Append an operation, or a branch or a loop with some in it."""
        kind = self.rng.random()
        if self.emitted and kind < 0.2:
            self.values.append(self.rng.choice(self.emitted)())
        elif kind < 0.3 and self.depth < 2:
            found = self.branch() if self.rng.random() < 0.5 else self.loop()
            self.values.extend(found)
        else:
            names = [each for each in KINDS if not (self.exact and each in ("inexact", "contraction"))]
            self.values.append(KINDS[self.rng.choice(names)](self))

    def inside(self, most: int) -> None:
        self.depth += 1
        for _ in range(self.rng.randint(0, most)):
            self.step()
        self.depth -= 1

    def branch(self) -> list[Value]:
        predicate = self.builder.emit("Compare", self.value(DType.SI64, rank=0), self.integer(), op="Less")
        types = [self.value().type for _ in range(2)]
        regions, common = [], self.rng.choice(self.emitted) if self.emitted else None
        for _ in range(2):
            outside, emitted = list(self.values), list(self.emitted)
            with self.builder.region() as region:
                if common is not None:
                    self.values.append(common())
                self.inside(3)
                region.yield_([self.of_type(type_) for type_ in types])
            regions.append(region)
            self.values, self.emitted = outside, emitted
        return list(self.builder.emit_all("Cond", predicate, regions=regions))

    def loop(self) -> list[Value]:
        """Append a loop of at most three iterations, or none."""
        first = self.integer() if self.rng.random() < 0.5 else self.value(DType.SI64, rank=0)
        initial = [first, *(self.value() for _ in range(self.rng.randint(1, 3)))]
        types = [value.type for value in initial]
        outside, emitted = list(self.values), list(self.emitted)
        with self.builder.region(types) as condition:
            index, *carried = condition.parameters
            self.values += carried
            self.inside(1)
            more = self.builder.emit("Compare", index, self.builder.constant(3, DType.SI64), op="Less")
            condition.yield_([more, index, *carried])
        self.values, self.emitted = list(outside), list(emitted)
        with self.builder.region(types) as body:
            index, *carried = body.parameters
            self.values += carried
            self.inside(4)
            following = self.builder.emit("Add", index, self.builder.constant(1, DType.SI64))
            body.yield_([following, *(self.of_type(type_) for type_ in types[1:])])
        self.values, self.emitted = outside, emitted
        return list(self.builder.emit_all("While", *initial, regions=(condition, body)))

    def integer(self) -> Value:
        return self.builder.constant(self.rng.randint(0, 4), DType.SI64)

    def of_type(self, type_: TensorType) -> Value:
        found = [value for value in self.values if value.type == type_]
        return self.rng.choice(found[-3:]) if found else self.constant(type_.dtype, type_.extents)


def _binary(draw: Drawing) -> Value:
    value = draw.value()
    operands = [value, draw.like(value)]
    draw.rng.shuffle(operands)
    return draw.emit(draw.rng.choice(("Add", "Sub", "Mul", "Maximum", "Minimum")), *operands)


def _divided(draw: Drawing) -> Value:
    value = draw.value(DType.F32, DType.F64)
    return draw.emit("Div", value, draw.like(value))


def _unary(draw: Drawing) -> Value:
    return draw.emit(draw.rng.choice(("Neg", "Abs", "Relu")), draw.value())


def _inexact(draw: Drawing) -> Value:
    value = draw.value(DType.F32, DType.F64)
    axes = tuple(axis for axis in range(len(value.shape)) if draw.rng.random() < 0.5)
    if draw.rng.random() < 0.5:
        return draw.emit("Tanh", value)
    return draw.emit("Sum", draw.emit("Tanh", value), axes=axes or (0,) * bool(value.shape), keepdims=False)


def _contraction(draw: Drawing) -> Value:
    value = draw.value(DType.F32, DType.F64, rank=2)
    left = draw.emit("Tanh", value)
    right = draw.emit("Transpose", draw.like(value), permutation=(1, 0))
    return draw.emit(
        "DotGeneral", left, right, batch_lhs=(), batch_rhs=(), contract_lhs=(1,), contract_rhs=(0,),
        accum_dtype=value.type.dtype, out_dtype=value.type.dtype,
    )  # fmt: skip


def _convolution(draw: Drawing) -> Value:
    """Append a convolution between transposes, and something elementwise or a sum behind it."""
    value = draw.value(*((DType.SI32,) if draw.exact else (DType.F32, DType.F64, DType.SI32)), rank=2)
    channels, length = value.shape
    dtype = value.type.dtype
    small = draw.emit("Tanh", value) if dtype.is_float else value
    image = draw.emit("Reshape", small, new_shape=(1, channels, length))
    image = draw.emit("Transpose", image, permutation=(0, 2, 1))
    filters = draw.constant(dtype, (1, channels, channels))
    found = draw.emit("Convolution", image, filters, accum_dtype=dtype, out_dtype=dtype)
    found = draw.emit("Neg", draw.emit("Transpose", found, permutation=(0, 2, 1)))
    if draw.rng.random() < 0.5:
        return draw.emit("Sum", found, axes=(draw.rng.randrange(3),), keepdims=draw.rng.random() < 0.5)
    return draw.emit("Reshape", found, new_shape=value.shape)


def _cast(draw: Drawing) -> Value:
    value = draw.value(DType.F32, DType.F64, DType.SI32)
    narrow = value.type.dtype.is_float
    return draw.emit("Cast", value, dtype=draw.rng.choice((DType.F32, DType.F64) if narrow else DTYPES))


def _reshape(draw: Drawing) -> Value:
    value = draw.value()
    size = value.type.element_count
    shapes = [shape for shape in (*SHAPES, (6,), (3, 1), (1, 1)) if int(np.prod(shape)) == size]
    return draw.emit("Reshape", value, new_shape=draw.rng.choice(shapes or [value.shape]))


def _transpose(draw: Drawing) -> Value:
    value = draw.value()
    permutation = list(range(len(value.shape)))
    draw.rng.shuffle(permutation)
    return draw.emit("Transpose", value, permutation=tuple(permutation))


def _broadcast(draw: Drawing) -> Value:
    value = draw.value()
    if len(value.shape) > 3:
        return draw.emit("Neg", value)
    stretched = tuple(2 if extent == 1 else extent for extent in value.shape)
    return draw.emit("BroadcastTo", value, result_shape=draw.rng.choice([stretched, (2, *stretched)]))


def _slice(draw: Drawing) -> Value:
    value = draw.value()
    starts = tuple(draw.rng.randint(0, extent - 1) for extent in value.shape)
    ends = tuple(draw.rng.randint(low + 1, n) for low, n in zip(starts, value.shape, strict=True))
    return draw.emit("Slice", value, starts=starts, ends=ends, steps=(1,) * len(starts))


def _concat(draw: Drawing) -> Value:
    value = draw.value()
    if not value.shape:
        return draw.emit("Abs", value)
    return draw.emit("Concat", value, draw.like(value), axis=draw.rng.randrange(len(value.shape)))


def _pad(draw: Drawing) -> Value:
    value = draw.value(DType.F32, DType.F64)
    low, high = (tuple(draw.rng.choice((0, 0, 1)) for _ in value.shape) for _ in range(2))
    number = draw.rng.choice((0.0, 1.0))
    return draw.emit("Pad", value, low=low, high=high, interior=(0,) * len(low), pad_value=number)


def _select(draw: Drawing) -> Value:
    value = draw.value()
    predicate = draw.emit("Compare", value, draw.like(value), op=draw.rng.choice(("Less", "Equal")))
    return draw.emit("Select", predicate, value, draw.like(value))


def _integer_product(draw: Drawing) -> Value:
    """Append a product of integers, which is exact; at times there is nothing to add up."""
    value = draw.value(DType.SI32, rank=2)
    right = draw.emit("Transpose", draw.like(value), permutation=(1, 0))
    lists = {"batch_lhs": (), "batch_rhs": (), "contract_lhs": (1,), "contract_rhs": (0,)}
    return draw.emit("DotGeneral", value, right, **lists, accum_dtype=DType.SI32, out_dtype=DType.SI32)


def _held(draw: Drawing) -> Value:
    value = draw.value()
    for _ in range(2):
        limits = [draw.constant(value.type.dtype, value.shape), draw.like(value)]
        value = draw.emit("Clamp", value, *draw.rng.sample(limits, 2))
    return value


def _truths(draw: Drawing) -> Value:
    value = draw.value()
    first, second = (
        draw.emit("Compare", value, draw.like(value), op=draw.rng.choice(("Less", "NotEqual")))
        for _ in range(2)
    )
    negated = draw.emit("Compare", first, draw.emit("Compare", value, value, op="Equal"), op="NotEqual")
    inner = draw.emit("Select", draw.rng.choice((first, second)), value, draw.like(value))
    return draw.emit("Select", draw.rng.choice((first, negated)), inner, draw.like(value))


def _rows(draw: Drawing) -> Value:
    value = draw.value()
    if not value.shape:
        return draw.emit("Abs", value)
    numbers = [draw.rng.randrange(value.shape[0]) for _ in range(draw.rng.randint(1, 3))]
    taken = draw.emit("Take", value, draw.builder.constant(np.array(numbers), DType.SI64))
    start = draw.builder.constant(np.array([draw.rng.randint(-2, 3) for _ in value.shape]), DType.SI64)
    sizes = tuple(draw.rng.randint(1, extent) for extent in taken.shape)
    return draw.emit("DynamicSlice", taken, start, sizes=sizes)


def _extreme(draw: Drawing) -> Value:
    value = _broadcast(draw)
    axes = tuple(axis for axis in range(len(value.shape)) if draw.rng.random() < 0.5)
    form = {
        "keepdims": draw.rng.random() < 0.5,
        "accum_dtype": value.type.dtype,
        "out_dtype": value.type.dtype,
    }
    kind = "Sum" if all(value.shape[axis] == 1 for axis in axes) else draw.rng.choice(("Max", "Min"))
    return draw.emit("Reduce", value, kind=kind, axes=axes, **form)


def _halves(draw: Drawing) -> Value:
    value = draw.value()
    if not value.shape or value.shape[-1] < 2:
        return draw.emit("Neg", value)
    middle, parts = draw.rng.randint(1, value.shape[-1] - 1), []
    outer = value.shape[:-1]
    for low, high in ((0, middle), (middle, value.shape[-1])):
        starts, ends = (*(0,) * len(outer), low), (*outer, high)
        parts.append(draw.emit("Slice", value, starts=starts, ends=ends, steps=(1,) * len(starts)))
    return draw.emit("Concat", *(parts if draw.rng.random() < 0.7 else parts[::-1]), axis=len(outer))


def _state(draw: Drawing) -> Value:
    """Append what is joined along the first axis and goes on in parts, or as a whole."""
    value = draw.value()
    if len(value.shape) < 2:
        return draw.emit("Abs", value)
    part = draw.emit(
        "Slice",
        value,
        starts=(0,) * len(value.shape),
        ends=(1, *value.shape[1:]),
        steps=(1,) * len(value.shape),
    )
    whole = draw.emit("Concat", draw.emit("Abs", part), value, axis=0)
    whole = draw.emit("Maximum", draw.emit("Neg", whole), draw.rng.choice((whole, draw.like(whole))))
    if draw.rng.random() < 0.5:
        return whole
    first = draw.rng.randrange(2)
    ends = (1 + first * value.shape[0], *whole.shape[1:])
    starts = (first, *(0 for _ in ends[1:]))
    return draw.emit("Slice", whole, starts=starts, ends=ends, steps=(1,) * len(ends))


KINDS: dict[str, Callable[[Drawing], Value]] = {
    "binary": _binary,
    "more binary": _binary,
    "divided": _divided,
    "unary": _unary,
    "inexact": _inexact,
    "contraction": _contraction,
    "convolution": _convolution,
    "cast": _cast,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "concat": _concat,
    "pad": _pad,
    "select": _select,
    "integer product": _integer_product,
    "held": _held,
    "truths": _truths,
    "rows": _rows,
    "extreme": _extreme,
    "halves": _halves,
    "state": _state,
}


def drawn(seed: int) -> tuple[Module, dict[str, Array]]:
    """Return a program and arguments; those of exact operations have awkward numbers in them."""
    rng = Random(seed)  # noqa: S311 -- programs, no secrets
    exact = seed % 2 == 0
    module = Drawing(rng, exact=exact).module(rng.randint(3, 12))
    given: dict[str, Array] = {}
    for parameter in module.functions[0].parameters:
        type_ = parameter.tensor_type
        count = type_.element_count
        if type_.dtype.is_float:
            numbers = [rng.choice(AWKWARD) if exact else rng.uniform(-2, 2) for _ in range(count)]
        else:
            numbers = [rng.randint(-3, 4) for _ in range(count)]
        given[str(parameter.name)] = np.array(numbers, type_.dtype.numpy).reshape(type_.extents)
    return module, given
