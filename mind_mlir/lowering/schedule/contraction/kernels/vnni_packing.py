"""VNNI packing: several terms of a sum side by side in words, for instructions that multiply all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, vector
from mind_mlir.lowering.schedule.contraction.kernels.vnni import (
    I8,
    LEAST,
    RAISED,
    SUMS,
    WORD,
    dot_products,
    least,
    magnitudes,
)

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel


def append_vnni_packing(t: Text, kernel: PackKernel) -> None:
    """Append what packs a factor whose columns are contiguous: steps side by side into words."""
    info = PackingInfo(t, kernel)
    stored = kernel.source.split(":")[0]
    lanes, bits = kernel.lanes, 8 * byte_width(kernel.part)
    narrow, words = (vector(lanes, each) for each in (kernel.part, WORD))
    width, vnni = t.number(kernel.columns), t.number(kernel.vnni)
    source, target = t.step("%source", "%source_first", stored), t.step("%target", "%target_first", WORD)
    panels = t.binary("udiv", t.add("%columns", t.number(kernel.columns - 1)), width)
    last = t.binary("sub", "%depth", t.number(1))

    def word(rows: list[tuple[str, str]], mask: str | None, first: int) -> str:
        """Append words of the elements of some rows, of which those past the last one are zeros."""
        found = ""
        for place, (row, is_there) in enumerate(rows):
            value = t.read(t.step(row, first, stored), kernel.source, lanes, mask)
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

    def panel(flags: list[str], inside: list[str]) -> list[str]:
        *rows, there, live = inside
        flagged = list(zip(rows, flags, strict=True))
        t.either(
            t.compare("uge", live, width),
            lambda: vectors(flagged, there, None),
            lambda: vectors(flagged, there, live),
        )
        return [
            *(t.step(row, kernel.columns, stored) for row in rows),
            t.step(there, "%panel", WORD),
            t.binary("sub", live, width),
        ]

    def step(number: str, inside: list[str]) -> list[str]:
        first = t.mul(number, vnni)
        numbers = [t.add(first, t.number(place)) for place in range(kernel.vnni)]
        flags = [t.compare("ult", each, "%depth") for each in numbers]
        rows = [t.step(source, t.mul(t.minimum(each, last), "%stride"), stored) for each in numbers]
        carried = [*((row, "!llvm.ptr") for row in rows), (inside[0], "!llvm.ptr"), ("%columns", "i64")]
        t.loop(panels, carried, lambda _, inner: panel(flags, inner))
        return [t.step(inside[0], kernel.columns, WORD)]

    t.loop(vnni_steps(t, kernel), [(target, "!llvm.ptr")], step)
    info.write(panels)


def vnni_steps(t: Text, kernel: PackKernel) -> str:
    """Append how many words there are in a column."""
    if kernel.vnni == 1:
        return "%depth"
    return t.binary("udiv", t.add("%depth", t.number(kernel.vnni - 1)), t.number(kernel.vnni))


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

        def panel(inside: list[str]) -> list[str]:
            here, there = inside
            carried = [(here, "!llvm.ptr"), *((zero, type_) for _ in firsts)]
            _, *sums = t.loop(vnni_steps(t, self._kernel), carried, lambda _, inner: step(inner))
            for first, each in zip(firsts, sums, strict=True):
                place = t.step(there, first, WORD)
                t.store(t.binary("sub", zero, each, type_), place, type_, byte_width(WORD))
            return [t.step(here, "%panel", WORD), t.step(there, columns, WORD)]

        packed, info = (t.step("%target", f"%{name}_first", WORD) for name in ("target", "info"))
        t.loop(panels, [(packed, "!llvm.ptr"), (info, "!llvm.ptr")], lambda _, inside: panel(inside))
