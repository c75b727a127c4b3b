"""What gives elements another shape or place, in front of and behind schedules (`pairs`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.numpy.generated import function_of
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Callable

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Mover:
    """Moves elements.

    Attributes:
        opcode: The operation that it is made of, first of all.
        name: What it does.
        before: From the shape that it is to give to the one that it takes, or None.
        apply: From an array, and the shape that it is to give, to the result.
        after: From the shape that it takes to the one that it gives, or None.
    """

    opcode: str
    name: str
    before: Callable[[Shape], Shape | None]
    apply: Callable[[Any, Shape], Any]
    after: Callable[[Shape], Shape | None]

    def __str__(self) -> str:
        return f"{self.opcode} {self.name}"

    @property
    def sort(self) -> str:
        """What samples have one of each of: the operation, and of slices also the kind."""
        return self.opcode if self.opcode != "Slice" else f"Slice {self.name.split()[0]}"


def _record(opcode: str) -> Callable[..., Any]:
    return function_of(opcode.lower(), by_opcode()[opcode])


def _along(axis: int, change: Callable[[int], int | None]) -> Callable[[Shape], Shape | None]:
    """Return what changes one extent of a shape."""

    def changed(shape: Shape) -> Shape | None:
        if not -len(shape) <= axis < len(shape):
            return None
        extent = change(shape[axis])
        if extent is None or extent < 1:
            return None
        place = axis % len(shape)
        return (*shape[:place], extent, *shape[place + 1 :])

    return changed


def _part(axis: int, which: slice) -> Callable[[Any, Shape], Any]:
    def taken(x: Any, _: Shape) -> Any:
        whole = [slice(None)] * len(x.shape)
        whole[axis] = which
        return x[tuple(whole)]

    return taken


def _slices() -> list[Mover]:
    kinds: list[tuple[str, slice, Callable[[int], int | None], Callable[[int], int | None]]] = [
        ("::2", slice(None, None, 2), lambda n: 2 * n, lambda n: -(-n // 2)),
        ("1::3", slice(1, None, 3), lambda n: 3 * n, lambda n: -(-(n - 1) // 3)),
        ("::-1", slice(None, None, -1), lambda n: n, lambda n: n),
        ("::-2", slice(None, None, -2), lambda n: 2 * n - 1, lambda n: -(-n // 2)),
        ("2:-1", slice(2, -1), lambda n: n + 3, lambda n: n - 3),
    ]
    return [
        Mover(
            "Slice", f"{kind} of axis {axis}", _along(axis, before), _part(axis, which), _along(axis, after)
        )
        for kind, which, before, after in kinds
        for axis in (-1, -2, -3, -4)
    ]


def _same(shape: Shape) -> Shape | None:
    return shape if shape else None


def _turn(name: str, order: Callable[[int], list[int] | None]) -> Mover:
    def turned(shape: Shape) -> Shape | None:
        axes = order(len(shape))
        return None if axes is None else tuple(shape[axis] for axis in axes)

    def back(shape: Shape) -> Shape | None:
        axes = order(len(shape))
        return None if axes is None else tuple(shape[int(axis)] for axis in np.argsort(axes))

    def apply(x: Any, _: Shape) -> Any:
        return mnp.permute_dims(x, tuple(order(len(x.shape)) or ()))

    return Mover("Transpose", name, back, apply, turned)


def _pad(axis: int, low: int, high: int, interior: int) -> Mover:
    def apply(x: Any, _: Shape) -> Any:
        amounts = [[0] * len(x.shape) for _ in range(3)]
        for list_, amount in zip(amounts, (low, high, interior), strict=True):
            list_[axis] = amount
        keys = ("low", "high", "interior")
        given = {key: tuple(each) for key, each in zip(keys, amounts, strict=True)}
        return _record("Pad")(x, pad_value=1, **given)

    def whole(n: int) -> int | None:
        least = n - low - high + interior
        return least // (interior + 1) if least > 0 and least % (interior + 1) == 0 else None

    name = f"by {low}, {high} and {interior} on axis {axis}"
    return Mover(
        "Pad", name, _along(axis, whole), apply, _along(axis, lambda n: low + n + high + (n - 1) * interior)
    )


def _joined(axis: int, parts: int) -> Mover:
    def apply(x: Any, _: Shape) -> Any:
        return mnp.concatenate([x] * parts, axis=axis)

    name = f"{parts} along axis {axis}"
    return Mover(
        "Concat",
        name,
        _along(axis, lambda n: None if n % parts else n // parts),
        apply,
        _along(axis, lambda n: n * parts),
    )


def _with_more(axis: int) -> Mover:
    """A part of itself is put in front of it."""

    def apply(x: Any, _: Shape) -> Any:
        return mnp.concatenate([_part(axis, slice(0, 1))(x, ()), x], axis=axis)

    return Mover(
        "Concat",
        f"1 in front on axis {axis}",
        _along(axis, lambda n: n - 1),
        apply,
        _along(axis, lambda n: n + 1),
    )


def _tile(axis: int) -> Mover:
    def apply(x: Any, _: Shape) -> Any:
        repeats = [1] * len(x.shape)
        repeats[axis] = 2
        return mnp.tile(x, tuple(repeats))

    return Mover(
        "Tile",
        f"twice on axis {axis}",
        _along(axis, lambda n: None if n % 2 else n // 2),
        apply,
        _along(axis, lambda n: 2 * n),
    )


def _broadcast(axis: int) -> Mover:
    return Mover(
        "BroadcastTo",
        f"axis {axis}",
        _along(axis, lambda n: None if n == 1 else 1),
        mnp.broadcast_to,
        lambda shape: (3, *shape),
    )


def _reshape(
    name: str, before: Callable[[Shape], Shape | None], after: Callable[[Shape], Shape | None]
) -> Mover:
    return Mover("Reshape", name, before, mnp.reshape, after)


def _halves(shape: Shape) -> Shape | None:
    """Return a shape with the last extent split in two."""
    return (*shape[:-1], shape[-1] // 2, 2) if shape and shape[-1] % 2 == 0 else None


def _merged(shape: Shape) -> Shape | None:
    return (*shape[:-2], math.prod(shape[-2:])) if len(shape) > 1 else None


def _regrouped(shape: Shape) -> Shape | None:
    """Return a shape of the same rank and count of elements, with a factor 2 elsewhere."""
    if len(shape) < 2 or shape[-1] % 2:
        return None
    return (*shape[:-2], shape[-2] * 2, shape[-1] // 2)


def _places(extent: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return (np.arange(count, dtype=np.int64) * 7 + 3) % extent


def _take(axis: int) -> Mover:
    def apply(x: Any, shape: Shape) -> Any:
        return mnp.take(x, _places(x.shape[axis], shape[axis]), axis=axis)

    return Mover(
        "Take", f"along axis {axis}", _along(axis, lambda n: n + 1), apply, _along(axis, lambda n: n + 2)
    )


def _gather(x: Any, shape: Shape) -> Any:
    return mnp.gather(x, _places(x.shape[0], shape[0]))


def _gather_elements(x: Any, shape: Shape) -> Any:
    count = shape[-1]
    return mnp.gather_elements(
        x, np.broadcast_to(_places(x.shape[-1], count), shape).copy(), axis=len(shape) - 1
    )


def _gather_windows(x: Any, shape: Shape) -> Any:
    rank = len(x.shape)
    return mnp.gather_windows(
        x,
        _places(x.shape[0], shape[0]).reshape(-1, 1),
        offset_dims=tuple(range(1, rank)),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1, *x.shape[1:]),
    )


def _start(x: Any, place: int) -> Any:
    """Return the place where a slice begins, which nothing knows before the program runs."""
    first, last = mnp.ravel(x)[:1], mnp.ravel(mnp.flip(x))[-1:]
    return mnp.astype(first != last, "i64") + np.full(len(x.shape), place, np.int64)


def _dynamic_slice(x: Any, shape: Shape) -> Any:
    return mnp.dynamic_slice(x, _start(x, 1), sizes=shape)


def _dynamic_update(x: Any, shape: Shape) -> Any:
    part = x[tuple(slice(0, max(1, n // 2)) for n in shape)]
    return mnp.dynamic_update_slice(mnp.flip(x, -1), part, _start(x, 0))


def _patches(x: Any, shape: Shape) -> Any:
    """Patches of one element, which are what the last axis was."""
    rank = len(x.shape) - 2
    ones, zeros = (1,) * rank, (0,) * rank
    return mnp.extract_patches(
        x, window=ones, strides=ones, dilation=ones, padding_low=zeros, padding_high=zeros, pad_value=0.0
    )


def _more(count: int) -> Callable[[Shape], Shape | None]:
    return lambda shape: tuple(n + count for n in shape) if shape else None


MOVERS: tuple[Mover, ...] = (
    *_slices(),
    _turn("all axes", lambda rank: list(range(rank))[::-1] if rank > 1 else None),
    _turn("the last two", lambda rank: [*range(rank - 2), rank - 1, rank - 2] if rank > 2 else None),
    _turn("the first to the end", lambda rank: [*range(1, rank), 0] if rank > 2 else None),
    _turn("the outer two", lambda rank: [1, 0, *range(2, rank)] if rank > 2 else None),
    *(_pad(axis, *by) for axis in (-1, -2, -3) for by in ((1, 2, 0), (0, 0, 1), (1, 0, 2))),
    *(_joined(axis, 2) for axis in (-1, -2, -3)),
    *(_with_more(axis) for axis in (-1, -2)),
    *(_tile(axis) for axis in (-1, -2, -3)),
    *(_broadcast(axis) for axis in (-1, -2, -3)),
    _reshape("from flat", lambda shape: (math.prod(shape),), lambda shape: (math.prod(shape),)),
    _reshape("from halves", _halves, _merged),
    _reshape("regrouped", _regrouped, _regrouped),
    Mover(
        "ExpandDims",
        "in front",
        lambda s: s[1:] if s and s[0] == 1 else None,
        lambda x, _: mnp.expand_dims(x, 0),
        lambda s: (1, *s),
    ),
    Mover(
        "Squeeze",
        "the second",
        lambda s: (*s[:1], 1, *s[1:]) if s else None,
        lambda x, _: mnp.squeeze(x, 1),
        lambda s: (s[0], *s[2:]) if s[1:2] == (1,) else None,
    ),
    Mover(
        "Slice",
        "one of the last axis, left out",
        lambda s: (*s, 3) if s else None,
        lambda x, _: x[..., 1],
        lambda s: s[:-1] if len(s) > 1 and s[-1] > 1 else None,
    ),
    Mover(
        "Index",
        "the second of three",
        lambda s: (3, *s),
        lambda x, _: x[1],
        lambda s: s[1:] if s[:1] > (1,) and len(s) > 1 else None,
    ),
    _take(-1),
    _take(-2),
    Mover("Gather", "rows", _along(0, lambda n: n + 1), _gather, _along(0, lambda n: n + 2)),
    Mover("GatherElements", "along the last axis", _along(-1, lambda n: n + 1), _gather_elements, _same),
    Mover("GatherWindows", "rows", _along(0, lambda n: n + 1), _gather_windows, _along(0, lambda n: n + 2)),
    Mover(
        "ExtractPatches",
        "of one element",
        lambda s: s if len(s) in (3, 4) else None,
        _patches,
        lambda s: s if len(s) in (3, 4) else None,
    ),
    Mover("DynamicSlice", "from 1 on", _more(1), _dynamic_slice, _more(-1)),
    Mover("DynamicUpdateSlice", "at the front", _same, _dynamic_update, _same),
)


def chained(first: Mover, second: Mover) -> Mover:
    """Return what moves elements by ``first`` and then by ``second``."""

    def before(shape: Shape) -> Shape | None:
        between = second.before(shape)
        return None if between is None else first.before(between)

    def apply(x: Any, shape: Shape) -> Any:
        between = first.after(tuple(x.shape)) if second.before(shape) is None else second.before(shape)
        return second.apply(first.apply(x, between or ()), shape)

    def after(shape: Shape) -> Shape | None:
        between = first.after(shape)
        return None if between is None else second.after(between)

    return Mover(first.opcode, f"{first.name}, then {second}", before, apply, after)
