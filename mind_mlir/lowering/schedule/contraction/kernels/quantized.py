"""The micro-kernel of products with weights of few bits, a few rows of activations at a time.

Weights are read once, from one end to the other, as they lie, and each step of blocks is made numbers in
registers: for all rows of activations, which `activations` has arranged.
"""

from __future__ import annotations

import dataclasses
import functools

from mind_mlir.lowering.schedule.contraction.kernels.activations import Step, symbol
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, convert, vector
from mind_mlir.lowering.schedule.contraction.kernels.quantized_weights import (
    Reading,
    StepWeights,
    Weights,
    raised_by,
)
from mind_mlir.lowering.schedule.contraction.kernels.vnni import I8, dot_products
from mind_mlir.ops.quantized_formats import FORMATS

#: The arguments behind the five buffers: where they begin and how far rows are apart, in bytes for
#: activations and weights, else in elements.
QUANTIZED_ARGUMENTS = (
    *("left_first", "weights_first", "scales_first", "zeros_first", "out_first", "columns", "apart"),
    *("rest", "behind", "steps", "left_row", "weights_row", "scales_row", "zeros_row", "out_row"),
)
#: The buffers.
QUANTIZED_BUFFERS = ("left", "weights", "scales", "zeros", "out")

#: How bytes are multiplied: by an instruction that adds four products, by one that adds two of 16 bits, or by
#: multiplications of 32 bits.
FOUR, TWO, ONE = "four", "two", "one"
#: Steps that one accumulator sums.
_STEPS = 256


@dataclasses.dataclass(frozen=True)
class QuantizedKernel:
    """``out[i, j] = sum over k of left[i, k] * weight[j, k]``, some columns at a time, for all rows.

    Columns side by side are ``apart`` columns from each other, so that each is read on and on: ``columns`` of
    them one after another. Then come ``rest`` single ones, ``behind`` columns from the first.

    Attributes:
        format: The format of the weights.
        rows: All rows.
        columns: Columns side by side.
        lanes: Elements of f32 in a vector.
        blocks: Blocks in a step.
        rest: Blocks behind the last whole step.
        integers: Whether activations are integers of 8 bits.
        group: Blocks in a group, where scales are a tensor of their own.
        scale: The type of scales in memory, and conversions to f32.
        zeros: Whether there are zero points.
        weight: Conversions of weights that are floats.
        dots: How bytes are multiplied.
        fma: Whether products are fused with their addition.
        ahead: How many bytes ahead memory is asked for, if it is.
    """

    format: str
    rows: int
    columns: int
    lanes: int
    blocks: int
    rest: int
    integers: bool
    group: int
    scale: str
    zeros: bool
    weight: str
    dots: str
    fma: bool
    ahead: int = 0

    @property
    def name(self) -> str:
        """The symbol of the function."""
        return symbol("quantized", self)

    @property
    def step(self) -> Step:
        """Return what is read of activations at once."""
        return Step(self.lanes, self.blocks, self.integers)

    @property
    def raised(self) -> int:
        """Return what is added to the numbers that bytes hold: the first of `dots` takes them unsigned."""
        return raised_by(self.format) if self.dots == FOUR else 0

    @property
    def reading(self) -> Reading:
        """Return how a step of weights is read."""
        return Reading(
            format=self.format,
            lanes=self.lanes,
            blocks=self.blocks,
            integers=self.integers,
            group=self.group,
            scale=self.scale,
            zeros=self.zeros,
            weight=self.weight,
            raised=self.raised,
            ahead=self.ahead,
        )

    def text(self) -> str:
        """Return the function in the LLVM dialect."""
        return _text(self)


