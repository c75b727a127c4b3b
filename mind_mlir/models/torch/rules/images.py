"""Images of other extents, and images that are read between their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.models.functions.resizing import Axis, coordinates, interpolated, nearest
from mind_mlir.models.functions.sampling import at_grid
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import cast, dtype_of, full, inner_dtype, wide
from mind_mlir.tracing.transforms import vjp

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def _axes(
    to: OperatorUse, x: TracedArray, rank: int, sizes: Sequence[int] | None, scales: Sequence[Any]
) -> list[Axis]:
    """Return how the last axes are resized: ``scales`` are several numbers, or a list of them."""
    if to.node.operator.endswith(".vec"):
        (listed,) = scales
        given: Sequence[float | None] = [None] * rank if listed is None else listed
    else:
        given = [*scales, *[None] * (rank - len(scales))]
    extents = x.shape[-rank:]
    wanted = [
        int(extent * float(factor or 1)) if sizes is None else sizes[axis]
        for axis, (extent, factor) in enumerate(zip(extents, given, strict=True))
    ]
    return [
        Axis(extent, size, factor or size / extent, 0.0, 1.0)
        for extent, size, factor in zip(extents, wanted, given, strict=True)
    ]


def _nearest(rank: int, *, exact: bool = False) -> Rule:
    def rule(to: OperatorUse, x: TracedArray, sizes: Sequence[int] | None, *scales: Any) -> TracedArray:
        for number, axis in enumerate(_axes(to, x, rank, sizes, scales)):
            step = np.float32(1 / axis.scale)
            at = (np.arange(axis.wanted, dtype=np.float32) + np.float32(0.5 * exact)) * step
            x = nearest(x, x.ndim - rank + number, axis, at.astype(np.float64), "floor")
        return x

    return rule


def _filtered(
    to: OperatorUse,
    x: TracedArray,
    rank: int,
    mode: str,
    how: tuple[Sequence[int] | None, bool, Sequence[Any]],
    *,
    antialias: bool,
) -> TracedArray:
    sizes, aligned, scales = how
    first = x.ndim - rank
    for number, axis in enumerate(_axes(to, x, rank, sizes, scales)):
        if aligned and antialias:
            raise UnreadUse("it aligns corners, and widens its filter")
        if aligned:
            axis = axis._replace(scale=axis.wanted / axis.extent)  # noqa: PLW2901 -- the same axis
        at = coordinates(axis, "align_corners" if aligned else "half_pixel")
        a = -0.5 if antialias else -0.75
        if axis.extent != axis.wanted or axis.scale != 1:
            x = interpolated(x, first + number, axis, at, mode, a=a, antialias=antialias, excludes=antialias)
    return x


def _interpolated(rank: int, mode: str, *, antialias: bool = False) -> Rule:
    def rule(
        to: OperatorUse, x: TracedArray, sizes: Sequence[int] | None, aligned: bool, *scales: Any
    ) -> TracedArray:
        inner = cast(x, _inner(to.dtype))
        return cast(_filtered(to, inner, rank, mode, (sizes, aligned, scales), antialias=antialias), to.dtype)

    return rule


def _inner(dtype: DType) -> DType:
    """Return the dtype that sums of neighbours are made in; torch takes those of bytes, too."""
    return dtype if dtype.is_float and not dtype.is_narrow else DType.F32


def _interpolated_backward(rank: int, mode: str, *, antialias: bool = False) -> Rule:
    def rule(
        to: OperatorUse,
        gradient: TracedArray,
        sizes: Sequence[int],
        extents: Sequence[int],
        aligned: bool,
        *scales: Any,
    ) -> TracedArray:
        x = full(extents, 0, _inner(to.dtype))
        how = (sizes, aligned, scales)
        _, pull = vjp(lambda x: _filtered(to, x, rank, mode, how, antialias=antialias), x)
        return cast(pull(cast(gradient, _inner(to.dtype)))[0], to.dtype)

    return rule


def _at_grid(x: TracedArray, grid: TracedArray, mode: int, padding: int, aligned: bool) -> Any:
    names = ("linear", "nearest", "cubic")[mode], ("zeros", "border", "reflection")[padding]
    return at_grid(x, grid, *names, aligned=aligned)


def _sampled_backward(
    to: OperatorUse,
    gradient: TracedArray,
    x: TracedArray,
    grid: TracedArray,
    mode: int,
    padding: int,
    aligned: bool,
    wanted: Sequence[bool],
) -> list[TracedArray | None]:
    inner = inner_dtype(to.dtype_of(1))
    taken = cast(x, inner), cast(grid, inner)
    _, pull = vjp(lambda x, grid: _at_grid(x, grid, mode, padding, aligned), *taken)
    found = zip(pull(cast(gradient, inner)), (x, grid), wanted, strict=True)
    return [cast(each, dtype_of(like)) if want else None for each, like, want in found]


RULES: Mapping[str, Rule] = {
    **{f"aten.upsample_nearest{rank}d": _nearest(rank) for rank in (1, 2, 3)},
    **{f"aten._upsample_nearest_exact{rank}d": _nearest(rank, exact=True) for rank in (1, 2, 3)},
    "aten.upsample_linear1d": _interpolated(1, "linear"),
    "aten.upsample_bilinear2d": _interpolated(2, "linear"),
    "aten.upsample_trilinear3d": _interpolated(3, "linear"),
    "aten.upsample_bicubic2d": _interpolated(2, "cubic"),
    "aten._upsample_bilinear2d_aa": _interpolated(2, "linear", antialias=True),
    "aten._upsample_bicubic2d_aa": _interpolated(2, "cubic", antialias=True),
    "aten._upsample_bilinear2d_aa_backward": _interpolated_backward(2, "linear", antialias=True),
    "aten._upsample_bicubic2d_aa_backward": _interpolated_backward(2, "cubic", antialias=True),
    "aten.upsample_bilinear2d_backward": _interpolated_backward(2, "linear"),
    "aten.upsample_bicubic2d_backward": _interpolated_backward(2, "cubic"),
    "aten.grid_sampler_2d": wide(_at_grid),
    "aten.grid_sampler_2d_backward": _sampled_backward,
    "aten.grid_sampler_3d": wide(_at_grid),
    "aten.grid_sampler_3d_backward": _sampled_backward,
}
