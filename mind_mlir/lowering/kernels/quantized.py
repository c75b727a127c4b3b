"""The micro-kernel of products with weights of few bits, a few rows of activations at a time.

Weights are read once, from one end to the other, as they lie, and each step of blocks is made numbers in
registers: for all rows of activations, which `activations` has arranged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.kernels.activations import Step
from mind_mlir.lowering.kernels.quantized_weights import StepWeights, WeightKernel, Weights
from mind_mlir.lowering.kernels.vnni import I8, dot_products
from mind_mlir.ops.quantized_formats import FORMATS
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_function import Text
    from mind_mlir.lowering.kernels.llvm_text import TextValue

#: How bytes are multiplied: by an instruction that adds four products, by one that adds two of 16 bits, or by
#: multiplications of 32 bits.
FOUR, TWO, ONE = "four", "two", "one"
#: Steps that one accumulator sums.
_STEPS = 256


@dataclass(frozen=True)
class QuantizedKernel(WeightKernel):
    """``out[i, j] = sum over k of left[i, k] * weight[j, k]``, some columns at a time, for all rows.

    Columns side by side are ``apart`` columns from each other, so that each is read on and on: ``columns`` of
    them one after another. Then come ``rest`` single ones, ``behind`` columns from the first.

    Attributes:
        columns: Columns side by side.
        rest: Blocks behind the last whole step.
        dots: How bytes are multiplied.
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
        *("columns", "apart", "rest", "behind", "steps"),
        *("left_row", "weights_row", "scales_row", "zeros_row", "out_row"),
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
        left = t.begin("left", "i8")
        self._lefts = [left + t["left_row"] * row for row in range(kernel.rows)]

    def append(self) -> None:
        """Append all columns."""
        t, k = self._t, self._k
        out, start = t.begin("out", "f32"), self._weights.start()
        self._several(t["columns"], start, out, k.columns)
        if k.columns > 1:
            behind = self._weights.after(start, t["behind"])
            self._several(t["rest"], behind, out + t["behind"], 1)

    def _several(self, number: TextValue, first: list[TextValue], out: TextValue, count: int) -> None:
        """Append ``number`` times ``count`` columns, ``%apart`` from each other."""
        with self._t.loop_if_any(number, *first, out) as (group, (*here, there)):
            self._columns(here, there, count)
            group.next(*self._weights.after(here, 1), there + 1)

    def _columns(self, here: list[TextValue], there: TextValue, count: int) -> None:
        t, k = self._t, self._k
        places = [t["apart"] * column for column in range(count)]
        rows = [self._weights.after(here, place) for place in places]
        zeros = [t.constant(0, "f32", k.lanes)] * (k.rows * count)
        with t.loop(t["steps"].blocks(_STEPS), *zeros) as (stretch, totals):
            first = stretch.number * _STEPS
            with t.loop((t["steps"] - first).minimum(_STEPS), *zeros) as (step, inside):
                some = self._step(rows, first + step.number, k.blocks, inside)
                step.next(*some)
            sums = [total + each for total, each in zip(totals, some, strict=True)]
            stretch.next(*sums)
        if k.rest:
            sums = self._step(rows, t["steps"], k.rest, sums)
        for place, total in enumerate(sums):
            row, column = divmod(place, count)
            target = there + t["out_row"] * row + places[column]
            target.store(total.lane_sum())

    def _step(
        self, rows: list[list[TextValue]], place: TextValue, live: int, sums: list[TextValue]
    ) -> list[TextValue]:
        """Append ``sums``, row by row of activations, plus the products of step ``place``."""
        offset = place * self._k.step.bytes
        weights = [self._weights.step(row, place, live) for row in rows]
        added = self._integers if self._k.integers else self._floats
        found: list[TextValue] = []
        for row, left in enumerate([each + offset for each in self._lefts]):
            found += added(left, weights, sums[row * len(weights) : (row + 1) * len(weights)])
        return found

    def _integers(
        self, left: TextValue, weights: list[StepWeights], sums: list[TextValue]
    ) -> list[TextValue]:
        k, layout = self._k, self._k.step
        width = 4 * k.lanes
        numbers = [(left + first).load(width, alignment=4) for first in range(0, layout.numbers, width)]
        scale = (left + layout.numbers).load(k.lanes, element="f32")
        behind = left + (layout.numbers + width)
        has_sums = bool(k.raised or FORMATS[k.format].middle) and not k.zeros
        start = behind.load(k.lanes, element="i32") if has_sums else self._t.constant(0, "i32", k.lanes)
        block_sums = behind.load(k.lanes, element="f32") if k.zeros else None
        found = []
        for read, total in zip(weights, sums, strict=True):
            dots = start
            for weight, number in zip(read.numbers, numbers, strict=True):
                dots = self._dots(weight, number, dots)
            product = dots.cast("sitofp", "f32")
            if read.zero is not None and block_sums is not None:
                product = product - read.zero * block_sums
            factor = read.scale * scale
            found.append(product.multiply_add(factor, total, fma=k.fma))
        return found

    def _dots(self, weights: TextValue, numbers: TextValue, sums: TextValue) -> TextValue:
        """Append sums of products of bytes: weights of 4 bits, or raised ones, have no sign."""
        t, k = self._t, self._k
        if k.dots == FOUR:
            words = [each.cast("bitcast", "i32", k.lanes) for each in (weights, numbers)]
            return dot_products(t, I8, words[0], words[1], sums)
        width, element = (2 * k.lanes, "i16") if k.dots == TWO else (k.lanes, "i32")
        how = "sext" if FORMATS[k.format].bits == 8 else "zext"
        for first in range(0, 4 * k.lanes, width):
            parts = [each.part(first, width) for each in (weights, numbers)]
            left, right = parts[0].cast(how, element), parts[1].cast("sext", element)
            if k.dots == TWO:
                name = "llvm.x86.sse2.pmadd.wd" if k.lanes == 4 else "llvm.x86.avx2.pmadd.wd"
                product = t.call(name, [left, right], "i32", k.lanes)
            else:
                product = left * right
            sums = sums + product
        return sums

    def _floats(self, left: TextValue, weights: list[StepWeights], sums: list[TextValue]) -> list[TextValue]:
        k = self._k
        count = len(weights[0].numbers)
        numbers = [(left + 4 * k.lanes * n).load(k.lanes, element="f32") for n in range(count)]
        found = []
        for read, total in zip(weights, sums, strict=True):
            product = read.numbers[0] * numbers[0]
            for weight, number in zip(read.numbers[1:], numbers[1:], strict=True):
                product = weight.multiply_add(number, product, fma=k.fma)
            found.append(product.multiply_add(read.scale, total, fma=k.fma))
        return found
