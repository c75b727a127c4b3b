"""The micro-kernels of products of few rows, which read a large right factor once, from one end to the other.

Such a product takes as long as memory needs to bring the right factor. That is fastest in the order in which
it lies there, without a tile of registers that would have several rows of it under way at a time.
"""

from __future__ import annotations

import dataclasses
import functools
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, byte_width, vector

if TYPE_CHECKING:
    from collections.abc import Callable

#: The arguments behind the three buffers of an axpy product: offsets, extents and strides in elements.
AXPY_ARGUMENTS = (
    *("left_first", "right_first", "out_first", "columns", "depth"),
    *("left_row", "left_step", "right_step", "out_row"),
)
#: Those behind the partial results and the result of a join.
JOIN_ARGUMENTS = (
    *("source_first", "out_first", "rows", "columns", "parts"),
    *("source_row", "source_part", "out_row"),
)
#: Those behind the three buffers of dot products.
DOT_ARGUMENTS = (
    *("left_first", "right_first", "out_first", "columns", "depth", "last_depth", "blocks"),
    *("left_row", "right_column", "out_row"),
)

#: Rows of the right factor that an axpy product reads side by side, for one row of results and for several:
#: so many streams the processor prefetches, and a result is loaded and stored once for all of them. For one
#: row of results they are far apart, so that each stream goes on through memory, which is read faster by half
#: on one thread. For several they are neighbours, and products are added up in the order of tiles.
_BESIDE = 4, 8
#: Partial results that one accumulator of a join sums.
JOINED = 32


@dataclasses.dataclass(frozen=True)
class AxpyKernel:
    """``out[i, j] = sum over k of left[i, k] * right[k, j]``, some rows of the right factor after others.

    The results, few rows of them, stay in the first-level cache meanwhile. Their rows have room for whole
    vectors.

    Attributes:
        rows: All rows.
        lanes: Elements in a vector.
        element: The type of accumulators and results.
        left: The type of elements of the left factor in memory, and conversions to accumulators.
        right: The same of the right factor.
        fma: Whether products of floats are fused with their addition.
        masks: Whether loads at edges take masks; else these are computed one by one.
    """

    rows: int
    lanes: int
    element: str
    left: str
    right: str
    fma: bool
    masks: bool

    @property
    def name(self) -> str:
        """The symbol of the function."""
        return _symbol("sweep", self)

    @property
    def is_apart(self) -> bool:
        """Return whether rows that are read side by side are far apart."""
        return self.rows == 1

    @property
    def beside(self) -> int:
        """Rows of the right factor that are read side by side."""
        return _BESIDE[min(self.rows, 2) - 1]

    def text(self) -> str:
        """Return the function in the LLVM dialect."""
        return _sweep_text(self)


@dataclasses.dataclass(frozen=True)
class JoinKernel:
    """``out[i, j] (+)= sum over p of source[p, i, j]``: adds up partial results, in their order.

    Attributes:
        lanes: Elements in a vector.
        element: The type of elements.
        masks: Whether loads and stores at edges take masks.
    """

    lanes: int
    element: str
    masks: bool

    @property
    def name(self) -> str:
        """The symbol of the function."""
        return _symbol("join", self)

    def text(self) -> str:
        """Return the function in the LLVM dialect."""
        return _join_text(self)


@dataclasses.dataclass(frozen=True)
class DotKernel:
    """``out[i, j] (+)= sum over k of left[i, k] * right[j, k]``, some columns after others, for all rows.

    Both factors are contiguous along the products. Sums of a block start at zero, in several accumulators.
    Columns are computed side by side so that what is loaded of the left factor serves all of them.

    Attributes:
        rows: All rows.
        beside: Columns that are computed side by side; those that are left, one after the other.
        vectors: Accumulators of an element of the result.
        lanes: Elements in a vector.
        element: The type of accumulators and results.
        left: The type of elements of the left factor in memory, and conversions to accumulators.
        right: The same of the right factor.
        fma: Whether products of floats are fused with their addition.
        ragged: Whether loads behind the last whole step take masks; else a block has whole steps only.
    """

    rows: int
    beside: int
    vectors: int
    lanes: int
    element: str
    left: str
    right: str
    fma: bool
    ragged: bool

    @property
    def name(self) -> str:
        """The symbol of the function."""
        return _symbol("dots", self)

    def text(self) -> str:
        """Return the function in the LLVM dialect."""
        return _dot_text(self)


