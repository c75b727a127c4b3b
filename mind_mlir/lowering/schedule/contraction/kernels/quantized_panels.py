"""The micro-kernel that packs weights of few bits for products of many rows, blocks of a strip at a time.

A strip is as many rows of weights as a vector has lanes: columns of the product. It is packed as numbers of
f32, element after element of all its columns; or block after block, as words of four bytes for an instruction
that adds as many products, then the scales of its columns, and their zero points. Elements of a block are in
the order in which they come out of memory, as those of activations are.
"""

from __future__ import annotations

import dataclasses

from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import Text, vector
from mind_mlir.lowering.schedule.contraction.kernels.loops import begin
from mind_mlir.lowering.schedule.contraction.kernels.quantized_weights import WeightKernel, Weights
from mind_mlir.ops.quantized_formats import BLOCK


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
        last = t.binary("sub", "%columns", t.number(1))
        start = weights.start()
        columns = [t.minimum(t.number(lane), last) for lane in range(self.strip)]
        rows = [weights.after(start, column) for column in columns]
        write, element = (_write_bytes, "i8") if self.integers else (_write_floats, "f32")

        def block(number: str, inside: list[str]) -> list[str]:
            return [write(t, self, weights, (rows, t.add("%first", number)), inside[0])]

        t.loop("%blocks", [(begin(t, "target", element), "!llvm.ptr")], block)


def _write_bytes(
    t: Text, kernel: PanelKernel, weights: Weights, block: tuple[list[list[str]], str], there: str
) -> str:
    """Append a block as words, scales and zero points; return where the next one goes."""
    rows, place = block
    half = kernel.strip // 2
    words, narrow = vector(half, "i32"), vector(4 * half, "i8")
    read = [weights.step(row, place, 1, scalars=True) for row in rows]
    held = [t.op(f"llvm.bitcast {each.numbers[0]} : {narrow} to {words}") for each in read]
    pairs = [
        t.shuffle(left, right, list(range(kernel.strip)), words)
        for left, right in zip(held[:half], held[half:], strict=True)
    ]
    type_ = vector(kernel.strip, "i32")
    for number, value in enumerate(turned(t, pairs, type_, half)):
        t.store(value, t.step(there, 4 * kernel.strip * number, "i8"), type_, 4)
    place_of = 4 * kernel.strip * half
    for values in ([each.scale for each in read], *([[each.zero for each in read]] if kernel.zeros else [])):
        t.store(_gathered(t, values), t.step(there, place_of, "i8"), vector(kernel.strip, "f32"), 4)
        place_of += 4 * kernel.strip
    return t.step(there, block_bytes(kernel.strip, zeros=kernel.zeros), "i8")


def _gathered(t: Text, values: list[str]) -> str:
    type_ = vector(len(values), "f32")
    found = t.op(f"llvm.mlir.poison : {type_}")
    for lane, value in enumerate(values):
        found = t.op(f"llvm.insertelement {value}, {found}[{t.number(lane)} : i64] : {type_}")
    return found


def _write_floats(
    t: Text, kernel: PanelKernel, weights: Weights, block: tuple[list[list[str]], str], there: str
) -> str:
    """Append a block as f32, element after element; return where the next one goes."""
    rows, place = block
    lanes, type_ = kernel.strip, vector(kernel.strip, "f32")
    columns = []
    for row in rows:
        read = weights.step(row, place, 1)
        columns.append([t.binary("fmul", each, read.scale, type_) for each in read.numbers])
    for part in range(BLOCK // lanes):
        for lane, value in enumerate(turned(t, [column[part] for column in columns], type_, lanes)):
            offset = t.mul("%target_step", t.number(part * lanes + lane))
            t.store(value, t.step(there, offset, "f32"), type_, 4)
    return t.step(there, t.mul("%target_step", t.number(BLOCK)), "f32")


def turned(t: Text, rows: list[str], type_: str, size: int) -> list[str]:
    """Append the transposition of squares of ``size``, which lie side by side in as many vectors."""
    lanes = int(type_.removeprefix("vector<").split("x")[0])
    found = list(rows)
    distance = size // 2
    while distance:
        for first in range(size):
            if first & distance:
                continue
            left, right = found[first], found[first + distance]
            own = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
            other = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
            found[first] = t.shuffle(left, right, own, type_)
            found[first + distance] = t.shuffle(left, right, other, type_)
        distance //= 2
    return found
