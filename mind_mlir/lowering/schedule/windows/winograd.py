"""Convolutions with filters of 3 x 3 in Winograd's form: fewer products, between transforms of both factors.

The image is cut in tiles that overlap; each becomes a square of numbers for each channel, and so does the
filter. There is one matrix product for each place in a square, tiles times channels by channels times
features, and what these give is transformed to tiles of the result. Tiles of 4 x 4 outputs take 36 products
where the sum takes 144, tiles of 2 x 2 take 16 for 36. The error is relative to what a tile adds up rather
than to what a window does (see `docs/schedule.md`), so this is only done where the caller asks for it.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.decision import Computed, Decision, chosen, computed
from mind_mlir.lowering.emission.emitter import Emitter, Index, zero
from mind_mlir.lowering.schedule.contraction.constant_factors import data_of
from mind_mlir.lowering.schedule.contraction.match import Contraction, match_contraction
from mind_mlir.lowering.schedule.linalg_view.layout import padding_of
from mind_mlir.lowering.schedule.linalg_view.values import (
    constant_value,
    erase_source,
    is_filled_with,
    unreshaped,
)
from mind_mlir.lowering.schedule.linalg_view.view import Linear, View, Views
from mind_mlir.lowering.schedule.windows.axis import image_within
from mind_mlir.lowering.schedule.windows.margins import padded_tensor
from mind_mlir.lowering.schedule.windows.winograd_emission import Tiles, WinogradEmitter
from mind_mlir.lowering.schedule.windows.winograd_transforms import TAPS, both_axes, filter_transform
from mind_mlir.mlir.bindings import Operation, Value, arith, ir
from mind_mlir.mlir.passes import find_named
from mind_mlir.mlir.references import reference
from mind_mlir.mlir.structured import structured

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.target import Target


def match_convolution(view: View, target: Target) -> tuple[Contraction, Tiles] | None:
    """Return ``view`` as a convolution of ``[N, H, W, C]`` with ``[3, 3, C, F]`` of stride 1, with its tiles.

    None if it is anything else, or if tiles are no faster on ``target``.
    """
    contraction = match_contraction(view)
    if contraction is None:
        return None
    element = contraction.element
    casts = contraction.left.casts or contraction.right.casts
    if casts or not isinstance(element, ir.F32Type | ir.F64Type) or not _slides(contraction):
        return None
    if not is_filled_with(view.inits[0], zero(element)):
        return None
    n, h, w, f = view.shapes[2]
    channels = contraction.right.value.type.shape[2]
    tiles = choose_tiles((n, h, w, f), channels, element.width // 8, target)
    return None if tiles is None else (contraction, tiles)


def _slides(contraction: Contraction) -> bool:
    """Return whether windows of 3 x 3 slide along both axes of the left factor, one element at a time."""
    dims = len(contraction.view.extents)
    factors = contraction.left, contraction.right
    if dims != 7 or any(len(access) != 4 for access in (contraction.out, *(each.access for each in factors))):
        return False
    n, h, w, f = (index.dim for index in contraction.out)
    i, j, c, last = (index.dim for index in contraction.right.access)
    if {n, h, w, f, i, j, c} != {*range(dims)} or last != f:
        return False
    sums = ([(dim, 1) for dim in each if dim is not None] for each in ((n,), (h, i), (w, j), (c,)))
    image = tuple(Linear(tuple(sorted(terms))) for terms in sums)
    return contraction.left.access == image and contraction.extent(i) == contraction.extent(j) == TAPS


def choose_tiles(shape: tuple[int, int, int, int], channels: int, size: int, target: Target) -> Tiles | None:
    """Return the tiles that a convolution is computed in; None where the sum as it is may be as fast.

    The ``shape`` is that of the result, ``[N, H, W, F]``, and ``size`` the bytes of an element.
    """
    n, h, w, f = shape
    if min(channels, f) < constants.WINOGRAD_CHANNELS:
        return None
    chosen = None
    least = 9 * n * h * w * constants.WINOGRAD_GAIN  # the products for each channel and feature
    for outputs in (2, 4):
        rows, across, planes = n * -(-h // outputs), -(-w // outputs), (outputs + TAPS - 1) ** 2
        if rows * across < constants.WINOGRAD_TILES or rows * across * planes >= least:
            continue
        least = rows * across * planes
        limit = max(target.l3_bytes // constants.WINOGRAD_SHARE, planes * channels * f * size)
        blocks = -(-rows * across * planes * (channels + f) * size // limit)
        chosen = Tiles(outputs, shape, channels, -(-rows // min(blocks, rows)))
    return chosen


class WinogradRewriter:
    """Puts Winograd's form in the place of convolutions.

    Attributes:
        made: Results that were emitted, with nothing left to schedule, and what is said of each.
    """

    def __init__(self, emitter: Emitter, target: Target) -> None:
        self._emitter, self._target = emitter, target
        self.made: dict[Value, Callable[[], Decision]] = {}

    def run(self, function: Operation, views: Views) -> None:
        """Rewrite the convolutions of ``function``, in place."""
        seen = [
            views.of(op.operation)
            for op in find_named(function, "linalg.generic", "linalg.conv_2d_nhwc_hwcf")
        ]
        found = [match_convolution(view, self._target) for view in seen if view is not None]
        for contraction, tiles in (each for each in found if each is not None):
            op = contraction.view.op
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(self._rewritten(contraction, tiles))
            op.erase()
            erase_source(contraction.left.value)
            erase_source(contraction.right.value)

    def _rewritten(self, contraction: Contraction, tiles: Tiles) -> Value:
        e, what, element = self._emitter, computed([contraction.view.op]), contraction.element
        image, filter_ = contraction.left.value, contraction.right.value
        emitter = WinogradEmitter(e, tiles, element, self._target)
        factor = _constant_filter(filter_, tiles.outputs)
        if factor is None:
            factor = self._note(what, "filter", tiles, emitter.filter(filter_))
        window = image_within(image, padding_of(image) or padded_tensor(image))

        def block(row: Index, carried: list[Value]) -> list[Value]:
            # The last one begins earlier rather than be smaller: what is computed twice is the same.
            first = e.minimum(row, tiles.rows - tiles.block) if tiles.rows % tiles.block else row
            data = self._note(what, "image", tiles, emitter.data(window, first))
            empty = e.empty([tiles.products, tiles.count, tiles.shape[3]], element)
            start = structured("fill", [e.number(element, 0)], empty).result
            products = structured("batch_matmul", [data, factor], start).result
            return [self._note(what, "result", tiles, emitter.output(products, first, carried[0]))]

        return e.loop((0, tiles.rows, tiles.block), [e.empty(tiles.shape, element)], block)[0]

    def _note(self, what: tuple[Computed, ...], part: str, tiles: Tiles, value: Value) -> Value:
        """Note that ``value`` is made by nests that transform ``part`` of a convolution; return it."""
        side, sums = tiles.outputs, 9 * tiles.outputs**2
        choices = chosen(
            ("tile", f"{side} x {side} outputs", f"{tiles.products} products for {sums}"),
            ("block", f"{tiles.count} tiles", "what is between the transforms stays in the cache"),
        )
        extents = tuple(value.type.shape)
        self.made[value] = lambda: Decision(f"winograd {part}", what, extents, choices)
        return value


def _constant_filter(value: Value, outputs: int) -> Value | None:
    """Return the transform of a filter that is a constant, as a constant; None for any other."""
    attribute = constant_value(unreshaped(value))
    if attribute is None:
        return None
    taps = data_of(attribute).reshape(ir.RankedTensorType(value.type).shape)
    with np.errstate(all="ignore"):
        squares = both_axes(partial(filter_transform, outputs=outputs), [list(row) for row in taps])
    array = np.stack([*itertools.chain.from_iterable(squares)])
    type_ = ir.RankedTensorType.get(list(array.shape), value.type.element_type)
    given = reference(TensorLiteral.from_array(array), type_) or ir.DenseElementsAttr.get(array, type=type_)
    return arith.ConstantOp(type_, given).result
