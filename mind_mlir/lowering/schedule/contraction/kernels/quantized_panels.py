"""The micro-kernel that packs weights of few bits for products of many rows, blocks of a strip at a time.

A strip is as many rows of weights as a vector has lanes: columns of the product. It is packed as numbers of
f32, element after element of all its columns; or block after block, as words of four bytes for an instruction
that adds as many products, then the scales of its columns, and their zero points. Elements of a block are in
the order in which they come out of memory, as those of activations are.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.quantized_weights import WeightKernel, Weights
from mind_mlir.lowering.schedule.movement.transposition import exchange
from mind_mlir.ops.quantized_formats import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.lowering.schedule.contraction.kernels.llvm_function import Text
    from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import TextValue
    from mind_mlir.lowering.schedule.contraction.kernels.quantized_weights import StepWeights


def block_bytes(lanes: int, *, zeros: bool) -> int:
    """Return the bytes of a block of a strip: words, then scales, and zero points if there are some."""
    return lanes * (BLOCK + 4 + 4 * zeros)


@dataclasses.dataclass(frozen=True)
class PanelKernel(WeightKernel):
    """Packs ``blocks`` blocks of a strip, from block ``first`` on; columns past the last one repeat it.

    Bytes are raised to be unsigned, and are read in vectors of half as many.

    Attributes:
        strip: Columns of a strip: elements of f32 in a vector, 16 for bytes.
    """

    strip: int

    kind = "panel"
    buffers = ("weights", "scales", "zeros", "target")
    numbers = (
        *("weights_first", "scales_first", "zeros_first", "target_first", "columns", "first", "blocks"),
        *("weights_row", "scales_row", "zeros_row", "target_step"),
    )

    def append(self, t: Text) -> None:
        """Append the body: block after block of all columns."""
        weights = Weights(t, self)
        last = t["columns"] - 1
        start = weights.start()
        columns = [t.number(lane).minimum(last) for lane in range(self.strip)]
        rows = [weights.after(start, column) for column in columns]
        write, element = (_write_bytes, "i8") if self.integers else (_write_floats, "f32")
        with t.loop(t["blocks"], t.begin("target", element)) as block:
            place = t["first"] + block.number
            read = (weights.step(row, place, 1, scalars=self.integers) for row in rows)
            block.next(write(t, self, read, block.inside[0]))


def _write_bytes(t: Text, kernel: PanelKernel, columns: Iterator[StepWeights], there: TextValue) -> TextValue:
    """Append a block as words, scales and zero points; return where the next one goes."""
    half = kernel.strip // 2
    read = list(columns)
    held = [each.numbers[0].cast("bitcast", "i32", half) for each in read]
    pairs = [
        left.shuffle(right, range(kernel.strip)) for left, right in zip(held[:half], held[half:], strict=True)
    ]
    for number, value in enumerate(_turned(pairs)):
        (there + 4 * kernel.strip * number).store(value)
    for several, place in (([each.scale for each in read], half), ([each.zero for each in read], half + 1)):
        values = [each for each in several if each is not None]
        if values:
            found = t.poison("f32", len(values))
            for lane, value in enumerate(values):
                found = found.insert(value, lane)
            (there + 4 * kernel.strip * place).store(found)
    return there + block_bytes(kernel.strip, zeros=kernel.zeros)


def _write_floats(
    t: Text, kernel: PanelKernel, columns: Iterator[StepWeights], there: TextValue
) -> TextValue:
    """Append a block as f32, element after element; return where the next one goes."""
    lanes = kernel.strip
    numbers = [[each * read.scale for each in read.numbers] for read in columns]
    for part in range(BLOCK // lanes):
        for lane, value in enumerate(_turned([column[part] for column in numbers])):
            (there + t["target_step"] * (part * lanes + lane)).store(value)
    return there + t["target_step"] * BLOCK


def _turned(rows: list[TextValue]) -> list[TextValue]:
    """Append the transposition of squares, which lie side by side in as many vectors as they have rows."""
    return exchange(rows, lambda left, right, lanes: left.shuffle(right, lanes), rows[0].lanes)
