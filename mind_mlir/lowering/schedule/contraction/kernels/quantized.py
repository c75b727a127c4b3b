"""The micro-kernel of products with weights of few bits, a few rows of activations at a time.

Weights are read once, from one end to the other, as they lie, and each step of blocks is made numbers in
registers: for all rows of activations, which `activations` has arranged.
"""

from __future__ import annotations

import dataclasses

from mind_mlir.lowering.schedule.contraction.kernels.activations import Step
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, convert, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import (
    Moving,
    begin,
    count_of,
    if_any,
    lane_sum,
    rows_of,
    walk,
)
from mind_mlir.lowering.schedule.contraction.kernels.quantized_weights import (
    StepWeights,
    WeightKernel,
    Weights,
)
from mind_mlir.lowering.schedule.contraction.kernels.vnni import I8, dot_products
from mind_mlir.ops.quantized_formats import FORMATS

#: How bytes are multiplied: by an instruction that adds four products, by one that adds two of 16 bits, or by
#: multiplications of 32 bits.
FOUR, TWO, ONE = "four", "two", "one"
#: Steps that one accumulator sums.
_STEPS = 256


@dataclasses.dataclass(frozen=True)
class QuantizedKernel(WeightKernel):
    """``out[i, j] = sum over k of left[i, k] * weight[j, k]``, some columns at a time, for all rows.

    Columns side by side are ``apart`` columns from each other, so that each is read on and on: ``columns`` of
    them one after another. Then come ``rest`` single ones, ``behind`` columns from the first.

    Attributes:
        rows: All rows.
        columns: Columns side by side.
        rest: Blocks behind the last whole step.
        dots: How bytes are multiplied.
        fma: Whether products are fused with their addition.
        ahead: How many bytes ahead memory is asked for, if it is.
    """

    rows: int
    columns: int
    rest: int
    dots: str
    fma: bool
    ahead: int = 0

    kind = "quantized"
    buffers = ("left", "weights", "scales", "zeros", "out")
    #: How far rows are apart, and where they begin, is in bytes for activations and weights.
    numbers = (
        *("left_first", "weights_first", "scales_first", "zeros_first", "out_first", "columns", "apart"),
        *("rest", "behind", "steps", "left_row", "weights_row", "scales_row", "zeros_row", "out_row"),
    )

    @property
    def step(self) -> Step:
        """Return what is read of activations at once."""
        return Step(self.lanes, self.blocks, self.integers)

    @property
    def is_unsigned(self) -> bool:
        """Whether an instruction takes the bytes without a sign: the first of `dots` does."""
        return self.dots == FOUR

    def append(self, t: Text) -> None:
        """Append the body: columns side by side, then single ones."""
        _Columns(t, self).append()


