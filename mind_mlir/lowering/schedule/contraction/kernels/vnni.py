"""Instructions that add several products of narrow factors to one accumulator, and packing for them.

Factors are words of 32 bits, which hold as many consecutive terms of a sum, the first one lowest. Of terms
that are not there, words hold zeros.

The instruction for bf16 takes subnormal numbers for zeros, and gives zeros for them. So it is called only
where there are none on the way, which is known once factors are packed: each kernel that packs stores the
least magnitude of a number other than zero (`LEAST`). Elsewhere the same words are converted to f32. Both
round after each product, the upper one of a pair first: where both may be called, results are the same bits.

The instruction for bytes takes one factor as unsigned. It is given 128 more than the number, and sums start
from -128 times the sum of the other factor (`SUMS`). Integers wrap around, so that is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import (
    Moving,
    along_panels,
    begin,
    count_of,
    stored,
    walk,
)
from mind_mlir.mlir.bindings import Value, arith, ir

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel


#: The type of words.
WORD = "i32"

#: Kinds of dot products: pairs of bf16, the same by conversion to f32, pairs of i16, and four bytes each.
BF16, WIDENED, I16, I8 = "bf16", "widened", "i16", "i8"

#: What a kernel that packs does besides: it stores the least magnitude, or -128 times the sums of columns, or
#: adds 128 to each byte.
LEAST, SUMS, RAISED = "least", "sums", "raised"

#: Intrinsics by kind, without their width, and the elements of their factors.
_INTRINSICS = {
    BF16: ("llvm.x86.avx512bf16.dpbf16ps", "bf16", 2),
    I16: ("llvm.x86.avx512.vpdpwssd", "i16", 2),
    I8: ("llvm.x86.avx512.vpdpbusd", "i8", 4),
}

#: The least magnitude of a factor that is all zeros: more than any magnitude less one.
NO_MAGNITUDE = 0xFFFF
#: Bits of the significand of a bf16 in memory.
_MANTISSA = 7
#: Products of numbers whose exponents, as stored, add up to so much are multiples of the least normal f32,
#: 2**-126, and so are their sums: a bf16 is a multiple of its power of two over 2**7.
_LEAST_EXPONENTS = 2 * (127 + _MANTISSA) - 126


def dot_products(t: Text, kind: str, left: str, right: str, sums: str, lanes: int) -> str:
    """Append the accumulators ``sums`` plus the dot products of the words of two vectors."""
    words, floats = vector(lanes, WORD), vector(lanes, "f32")
    if kind == WIDENED:
        for half in (_upper, _lower):
            factors = [
                t.op(f"llvm.bitcast {half(t, each, words)} : {words} to {floats}") for each in (left, right)
            ]
            operands = ", ".join((*factors, sums))
            sums = t.op(f"llvm.intr.fma({operands}) : ({floats}, {floats}, {floats}) -> {floats}")
        return sums
    name, element, vnni = _INTRINSICS[kind]
    narrow = vector(vnni * lanes, element)
    factors = [t.op(f"llvm.bitcast {each} : {words} to {narrow}") for each in (left, right)]
    result = floats if kind == BF16 else words
    return t.op(
        f'llvm.call_intrinsic "{name}.{32 * lanes}"({", ".join((sums, *factors))})'
        f" : ({result}, {narrow}, {narrow}) -> {result}"
    )


def _upper(t: Text, word: str, type_: str) -> str:
    return t.binary("and", word, t.constant(f"dense<{-1 << 16}>", type_), type_)


def _lower(t: Text, word: str, type_: str) -> str:
    return t.binary("shl", word, t.constant("dense<16>", type_), type_)


def magnitudes(t: Text, words: str, lanes: int) -> str:
    """Append the magnitudes, less one, of words of bf16: zero less one is the greatest number of all."""
    type_ = vector(2 * lanes, "i16")
    halves = t.op(f"llvm.bitcast {words} : {vector(lanes, WORD)} to {type_}")
    magnitude = t.binary("and", halves, t.constant(f"dense<{0x7FFF}>", type_), type_)
    return t.binary("add", magnitude, t.constant("dense<-1>", type_), type_)


def least(t: Text, left: str, right: str, lanes: int) -> str:
    """Append the lesser of `magnitudes`."""
    type_ = vector(2 * lanes, "i16")
    return t.op(f"llvm.intr.umin({left}, {right}) : ({type_}, {type_}) -> {type_}")


def are_normal(left: Value, right: Value) -> Value:
    """Emit whether no product of two bf16, nor any sum of products, is subnormal, and neither is a factor.

    Args:
        left: The packing info of one factor, an i32.
        right: That of the other one.
    """

    def at_least(value: Value, least: int) -> Value:
        limit = arith.ConstantOp(value.type, ir.IntegerAttr.get(value.type, least)).result
        return arith.CmpIOp(arith.CmpIPredicate.uge, value, limit).result

    def exponent(info: Value) -> Value:
        shift = arith.ConstantOp(info.type, ir.IntegerAttr.get(info.type, _MANTISSA)).result
        return arith.ShRUIOp(info, shift).result

    exponents = [exponent(info) for info in (left, right)]
    both = arith.AndIOp(*(at_least(each, 1) for each in exponents)).result
    return arith.AndIOp(both, at_least(arith.AddIOp(*exponents).result, _LEAST_EXPONENTS)).result


def append_vnni_packing(t: Text, kernel: PackKernel) -> None:
    """Append what packs a factor whose columns are contiguous: steps side by side into words."""
    info = PackingInfo(t, kernel)
    source_type, lanes, bits = stored(kernel.source), kernel.lanes, 8 * byte_width(kernel.part)
    narrow, words = (vector(lanes, each) for each in (kernel.part, WORD))
    source, target = begin(t, "source", source_type), begin(t, "target", WORD)
    panels = count_of(t, "%columns", kernel.columns)
    last = t.binary("sub", "%depth", t.number(1))

    def word(rows: list[tuple[str, str]], mask: str | None, first: int) -> str:
        """Append words of the elements of some rows, of which those past the last one are zeros."""
        found = ""
        for place, (row, is_there) in enumerate(rows):
            value = t.read(t.step(row, first, source_type), kernel.source, lanes, mask)
            if place:
                value = t.select(is_there, value, t.constant("dense<0>", narrow), narrow)
            value = t.op(f"llvm.zext {value} : {narrow} to {words}")
            if place:
                shifted = t.binary("shl", value, t.constant(f"dense<{place * bits}>", words), words)
                value = t.binary("or", found, shifted, words)
            found = value
        return found

    def vectors(rows: list[tuple[str, str]], there: str, live: str | None) -> None:
        for first in range(0, kernel.columns, lanes):
            mask = None if live is None else t.mask(live, first, lanes)
            value = info.seen(word(rows, mask, first), lanes)
            t.store(value, t.step(there, first, WORD), words, byte_width(WORD))
        info.keep()

    def step(number: str, there: str) -> None:
        first = t.mul(number, t.number(kernel.vnni))
        numbers = [t.add(first, t.number(place)) for place in range(kernel.vnni)]
        flags = [t.compare("ult", each, "%depth") for each in numbers]
        rows = [t.step(source, t.mul(t.minimum(each, last), "%stride"), source_type) for each in numbers]

        def write(rows: list[str], there: str, live: str | None) -> None:
            vectors(list(zip(rows, flags, strict=True)), there, live)

        along_panels(t, kernel, panels, rows, there, write)

    walk(t, vnni_steps(t, kernel), [Moving(target, kernel.columns, WORD)], step)
    info.write(panels)


def vnni_steps(t: Text, kernel: PackKernel) -> str:
    """Append how many words there are in a column."""
    if kernel.vnni == 1:
        return "%depth"
    return count_of(t, "%depth", kernel.vnni)


class PackingInfo:
    """Appends what a kernel does besides packing words."""

    def __init__(self, t: Text, kernel: PackKernel) -> None:
        self._t = t
        self._kernel = kernel
        #: Least magnitudes so far, in memory, and those that are to be kept there; as many as words have.
        self._least = ""
        self._new: list[str] = []
        self._lanes = 0

    def seen(self, words: str, lanes: int) -> str:
        """Append what is to be done about a vector of words; return it as it is to be stored."""
        t, type_ = self._t, vector(lanes, WORD)
        if self._kernel.info == RAISED:
            high = t.constant(f"dense<{0x80808080 - (1 << 32)}>", type_)
            return t.binary("xor", words, high, type_)
        if self._kernel.info == LEAST:
            self._lanes = lanes
            self._new.append(magnitudes(t, words, lanes))
        return words

    def keep(self) -> None:
        """Append what remembers what has been seen, once for several vectors: memory makes it wait."""
        if not self._new:
            return
        t, type_ = self._t, vector(2 * self._lanes, "i16")
        self._least = self._least or t.slot(type_, "dense<-1>")
        while len(self._new) > 1:
            first, second, *rest = self._new
            self._new = [*rest, least(t, first, second, self._lanes)]
        kept = least(t, t.load(self._least, type_, 64), self._new.pop(), self._lanes)
        t.store(kept, self._least, type_, 64)

    def write(self, panels: str) -> None:
        """Append what is stored at the end."""
        if self._kernel.info == LEAST:
            self._write_least()
        if self._kernel.info == SUMS:
            self._write_sums(panels)

    def _write_least(self) -> None:
        t = self._t
        type_ = vector(2 * self._lanes, "i16")
        value = t.load(self._least, type_, 64)
        value = t.op(f'llvm.call_intrinsic "llvm.vector.reduce.umin"({value}) : ({type_}) -> i16')
        value = t.op(f"llvm.zext {value} : i16 to {WORD}")
        place = t.step("%target", "%info_first", WORD)
        t.op(f"llvm.atomicrmw umin {place}, {value} monotonic : !llvm.ptr, {WORD}")

    def _write_sums(self, panels: str) -> None:
        """Append -128 times the sum of each column, panel after panel."""
        t, lanes, columns = self._t, self._kernel.lanes, self._kernel.columns
        type_ = vector(lanes, WORD)
        firsts = range(0, columns, lanes)
        zero = t.constant("dense<0>", type_)
        factor = t.constant(f"dense<{0x80808080 - (1 << 32)}>", type_)  # 128, unsigned

        def step(inside: list[str]) -> list[str]:
            here, *sums = inside
            found = [
                dot_products(
                    t, I8, factor, t.load(t.step(here, first, WORD), type_, byte_width(WORD)), each, lanes
                )
                for first, each in zip(firsts, sums, strict=True)
            ]
            return [t.step(here, columns, WORD), *found]

        def panel(_: str, here: str, there: str) -> None:
            carried = [(here, "!llvm.ptr"), *((zero, type_) for _ in firsts)]
            _, *sums = t.loop(vnni_steps(t, self._kernel), carried, lambda _, inner: step(inner))
            for first, each in zip(firsts, sums, strict=True):
                place = t.step(there, first, WORD)
                t.store(t.binary("sub", zero, each, type_), place, type_, byte_width(WORD))

        moving = [
            Moving(begin(t, "target", WORD), "%panel", WORD),
            Moving(t.step("%target", "%info_first", WORD), columns, WORD),
        ]
        walk(t, panels, moving, panel)