def _symbol(kind: str, kernel: AxpyKernel | JoinKernel | DotKernel) -> str:
    parts = [kind]
    for name, value in dataclasses.asdict(kernel).items():
        if value is not False:
            parts.append(name if value is True else str(value).replace(":", "_").replace(" ", "_"))
    return "mind_" + "_".join(parts)


def _along(
    t: Text,
    columns: str,
    kernel: AxpyKernel | JoinKernel,
    body: Callable[[str, int, str | None], None],
) -> None:
    """Append loops over ``columns``: ``body`` is given a first column, how many vectors, and a mask of these.

    That is one vector, or none for a single column: those at the end, without masks.
    """

    def some(count: str, first: str | None, width: int, vectors: int) -> None:
        def one(number: str, _: list[str]) -> list[str]:
            offset = t.mul(number, t.number(width))
            body(offset if first is None else t.add(first, offset), vectors, None)
            return []

        t.either(t.compare("ne", count, t.number(0)), lambda: t.loop(count, [], one))

    whole = t.binary("udiv", columns, t.number(kernel.lanes))
    some(whole, None, kernel.lanes, 1)
    done = t.mul(whole, t.number(kernel.lanes))
    rest = t.binary("sub", columns, done)
    if kernel.masks:
        mask = t.mask(rest, 0, kernel.lanes)
        t.either(t.compare("ne", rest, t.number(0)), lambda: body(done, 1, mask))
    else:
        some(rest, done, 1, 0)


@functools.cache
def _sweep_text(kernel: AxpyKernel) -> str:
    t, element = Text(), kernel.element
    stored = {"left": kernel.left.split(":")[0], "right": kernel.right.split(":")[0]}
    left, right = (t.step(f"%{name}", f"%{name}_first", stored[name]) for name in ("left", "right"))
    out = t.step("%out", "%out_first", element)
    outs = [t.step(out, t.mul("%out_row", t.number(row)), element) for row in range(kernel.rows)]
    lefts = [t.step(left, t.mul("%left_row", t.number(row)), stored["left"]) for row in range(kernel.rows)]

    side = t.number(kernel.beside)
    groups = t.binary("udiv", "%depth", side)
    apart, onward = (groups, t.number(1)) if kernel.is_apart else (t.number(1), side)

    def some(number: str, there: str, count: int) -> None:
        """Append what adds ``count`` rows of the right factor, from row ``number`` on."""
        rows = [there]
        for _ in range(1, count):
            rows.append(t.step(rows[-1], t.mul("%right_step", apart), stored["right"]))
        places = [t.add(number, t.mul(t.number(each), apart)) for each in range(count)]
        offsets = [t.mul(place, "%left_step") for place in places]
        scalars = [
            [t.read(t.step(each, offset, stored["left"]), kernel.left, 0) for offset in offsets]
            for each in lefts
        ]
        splats = [[t.splat(each, kernel.lanes, element) for each in several] for several in scalars]

        def columns(first: str, vectors: int, mask: str | None) -> None:
            lanes = kernel.lanes if vectors else 0
            type_ = vector(lanes, element)
            places = (t.step(each, first, stored["right"]) for each in rows)
            values = [t.read(each, kernel.right, lanes, mask) for each in places]
            for result, factors in zip(outs, splats if lanes else scalars, strict=True):
                place = t.step(result, first, element)
                total = t.load(place, type_, byte_width(element))
                for factor, value in zip(factors, values, strict=True):
                    total = t.multiply_add(factor, value, total, element, lanes, fma=kernel.fma)
                t.store(total, place, type_, byte_width(element))

        _along(t, "%columns", kernel, columns)

    def clear(first: str, vectors: int, _: str | None) -> None:
        lanes = kernel.lanes if vectors else 0
        for result in outs:
            zero, place = t.zero(element, lanes), t.step(result, first, element)
            t.store(zero, place, vector(lanes, element), byte_width(element))

    _along(t, "%columns", kernel, clear)
    done = t.mul(groups, side)
    rest = t.binary("sub", "%depth", done)

    def group(number: str, inside: list[str]) -> list[str]:
        some(t.mul(number, onward), inside[0], kernel.beside)
        return [t.step(inside[0], t.mul("%right_step", onward), stored["right"])]

    def single(number: str, inside: list[str]) -> list[str]:
        some(t.add(done, number), inside[0], 1)
        return [t.step(inside[0], "%right_step", stored["right"])]

    t.either(t.compare("ne", groups, t.number(0)), lambda: t.loop(groups, [(right, "!llvm.ptr")], group))
    last = t.step(right, t.mul(done, "%right_step"), stored["right"])
    t.either(t.compare("ne", rest, t.number(0)), lambda: t.loop(rest, [(last, "!llvm.ptr")], single))
    return t.function(kernel.name, ("left", "right", "out"), AXPY_ARGUMENTS)


