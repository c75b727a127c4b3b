"""What the bodies of kernels have in common: where factors lie, loops that go along them, sums and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel


def stored(conversions: str) -> str:
    """Return the type in memory of elements with ``conversions``, as `llvm_text.convert` takes them."""
    return conversions.split(":", maxsplit=1)[0]


def begin(t: Text, name: str, element: str) -> str:
    """Append where buffer ``name``, of elements as they are in memory, begins."""
    return t.step(f"%{name}", f"%{name}_first", element)


def rows_of(t: Text, first: str, stride: str, count: int, element: str) -> list[str]:
    """Append where ``count`` rows begin that are ``stride`` elements apart."""
    return [t.step(first, t.mul(stride, t.number(row)), element) for row in range(count)]


def count_of(t: Text, extent: str, size: int) -> str:
    """Append how many blocks of ``size`` it takes to cover ``extent``."""
    return t.binary("udiv", t.add(extent, t.number(size - 1)), t.number(size))


class Moving(NamedTuple):
    """A pointer that a loop moves: where it is at first, by how many elements it moves, and of which type."""

    pointer: str
    by: str | int | Callable[[], str]
    element: str

    def after(self, t: Text, pointer: str) -> str:
        """Append where it is after an iteration in which it is at ``pointer``."""
        return t.step(pointer, self.by() if callable(self.by) else self.by, self.element)


def walk(t: Text, count: str, moving: Sequence[Moving], body: Callable[..., object]) -> list[str]:
    """Append a loop of ``count`` iterations, one or more; return where its pointers are behind it.

    Args:
        t: The kernel.
        count: An i64.
        moving: What it moves.
        body: Appends an iteration, given its number and the pointers.
    """

    def iteration(number: str, inside: list[str]) -> list[str]:
        body(number, *inside)
        return [each.after(t, pointer) for each, pointer in zip(moving, inside, strict=True)]

    return t.loop(count, [(each.pointer, "!llvm.ptr") for each in moving], iteration)


def if_any(t: Text, count: str, body: Callable[[], object]) -> None:
    """Append ``body`` where ``count`` is not zero: loops have one iteration or more."""
    t.either(t.compare("ne", count, t.number(0)), body)


def lane_sum(t: Text, vectors: Sequence[str], element: str, lanes: int) -> str:
    """Append the sum of all lanes of ``vectors``, pair by pair."""
    found = list(vectors)
    while len(found) > 1:
        half = len(found) // 2
        found = [
            t.sum(one, other, element, lanes) for one, other in zip(found[:half], found[half:], strict=True)
        ]
    value = found[0]
    while lanes > 1:
        type_, half = vector(lanes, element), lanes // 2
        halves = [t.shuffle(value, value, list(range(first, first + half)), type_) for first in (0, half)]
        lanes = half
        value = t.sum(halves[0], halves[1], element, lanes)
    return t.op(f"llvm.extractelement {value}[{t.number(0)} : i64] : {vector(1, element)}")


def add_where(t: Text, place: str, total: str, start: str, mask: str, lanes: int, element: str) -> None:
    """Append the lanes of a sum that are on, added to those in memory if ``%adds``, else to ``start``."""
    type_ = vector(lanes, element)
    old = t.masked_load(place, mask, start, lanes, element)
    old = t.select("%adds", old, start, type_)
    t.masked_store(t.sum(old, total, element, lanes), place, mask, lanes, element)


def along(
    t: Text,
    columns: str,
    lanes: int,
    body: Callable[[str, int, str | None], None],
    *,
    masks: bool,
) -> None:
    """Append loops over ``columns``: ``body`` is given a first column, how many lanes, and a mask of these.

    Those are the lanes of a vector, or none for a single column: those at the end, without masks.
    """

    def some(count: str, first: str | None, width: int, lanes: int) -> None:
        def one(number: str) -> None:
            offset = t.mul(number, t.number(width))
            body(offset if first is None else t.add(first, offset), lanes, None)

        if_any(t, count, lambda: walk(t, count, (), one))

    whole = t.binary("udiv", columns, t.number(lanes))
    some(whole, None, lanes, lanes)
    done = t.mul(whole, t.number(lanes))
    rest = t.binary("sub", columns, done)
    if masks:
        mask = t.mask(rest, 0, lanes)
        if_any(t, rest, lambda: body(done, lanes, mask))
    else:
        some(rest, done, 1, 0)


def store_sum(t: Text, sums: Sequence[tuple[str, str]], start: str, lanes: int, element: str) -> None:
    """Append places and sums: each sum is added to what is there if ``%adds``, else to ``start``."""
    type_, width = vector(lanes, element), byte_width(element)

    def store(*, adds: bool) -> None:
        for place, total in sums:
            old = t.load(place, type_, width) if adds else start
            t.store(t.sum(old, total, element, lanes), place, type_, width)

    t.either("%adds", lambda: store(adds=True), lambda: store(adds=False))


def along_panels(
    t: Text,
    kernel: PackKernel,
    count: str,
    rows: Sequence[str],
    target: str,
    write: Callable[[list[str], str, str | None], object],
) -> None:
    """Append a loop over the panels of a step, or of a word, which is made of ``rows`` of the source.

    Args:
        t: The kernel.
        kernel: Which one it is.
        count: How many panels there are.
        rows: Where its first columns are.
        target: Where they go.
        write: Appends the packing of a panel, given rows, where they go, and how many columns there are if
            not all are.
    """

    def panel(_: str, inside: list[str]) -> list[str]:
        *here, there, live = inside
        whole = t.compare("uge", live, t.number(kernel.columns))
        t.either(whole, lambda: write(here, there, None), lambda: write(here, there, live))
        return [
            *(t.step(row, kernel.columns, stored(kernel.source)) for row in here),
            t.step(there, "%panel", kernel.element),
            t.binary("sub", live, t.number(kernel.columns)),
        ]

    carried = [*((row, "!llvm.ptr") for row in rows), (target, "!llvm.ptr"), ("%columns", "i64")]
    t.loop(count, carried, panel)
