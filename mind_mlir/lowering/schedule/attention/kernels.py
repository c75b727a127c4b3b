"""The micro-kernels that an attention calls, known from its schedule long before the calls are emitted."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import OF, PAIR, float_conversions
from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel
from mind_mlir.lowering.schedule.contraction.kernels.product import ProductKernel
from mind_mlir.lowering.schedule.contraction.kernels.vnni import BF16, LEAST, WIDENED, WORD

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.marked import Factors
    from mind_mlir.lowering.schedule.attention.program import AttentionProgram
    from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule
    from mind_mlir.lowering.schedule.contraction.kernels.library import Kernel
    from mind_mlir.lowering.schedule.linalg_view.view import Access
    from mind_mlir.lowering.schedule.scalars.graph import Scalar
    from mind_mlir.mlir.bindings import Type


class AttentionKernels:
    """The kernels of one attention, whose factors are in memory as elements of type ``stored``.

    Attributes:
        dots: The kinds of products: one, or where factors are words the instruction for them, and what is
            called where that would take small numbers for zeros.
    """

    def __init__(self, program: AttentionProgram, schedule: AttentionSchedule, stored: Type) -> None:
        self._p, self._s = program, schedule
        self._element = str(program.scores[0].type)
        self._stored = float_conversions(str(stored), self._element, half=schedule.half)
        self.dots = (BF16, WIDENED) if schedule.pairs else ("",)

    def all(self, factors: Factors) -> list[Kernel]:
        """Return all kernels that the attention calls, whose tensors are ``factors``."""
        found: list[Kernel] = [self.score(dot) for dot in self.dots]
        found += [
            self.queries(transposed=each.queries.access[-1].dim != self._p.row) for each in factors.scores
        ]
        for output, (access, _) in zip(self._p.outputs, factors.outputs, strict=True):
            width = factors.extents[access[-1].dim or 0]
            found += [self.output(width, dot, by_row=output.by_row) for dot in self.dots]
        if self._s.pairs:
            found.append(self.values())
        pairs = zip(self._p.inputs, (source.access for source in factors.inputs), strict=True)
        return found + [self.tile(*each) for each in pairs if self.has_tiles(*each)]

    def score(self, dot: str) -> ProductKernel:
        """Return the kernel that multiplies keys, where they lie, and packed queries."""
        left, right = self._stored, self._element
        if dot:
            left, right = f"i16:{PAIR} {WORD}", WORD
        return self._product((self._s.rows, self._s.vectors), (left, right), dot, ragged=False)

    def output(self, width: int, dot: str, *, by_row: bool) -> ProductKernel:
        """Return the kernel that multiplies what scores became and values of so many columns.

        Of words, two keys are in one in memory of f32, two queries lie side by side.
        """
        left, right = self._element, self._stored
        ragged = width % (self._s.lanes * self._s.out_vectors) > 0 and not dot
        if dot:
            left, right = f"{WORD}:{OF} f32" if by_row else f"i16:{PAIR} {WORD}", WORD
        return self._product((self._s.out_rows, self._s.out_vectors), (left, right), dot, ragged=ragged)

    def queries(self, *, transposed: bool) -> PackKernel:
        """Return the kernel that brings rows of queries into columns."""
        if self._s.pairs:
            return self._words(self._s.queries, transposed=transposed)
        return self._pack(self._element, self._stored, transposes=transposed)

    def values(self) -> PackKernel:
        """Return the kernel that packs values in panels of words."""
        return self._words(self._s.out_vectors * self._s.lanes, transposed=False)

    def has_tiles(self, node: Scalar, access: Access) -> bool:
        """Return whether elements of an input go through memory of the thread, in tiles.

        That is so where they are contiguous along the keys and have to be transposed, and for conditions,
        which are bytes in memory and bits in a vector.
        """
        row, column = self._p.row, self._p.column
        return row in node.axes and (str(node.type) == "i1" or access[-1].dim == column)

    def tile(self, node: Scalar, access: Access) -> PackKernel:
        """Return the kernel that writes such tiles."""
        type_ = str(node.type)
        moved = _MOVED.get(type_, type_)
        source = moved if moved == type_ else f"{moved}:{OF} {type_}"
        return self._pack(moved, source, transposes=access[-1].dim == self._p.column)

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