class _Columns:
    """Appends the products of columns of weights, some side by side, with all rows of activations."""

    def __init__(self, t: Text, kernel: QuantizedKernel) -> None:
        self._t, self._k = t, kernel
        self._weights = Weights(t, kernel)
        self._lefts = rows_of(t, begin(t, "left", "i8"), "%left_row", kernel.rows, "i8")

    def append(self) -> None:
        """Append all columns."""
        t, k = self._t, self._k
        out, start = begin(t, "out", "f32"), self._weights.start()
        self._several("%columns", start, out, k.columns)
        if k.columns > 1:
            behind = self._weights.after(start, "%behind")
            self._several("%rest", behind, t.step(out, "%behind", "f32"), 1)

    def _several(self, number: str, here: list[str], there: str, count: int) -> None:
        """Append ``number`` times ``count`` columns, ``%apart`` from each other."""
        moving = [*self._weights.moving(here), Moving(there, 1, "f32")]

        def group(_: str, *places: str) -> None:
            *rows, there = places
            self._columns(rows, there, count)

        if_any(self._t, number, lambda: walk(self._t, number, moving, group))

    def _columns(self, here: list[str], there: str, count: int) -> None:
        t, k = self._t, self._k
        places = [t.mul("%apart", t.number(column)) for column in range(count)]
        rows = [self._weights.after(here, place) for place in places]
        zero, type_ = t.zero("f32", k.lanes), vector(k.lanes, "f32")

        def stretch(number: str, inside: list[str]) -> list[str]:
            first = t.mul(number, t.number(_STEPS))
            steps = t.minimum(t.binary("sub", "%steps", first), t.number(_STEPS))

            def step(number: str, sums: list[str]) -> list[str]:
                return self._step(rows, t.add(first, number), k.blocks, sums)

            found = t.loop(steps, [(zero, type_)] * len(inside), step)
            return [t.sum(total, each, "f32", k.lanes) for total, each in zip(inside, found, strict=True)]

        sums = t.loop(count_of(t, "%steps", _STEPS), [(zero, type_)] * (k.rows * count), stretch)
        if k.rest:
            sums = self._step(rows, "%steps", k.rest, sums)
        for place, total in enumerate(sums):
            row, column = divmod(place, count)
            target = t.step(t.step(there, t.mul("%out_row", t.number(row)), "f32"), places[column], "f32")
            t.store(lane_sum(t, [total], "f32", k.lanes), target, "f32", 4)

    def _step(self, rows: list[list[str]], place: str, live: int, sums: list[str]) -> list[str]:
        """Append ``sums``, row by row of activations, plus the products of step ``place``."""
        t, k = self._t, self._k
        offset = t.mul(place, t.number(k.step.bytes))
        weights = [self._weights.step(row, place, live) for row in rows]
        added = self._integers if k.integers else self._floats
        found: list[str] = []
        for row, left in enumerate([t.step(each, offset, "i8") for each in self._lefts]):
            found += added(left, weights, sums[row * len(weights) : (row + 1) * len(weights)])
        return found

    def _integers(self, left: str, weights: list[StepWeights], sums: list[str]) -> list[str]:
        t, k, layout = self._t, self._k, self._k.step
        bytes_, f32, i32 = 4 * k.lanes, vector(k.lanes, "f32"), vector(k.lanes, "i32")
        count = layout.numbers // bytes_
        numbers = [t.load(t.step(left, n * bytes_, "i8"), vector(bytes_, "i8"), 4) for n in range(count)]
        scale = t.load(t.step(left, layout.numbers, "i8"), f32, 4)
        behind = t.step(left, layout.numbers + bytes_, "i8")
        start = t.zero("i32", k.lanes) if k.zeros or not self._has_sums else t.load(behind, i32, 4)
        block_sums = t.load(behind, f32, 4) if k.zeros else ""
        found = []
        for read, total in zip(weights, sums, strict=True):
            dots = start
            for weight, number in zip(read.numbers, numbers, strict=True):
                dots = self._dots(weight, number, dots)
            product = convert(t, "i32:sitofp f32", dots, k.lanes)
            if k.zeros:
                shift = t.binary("fmul", read.zero, block_sums, f32)
                product = t.binary("fsub", product, shift, f32)
            factor = t.binary("fmul", read.scale, scale, f32)
            found.append(t.multiply_add(product, factor, total, "f32", k.lanes, fma=k.fma))
        return found

    @property
    def _has_sums(self) -> bool:
        return bool(self._k.raised or FORMATS[self._k.format].middle)

    def _dots(self, weights: str, numbers: str, sums: str) -> str:
        """Append sums of products of bytes: weights of 4 bits, or raised ones, have no sign."""
        t, k = self._t, self._k
        if k.dots == FOUR:
            words = [
                t.op(f"llvm.bitcast {each} : {vector(4 * k.lanes, 'i8')} to {vector(k.lanes, 'i32')}")
                for each in (weights, numbers)
            ]
            return dot_products(t, I8, words[0], words[1], sums, k.lanes)
        width, element = (2 * k.lanes, "i16") if k.dots == TWO else (k.lanes, "i32")
        signed = FORMATS[k.format].bits == 8
        i32 = vector(k.lanes, "i32")
        for first in range(0, 4 * k.lanes, width):
            places = list(range(first, first + width))
            parts = [t.shuffle(each, each, places, vector(4 * k.lanes, "i8")) for each in (weights, numbers)]
            extend = ["sext" if signed else "zext", "sext"]
            left, right = (
                t.op(f"llvm.{how} {part} : {vector(width, 'i8')} to {vector(width, element)}")
                for how, part in zip(extend, parts, strict=True)
            )
            if k.dots == TWO:
                name = "llvm.x86.sse2.pmadd.wd" if k.lanes == 4 else "llvm.x86.avx2.pmadd.wd"
                type_ = vector(width, element)
                product = t.op(f'llvm.call_intrinsic "{name}"({left}, {right}) : ({type_}, {type_}) -> {i32}')
            else:
                product = t.binary("mul", left, right, i32)
            sums = t.binary("add", sums, product, i32)
        return sums

    def _floats(self, left: str, weights: list[StepWeights], sums: list[str]) -> list[str]:
        t, k = self._t, self._k
        f32 = vector(k.lanes, "f32")
        count = len(weights[0].numbers)
        numbers = [t.load(t.step(left, n * k.lanes, "f32"), f32, byte_width("f32")) for n in range(count)]
        found = []
        for read, total in zip(weights, sums, strict=True):
            product = t.binary("fmul", read.numbers[0], numbers[0], f32)
            for weight, number in zip(read.numbers[1:], numbers[1:], strict=True):
                product = t.multiply_add(weight, number, product, "f32", k.lanes, fma=k.fma)
            found.append(t.multiply_add(product, read.scale, total, "f32", k.lanes, fma=k.fma))
        return found
