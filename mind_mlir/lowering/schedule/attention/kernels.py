"""The micro-kernels that an attention calls, known from its schedule long before the calls are emitted."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.kernels.llvm_text import OF, PAIR, float_conversions
from mind_mlir.lowering.kernels.packing import PackKernel
from mind_mlir.lowering.kernels.product import ProductKernel
from mind_mlir.lowering.kernels.tile_operations import LEFT_TILES
from mind_mlir.lowering.kernels.tile_product import TileProductKernel
from mind_mlir.lowering.kernels.vnni import BF16, LEAST, WIDENED, WORD

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.library import Kernel
    from mind_mlir.lowering.kernels.product import PanelProductKernel
    from mind_mlir.lowering.schedule.attention.factors import Factors, OutputFactors, ScoreFactors
    from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule
    from mind_mlir.lowering.schedule.scalars.graph import Scalar


class AttentionKernels:
    """The kernels of one attention.

    Attributes:
        dots: The kinds of products: one, or where factors are words the instruction for them, and what is
            called where that would take small numbers for zeros.
    """

    def __init__(self, factors: Factors[Any], schedule: AttentionSchedule) -> None:
        self._f, self._s = factors, schedule
        self._element = str(factors.element)
        self._stored = float_conversions(str(factors.stored), self._element, half=schedule.half)
        self.dots = (schedule.tiles or BF16, WIDENED) if schedule.pairs else ("",)

    def all(self) -> list[Kernel]:
        """Return all kernels that the attention calls."""
        found: list[Kernel] = [self.score(dot) for dot in self.dots]
        found += [self.queries(score) for score in self._f.scores]
        found += [self.output(output, dot) for output in self._f.outputs for dot in self.dots]
        if self._s.pairs:
            found.append(self.values())
        if self._s.tiles:
            found.append(self.squares())
        return found + [self.tile(node) for node in self._f.inputs if self.has_tiles(node)]

    def score(self, dot: str) -> PanelProductKernel:
        """Return the kernel that multiplies keys, where they lie, and packed queries."""
        if self._s.tiles:
            return self._tile_product(dot, in_place=True)
        left, right = self._stored, self._element
        if dot:
            left, right = f"i16:{PAIR} {WORD}", WORD
        return self._product((self._s.rows, self._s.vectors), (left, right), dot, ragged=False)

    def output(self, output: OutputFactors[Any], dot: str) -> PanelProductKernel:
        """Return the kernel that multiplies what scores became and values.

        Of words, two keys are in one in memory of f32, two queries lie side by side.
        """
        if self._s.tiles:
            return self._tile_product(dot, in_place=False)
        left, right = self._element, self._stored
        ragged = output.width % (self._s.lanes * self._s.out_vectors) > 0 and not dot
        if dot:
            left, right = f"{WORD}:{OF} f32" if output.by_row else f"i16:{PAIR} {WORD}", WORD
        return self._product((self._s.out_rows, self._s.out_vectors), (left, right), dot, ragged=ragged)

    def queries(self, score: ScoreFactors[Any]) -> PackKernel:
        """Return the kernel that brings rows of queries into columns."""
        transposed = score.queries.access[-1].dim != self._f.row
        if self._s.pairs:
            return self._words(self._s.queries, transposed=transposed)
        return self._pack(self._element, self._stored, transposes=transposed)

    def values(self) -> PackKernel:
        """Return the kernel that packs values in panels of words."""
        return self._words(self._s.out_vectors * self._s.lanes, transposed=False)

    def squares(self) -> PackKernel:
        """Return the kernel that brings words of what scores became into squares, a row for each query."""
        return dataclasses.replace(self._pack(WORD, WORD, transposes=False), tiles=LEFT_TILES)

    def has_tiles(self, node: Scalar) -> bool:
        """Return whether elements of an input go through memory of the thread, in tiles.

        That is so where they are contiguous along the keys and have to be transposed, and for conditions,
        which are bytes in memory and bits in a vector.
        """
        return self._f.row in node.axes and (str(node.type) == "i1" or self._runs_along_keys(node))

    def tile(self, node: Scalar) -> PackKernel:
        """Return the kernel that writes such tiles."""
        type_ = str(node.type)
        moved = _MOVED.get(type_, type_)
        source = moved if moved == type_ else f"{moved}:{OF} {type_}"
        return self._pack(moved, source, transposes=self._runs_along_keys(node))

    def _runs_along_keys(self, node: Scalar) -> bool:
        return bool(self._f.inputs[node].access[-1].dim == self._f.column)

    def _tile_product(self, dot: str, *, in_place: bool) -> TileProductKernel:
        tile = self._s.rows, self._s.vectors, self._s.lanes
        return TileProductKernel(*tile, self._element, BF16, BF16, streams=False, how=dot, in_place=in_place)

    def _product(
        self, tile: tuple[int, int], factors: tuple[str, str], dot: str, *, ragged: bool
    ) -> ProductKernel:
        s = self._s
        return ProductKernel(
            *tile, s.lanes, self._element, *factors, s.fma, s.masks, ragged, copies=False, dot=dot
        )

    def _words(self, columns: int, *, transposed: bool) -> PackKernel:
        kernel = self._pack(WORD, "i16", transposes=transposed)
        return dataclasses.replace(kernel, columns=columns, vnni=2, info=LEAST)

    def _pack(self, element: str, source: str, *, transposes: bool) -> PackKernel:
        s = self._s
        return PackKernel(s.queries, s.lanes, element, source, transposes=transposes, masks=s.masks)


#: What elements are moved as, where that is something else.
_MOVED = {"i1": "i8", "bf16": "i16", "f16": "i16"}
