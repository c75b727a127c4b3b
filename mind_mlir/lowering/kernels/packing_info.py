"""What kernels that pack do besides: words of several terms, and what is stored about these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.kernels.llvm_text import byte_width
from mind_mlir.lowering.kernels.summands import seen, split
from mind_mlir.lowering.kernels.vnni import HIGH, I8, LEAST, NOTHING_SEEN, RAISED, SUMS, WORD, dot_products

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.llvm_function import Text
    from mind_mlir.lowering.kernels.llvm_text import TextValue
    from mind_mlir.lowering.kernels.packing import PackKernel


def vnni_steps(t: Text, kernel: PackKernel) -> TextValue:
    """Append how many words there are in a column."""
    return t["depth"] if kernel.vnni == 1 else t["depth"].blocks(kernel.vnni)


class PackingInfo:
    """Appends what a kernel does besides packing words."""

    def __init__(self, t: Text, kernel: PackKernel) -> None:
        self._t, self._k = t, kernel
        #: What is the least so far, in memory, and what is to be kept there, for each number that is stored.
        self._least: list[TextValue] = []
        self._new: list[list[TextValue]] = [[] for _ in NOTHING_SEEN.get(kernel.info, ())]

    def words(self, terms: list[TextValue]) -> list[TextValue]:
        """Append words of as many terms as they have, one of each summand; else return the terms."""
        if self._k.vnni == 1:
            return terms
        if self._k.summands == 1:
            wide = [each.cast("zext", WORD) for each in terms]
            return [self.seen(_side_by_side(wide, 8 * byte_width(self._k.part)))]
        for each in terms:
            self._note(seen(each))
        halves = zip(*(split(each, self._k.summands) for each in terms), strict=True)
        return [upper | lower >> 16 for lower, upper in halves]

    def seen(self, words: TextValue) -> TextValue:
        """Append what is to be done about a vector of words; return it as it is to be stored."""
        if self._k.info == RAISED:
            return words ^ HIGH
        if self._k.info == LEAST:
            # Less one: that of zero is the greatest of all.
            self._note([(words.cast("bitcast", "i16", 2 * words.lanes) & 0x7FFF) + -1])
        return words

    def _note(self, numbers: list[TextValue]) -> None:
        for new, number in zip(self._new, numbers, strict=True):
            new.append(number)

    def keep(self) -> None:
        """Append what remembers what has been seen, once for several vectors: memory makes it wait."""
        if not any(self._new):
            return
        if not self._least:
            self._least = [self._t.slot(new[0].like(-1)) for new in self._new]
        for place, new in zip(self._least, self._new, strict=True):
            while len(new) > 1:
                new.append(new.pop(0).minimum(new.pop(0)))
            last = new.pop()
            place.store(place.load(last.lanes, alignment=64).minimum(last), alignment=64)
        self._lanes = last.lanes

    def write(self, panels: TextValue) -> None:
        """Append what is stored at the end."""
        t = self._t
        for number, kept in enumerate(self._least):
            value = kept.load(self._lanes, alignment=64).reduced("umin")
            value = value if value.element == WORD else value.cast("zext", WORD)
            place = t.at("target", WORD) + t["info_first"] + number
            t.op(f"llvm.atomicrmw umin {place}, {value} monotonic : !llvm.ptr, {WORD}", WORD)
        if self._k.info == SUMS:
            self._write_sums(panels)

    def _write_sums(self, panels: TextValue) -> None:
        """Append -128 times the sum of each column, panel after panel."""
        t, k = self._t, self._k
        firsts = range(0, k.columns, k.lanes)
        zero = t.constant(0, WORD, k.lanes)
        packed, info = t.begin("target", WORD), t.at("target", WORD) + t["info_first"]
        with t.loop(panels, packed, info) as (panel, (packed, info)):
            with t.loop(vnni_steps(t, k), packed, *[zero] * len(firsts)) as (step, (here, *before)):
                sums = [
                    dot_products(t, I8, zero.like(HIGH), (here + first).load(k.lanes), each)
                    for first, each in zip(firsts, before, strict=True)
                ]
                step.next(here + k.columns, *sums)
            for first, each in zip(firsts, sums, strict=True):
                place = info + first
                place.store(zero - each)
            panel.next(packed + t["panel"], info + k.columns)


def _side_by_side(terms: list[TextValue], bits: int) -> TextValue:
    """Append words of terms, of so many bits each."""
    word, *others = terms
    for number, term in enumerate(others, 1):
        word = word | term << bits * number
    return word