@functools.cache
def _join_text(kernel: JoinKernel) -> str:
    t, element = Text(), kernel.element
    source, out = t.step("%source", "%source_first", element), t.step("%out", "%out_first", element)
    start = t.splat("%start", kernel.lanes, element)
    most = t.number(JOINED)
    groups = t.binary("udiv", t.add("%parts", t.number(JOINED - 1)), most)

    def columns(source: str, out: str, first: str, vectors: int, mask: str | None) -> None:
        lanes = kernel.lanes if vectors else 0
        type_ = vector(lanes, element)

        def part(_: str, inside: list[str]) -> list[str]:
            value = t.load(inside[0], type_, byte_width(element))
            after = t.step(inside[0], "%source_part", element)
            return [after, t.sum(inside[1], value, element, lanes)]

        def group(_: str, inside: list[str]) -> list[str]:
            here, left, total = inside
            some = [(here, "!llvm.ptr"), (t.zero(element, lanes), type_)]
            here, value = t.loop(t.minimum(left, most), some, part)
            return [here, t.binary("sub", left, most), t.sum(total, value, element, lanes)]

        begin = (t.step(source, first, element), "!llvm.ptr")
        carried = [begin, ("%parts", "i64"), (t.zero(element, lanes), type_)]
        total = t.loop(groups, carried, group)[2]
        place = t.step(out, first, element)
        width = byte_width(element)

        def store(old: str) -> None:
            t.store(t.sum(old, total, element, lanes), place, type_, width)

        if mask is None:
            t.either(
                "%adds",
                lambda: store(t.load(place, type_, width)),
                lambda: store(start if lanes else "%start"),
            )
        else:
            old = t.masked_load(place, mask, start, lanes, element)
            old = t.select("%adds", old, start, type_)
            t.masked_store(t.sum(old, total, element, lanes), place, mask, lanes, element)

    def row(_: str, inside: list[str]) -> list[str]:
        here, there = inside
        _along(t, "%columns", kernel, lambda *place: columns(here, there, *place))
        return [t.step(here, "%source_row", element), t.step(there, "%out_row", element)]

    t.loop("%rows", [(source, "!llvm.ptr"), (out, "!llvm.ptr")], row)
    return t.function(kernel.name, ("source", "out"), JOIN_ARGUMENTS, start=element)


@functools.cache
def _dot_text(kernel: DotKernel) -> str:
    t, element = Text(), kernel.element
    right = t.step("%right", "%right_first", kernel.right.split(":")[0])
    out = t.step("%out", "%out_first", element)

    def columns(count: str, begin: list[str], beside: int) -> list[str]:
        """Append ``count`` times ``beside`` columns; return the places behind them."""

        def some(_: str, inside: list[str]) -> list[str]:
            there, result = inside
            _columns(t, kernel, there, result, beside)
            by = t.mul("%right_column", t.number(beside))
            return [t.step(there, by, kernel.right.split(":")[0]), t.step(result, beside, element)]

        return t.loop(count, [(each, "!llvm.ptr") for each in begin], some)

    if kernel.beside == 1:
        columns("%columns", [right, out], 1)
    else:
        side = t.number(kernel.beside)
        whole = t.binary("udiv", "%columns", side)
        rest = t.binary("sub", "%columns", t.mul(whole, side))
        behind = [
            t.step(right, t.mul(t.mul(whole, side), "%right_column"), kernel.right.split(":")[0]),
            t.step(out, t.mul(whole, side), element),
        ]
        for count, begin, beside in ((whole, [right, out], kernel.beside), (rest, behind, 1)):
            t.either(t.compare("ne", count, t.number(0)), partial(columns, count, begin, beside))
    return t.function(kernel.name, ("left", "right", "out"), DOT_ARGUMENTS, start=element)