@functools.cache
def _text(kernel: QuantizedKernel) -> str:
    t = Text()
    weights = Weights(t, kernel.reading)
    product = _Product(t, kernel)
    left = t.step("%left", "%left_first", "i8")
    lefts = [t.step(left, t.mul("%left_row", t.number(row)), "i8") for row in range(kernel.rows)]
    out, start = t.step("%out", "%out_first", "f32"), weights.start()
    size, lanes = t.number(kernel.step.bytes), kernel.lanes

    def columns(here: list[str], there: str, count: int, apart: str) -> None:
        """Append the products of ``count`` columns, so far apart."""
        places = [t.mul(apart, t.number(column)) for column in range(count)]
        rows = [weights.after(here, place) for place in places]
        zero = t.zero("f32", lanes)

        def some(first: str, steps: str, sums: list[str]) -> list[str]:
            def step(number: str, inside: list[str]) -> list[str]:
                place = t.add(first, number)
                offset = t.mul(place, size)
                read = [weights.step(row, place, kernel.blocks) for row in rows]
                return product.added([t.step(each, offset, "i8") for each in lefts], read, inside)

            return t.loop(steps, [(each, vector(lanes, "f32")) for each in sums], step)

        def stretch(number: str, inside: list[str]) -> list[str]:
            first = t.mul(number, t.number(_STEPS))
            steps = t.minimum(t.binary("sub", "%steps", first), t.number(_STEPS))
            found = some(first, steps, [zero] * len(inside))
            return [t.sum(total, each, "f32", lanes) for total, each in zip(inside, found, strict=True)]

        totals = [(zero, vector(lanes, "f32"))] * (kernel.rows * count)
        sums = t.loop(
            t.binary("udiv", t.add("%steps", t.number(_STEPS - 1)), t.number(_STEPS)), totals, stretch
        )
        if kernel.rest:
            offset = t.mul("%steps", size)
            read = [weights.step(row, "%steps", kernel.rest) for row in rows]
            sums = product.added([t.step(each, offset, "i8") for each in lefts], read, sums)
        for place, total in enumerate(sums):
            row, column = divmod(place, count)
            target = t.step(t.step(there, t.mul("%out_row", t.number(row)), "f32"), places[column], "f32")
            t.store(_total(t, total, lanes), target, "f32", 4)

    def group(inside: list[str], count: int, apart: str) -> list[str]:
        *here, there = inside
        columns(here, there, count, apart)
        return [*weights.after(here, 1), t.step(there, 1, "f32")]

    def several(number: str, here: list[str], there: str, count: int) -> None:
        carried = [(each, "!llvm.ptr") for each in (*here, there)]
        t.either(
            t.compare("ne", number, t.number(0)),
            lambda: t.loop(number, carried, lambda _, inside: group(inside, count, "%apart")),
        )

    several("%columns", start, out, kernel.columns)
    if kernel.columns > 1:
        several("%rest", weights.after(start, "%behind"), t.step(out, "%behind", "f32"), 1)
    return t.function(kernel.name, QUANTIZED_BUFFERS, QUANTIZED_ARGUMENTS)


class _Product:
    """Appends the products of one step."""

    def __init__(self, t: Text, kernel: QuantizedKernel) -> None:
        self._t, self._k = t, kernel

    def added(self, lefts: list[str], weights: list[StepWeights], sums: list[str]) -> list[str]:
        """Append ``sums``, row by row, plus the products of a step."""
        found = []
        for row, left in enumerate(lefts):
            some = sums[row * len(weights) : (row + 1) * len(weights)]
            found += (
                self._integers(left, weights, some) if self._k.integers else self._floats(left, weights, some)
            )
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


def _total(t: Text, value: str, lanes: int) -> str:
    """Append the sum of the lanes of a vector, pair by pair."""
    while lanes > 1:
        type_, half = vector(lanes, "f32"), lanes // 2
        halves = [t.shuffle(value, value, list(range(first, first + half)), type_) for first in (0, half)]
        lanes = half
        value = t.sum(halves[0], halves[1], "f32", lanes)
    return t.op(f"llvm.extractelement {value}[{t.number(0)} : i64] : {vector(1, 'f32')}")
