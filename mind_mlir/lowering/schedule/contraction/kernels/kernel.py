"""What all micro-kernels have: a name that says all that they depend on, and what their bodies share."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar

from mind_mlir.lowering.schedule.contraction.kernels.llvm_function import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import TextValue
    from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel


class MicroKernel:
    """A function that modules call, as a frozen dataclass of flags, integers and strings.

    Attributes:
        kind: What it does, in a word.
        buffers: The names of its pointers.
        numbers: Those of its integers, behind these: offsets, extents and strides, in elements if nothing
            else is said. ``x_first`` is where buffer ``x`` begins.
        ones: Those of them that are 1 where a call does not say anything else. Others are 0.
        adds: Whether it is given what sums start from, and whether to add to the result.
        element: The type of accumulators and results.
    """

    kind: ClassVar[str]
    buffers: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]
    ones: ClassVar[tuple[str, ...]] = ()
    adds: ClassVar[bool] = False
    element: str

    @property
    def name(self) -> str:
        """The symbol of the function."""
        parts = []
        for name, value in dataclasses.asdict(self).items():  # type: ignore[call-overload]  # a dataclass
            if value is not False:
                parts.append(name if value is True else str(value))
        return symbol(self.kind, parts)

    def append(self, t: Text) -> None:
        """Append the body of the function."""
        raise NotImplementedError

    def text(self) -> str:
        """Return the function in the LLVM dialect."""
        return _text(self)


@functools.cache
def _text(kernel: MicroKernel) -> str:
    t = Text()
    kernel.append(t)
    start = kernel.element if kernel.adds else ""
    return t.function(kernel.name, kernel.buffers, kernel.numbers, start=start)


def symbol(kind: str, parts: list[str]) -> str:
    """Return the symbol of a kernel that depends on ``parts``."""
    spelled = (part.replace(":", "_").replace(" ", "_").replace("-", "m") for part in parts)
    return "_".join(("mind", kind, *spelled))


def sum_of_lanes(vectors: Sequence[TextValue]) -> TextValue:
    """Append the sum of all lanes of ``vectors``, pair by pair."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        vectors = [one + other for one, other in zip(vectors[:half], vectors[half:], strict=True)]
    return vectors[0].lane_sum()


def add_where(t: Text, place: TextValue, total: TextValue, start: TextValue, mask: TextValue) -> None:
    """Append the lanes of a sum that are on, added to those in memory if ``%adds``, else to ``start``."""
    old = place.load(total.lanes, mask, off=start)
    place.store(t.adds.select(old, start) + total, mask)


def store_sums(t: Text, sums: Sequence[tuple[TextValue, TextValue]], start: TextValue) -> None:
    """Append places and sums: each sum is added to what is there if ``%adds``, else to ``start``."""
    for adds in t.branches(t.adds):
        for place, total in sums:
            place.store((place.load(total.lanes) if adds else start) + total)


def along(
    t: Text, columns: TextValue, lanes: int, *, masks: bool
) -> Iterator[tuple[TextValue, int, TextValue | None]]:
    """Append loops over ``columns``: yields a first column, how many lanes, and a mask of these.

    Those are the lanes of a vector, or none for a single column: those at the end, without masks.
    """
    whole = columns // lanes
    with t.loop_if_any(whole) as loop:
        yield loop.number * lanes, lanes, None
    done = whole * lanes
    rest = columns - done
    if masks:
        mask = rest.mask(0, lanes)
        with t.when(rest.compare("ne", 0)):
            yield done, lanes, mask
    else:
        with t.loop_if_any(rest) as loop:
            yield done + loop.number * 1, 0, None


def along_panels(
    t: Text, kernel: PackKernel, count: TextValue, rows: Sequence[TextValue], target: TextValue
) -> Iterator[tuple[list[TextValue], TextValue, TextValue | None]]:
    """Append a loop over the panels of a step, or of a word, which is made of ``rows`` of the source.

    Yields where rows of a panel are, where it goes, and how many columns there are if not all are.
    """
    with t.loop(count, *rows, target, t["columns"]) as loop:
        *here, there, live = loop.inside
        for whole in t.branches(live.compare("uge", kernel.columns)):
            yield here, there, None if whole else live
        after = [row + kernel.columns for row in here]
        loop.next(*after, there + t["panel"], live - kernel.columns)