def _columns(t: Text, kernel: DotKernel, first: str, result: str, beside: int) -> None:
    """Append the sums of ``beside`` columns of the right factor, the first of which is at ``first``."""
    element, lanes = kernel.element, kernel.lanes
    stored = {"left": kernel.left.split(":")[0], "right": kernel.right.split(":")[0]}
    left = t.step("%left", "%left_first", stored["left"])
    lefts = [t.step(left, t.mul("%left_row", t.number(row)), stored["left"]) for row in range(kernel.rows)]
    rights = [t.mul("%right_column", t.number(column)) for column in range(beside)]
    width = t.number(lanes * kernel.vectors)
    last = t.binary("sub", "%blocks", t.number(1))
    cells = kernel.rows * beside

    def multiplied(pointers: tuple[str, str], sums: list[str], masks: list[str]) -> list[str]:
        offset, there = pointers
        following = list(sums)
        for v in range(kernel.vectors):
            mask = masks[v] if masks else None
            place = t.step(there, t.number(v * lanes), stored["right"])
            factors = [
                t.read(t.step(place, each, stored["right"]), kernel.right, lanes, mask) for each in rights
            ]
            place = t.add(offset, t.number(v * lanes))
            for row, each in enumerate(lefts):
                value = t.read(t.step(each, place, stored["left"]), kernel.left, lanes, mask)
                for column, factor in enumerate(factors):
                    cell = (row * beside + column) * kernel.vectors + v
                    following[cell] = t.multiply_add(
                        value, factor, sums[cell], element, lanes, fma=kernel.fma
                    )
        return following

    def step(_: str, inside: list[str]) -> list[str]:
        offset, there, *sums = inside
        following = multiplied((offset, there), sums, [])
        return [t.add(offset, width), t.step(there, width, stored["right"]), *following]

    def block(number: str, inside: list[str]) -> list[str]:
        offset, there, *totals = inside
        depth = t.select(t.compare("eq", number, last), "%last_depth", "%depth", "i64")
        zeros = [(t.zero(element, lanes), vector(lanes, element))] * (cells * kernel.vectors)
        steps = t.binary("udiv", depth, width)
        offset, there, *sums = t.loop(steps, [(offset, "i64"), (there, "!llvm.ptr"), *zeros], step)
        if kernel.ragged:
            rest = t.binary("urem", depth, width)
            masks = [t.mask(rest, v * lanes, lanes) for v in range(kernel.vectors)]
            sums = multiplied((offset, there), sums, masks)
        several = [sums[cell * kernel.vectors : (cell + 1) * kernel.vectors] for cell in range(cells)]
        added = [
            t.sum(total, _horizontal(t, each, element, lanes), element, 0)
            for total, each in zip(totals, several, strict=True)
        ]
        return [offset, there, *added]

    zeros = [(t.zero(element), element)] * cells
    _, _, *totals = t.loop("%blocks", [(t.number(0), "i64"), (first, "!llvm.ptr"), *zeros], block)
    places = [
        t.step(t.step(result, t.mul("%out_row", t.number(row)), element), t.number(column), element)
        for row in range(kernel.rows)
        for column in range(beside)
    ]

    def store(old: Callable[[str], str]) -> None:
        for place, total in zip(places, totals, strict=True):
            t.store(t.sum(old(place), total, element, 0), place, element, byte_width(element))

    t.either(
        "%adds",
        lambda: store(lambda place: t.load(place, element, byte_width(element))),
        lambda: store(lambda _: "%start"),
    )


def _horizontal(t: Text, vectors: list[str], element: str, lanes: int) -> str:
    """Append the sum of all lanes of ``vectors``, pair by pair."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        pairs = zip(vectors[:half], vectors[half:], strict=True)
        vectors = [t.sum(one, other, element, lanes) for one, other in pairs]
    value = vectors[0]
    while lanes > 1:
        type_ = vector(lanes, element)
        halves = [
            t.shuffle(value, value, list(range(first, first + lanes // 2)), type_)
            for first in (0, lanes // 2)
        ]
        lanes //= 2
        value = t.sum(halves[0], halves[1], element, lanes)
    return t.op(f"llvm.extractelement {value}[{t.number(0)} : i64] : {vector(1, element)}")
