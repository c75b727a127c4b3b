"""Schedules of attention as data, chosen by shape, element size and target."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.costs import tile_cost
from mind_mlir.lowering.schedule.emission.constants import FMA_NS, VECTOR_NS, WAKING_NS
from mind_mlir.lowering.schedule.emission.decision import Choice, chosen
from mind_mlir.lowering.schedule.emission.split import split
from mind_mlir.ops.accumulation import roundings
from mind_mlir.target.abi import OWN_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.program import AttentionProgram
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class Shape:
    """What is computed, and its extents.

    Attributes:
        program: What is computed.
        batch: Heads, of all examples.
        queries: Rows of scores.
        keys: Columns of scores.
        depths: Products in a score, of each kind of scores.
        widths: Columns of each output.
        members: Heads whose elements are summed; one where each has elements of its own.
        short: Whether the factors are bf16.
        pairs: Whether two of their terms may go into a word.
    """

    program: AttentionProgram
    batch: int
    queries: int
    keys: int
    depths: tuple[int, ...]
    widths: tuple[int, ...]
    members: int
    short: bool
    pairs: bool

    @property
    def bits(self) -> int:
        """Width of an accumulator in bits."""
        return int(self.program.scores[0].type.width)

    @property
    def kept(self) -> int:
        """How many arrays of scores are results, or summed over batches."""
        return len(set(self.program.kept))


@dataclasses.dataclass(frozen=True)
class AttentionSchedule:
    """The schedule of an attention: some queries at a time, by calls of kernels for products.

    Scores are transposed, ``[key][query]``: vectors run along queries, and neither keys nor values are moved.

    Attributes:
        lanes: Elements in a vector.
        rows: Keys of the tile of scores.
        vectors: Vectors of queries: of the tile, and of all that is computed at a time.
        out_rows: Rows of the tile of the outputs.
        out_vectors: Vectors in a row of it.
        keys: Keys in a block: all of them, or some, after which what was computed is scaled anew.
        units: Blocks of queries, or heads, in a chunk, the unit of threads.
        together: Heads that are computed side by side, block after block of queries, where elements of them
            are summed; else none.
        visible: Keys beyond query plus this one are left out where ``skips``.
        skips: Whether there are such.
        brief: Whether it is so little work that no thread is to be woken.
        fma: Whether products are fused with their addition.
        masks: Whether vectors at edges are masked.
        half: Whether an instruction converts f16.
        pairs: Whether products are of words of two terms of bf16.
    """

    lanes: int
    rows: int
    vectors: int
    out_rows: int
    out_vectors: int
    keys: int
    units: int
    together: int
    visible: int
    skips: bool
    brief: bool
    fma: bool
    masks: bool
    half: bool
    pairs: bool

    @property
    def queries(self) -> int:
        """Queries that are computed at a time."""
        return self.lanes * self.vectors

    def choices(self, shape: Shape) -> tuple[Choice, ...]:
        """Return what was chosen, for people."""
        whole = self.keys >= shape.keys
        blocks = "scores of a block stay in the cache; sums are scaled when the maximum grows"
        outputs = f"tiles of {self.out_rows} x {self.out_vectors * self.lanes}"
        return chosen(
            ("queries", str(self.queries), "a vector register for each tile of scores"),
            ("keys", "all", "a row of scores at a time fits the cache")
            if whole
            else ("keys", f"{self.keys} at a time", blocks),
            ("scores", f"tiles of {self.rows} x {self.queries}", "fits the vector registers"),
            ("outputs", outputs, "fits the vector registers, and the result"),
            ("chunk", str(self.units), "enough work to be worth a claim"),
            self.pairs and ("terms", "2 at a time", "one instruction multiplies and adds as many"),
            self.together > 0
            and ("heads", f"{self.together} at a time", "a block of queries of each, then sums over heads"),
            self.skips
            and ("skipped", f"keys beyond query + {self.visible}", "a mask hides them from the query"),
        )


def choose_attention_schedule(shape: Shape, target: Target) -> AttentionSchedule | None:
    """Return the schedule of an attention; None if it is rather computed one operation after the other."""
    lanes, program = target.lanes(shape.bits), shape.program
    if min(shape.queries, shape.keys) < FEWEST or max(*shape.depths, *shape.widths) > WIDEST:
        return None
    if not target.masks and any(width % lanes for width in shape.widths):
        return None
    rows, vectors = _tile(_SCORE_TILES, [-(-shape.queries // lanes)], target)
    widths = [-(-width // lanes) for width in shape.widths]
    whole = [tile for tile in _OUT_TILES if target.masks or not any(each % tile[1] for each in widths)]
    out_rows, out_vectors = _tile(whole, widths, target)
    columns, pairs = lanes * out_vectors, shape.pairs and target.bf16_dots and target.masks
    if program.by_row and pairs:
        pairs = _bytes(shape, lanes, columns, pairs=True) <= _ROOM
    if shape.short and target.bf16_dots and not pairs and program.visible is None:
        return None  # products one after the other have an instruction that is twice as fast
    if not program.is_online:  # rows have to stay whole: fewer of them at a time
        while vectors > 1 and _bytes(shape, lanes * vectors, columns, pairs=pairs) > _ROOM:
            rows, vectors = _NARROWER[vectors]
    keys = _BLOCK if program.is_online and shape.keys > _WHOLE else shape.keys
    at_once = -(-shape.queries // (lanes * vectors))
    nanoseconds = _nanoseconds(shape, lanes, at_once)
    together = 0
    if shape.members > 1:
        together = _heads_together(shape, lanes * vectors, target)
        if not together:
            return None
        nanoseconds *= together / shape.batch / at_once
    parts = together or shape.batch * (at_once if program.by_row else 1)
    return AttentionSchedule(
        lanes=lanes,
        rows=rows,
        vectors=vectors,
        out_rows=out_rows,
        out_vectors=out_vectors,
        keys=min(keys, shape.keys),
        units=split(parts, nanoseconds).step,
        together=together,
        visible=program.visible or 0,
        skips=program.visible is not None and program.visible < shape.keys - 1,
        brief=nanoseconds < WAKING_NS,
        fma=target.fma,
        masks=target.masks,
        half=target.half,
        pairs=pairs,
    )


def _bytes(shape: Shape, queries: int, columns: int, *, pairs: bool) -> float:
    """Return the bytes of whole rows of so many queries in a thread, and of panels of so many columns."""
    program, words = shape.program, 0
    # Tiles that all threads see are no memory of a thread.
    arrays: float = len(program.places) - (shape.kept if shape.members > 1 else 0)
    if pairs:
        arrays += len(program.column_terms) / 2
    if pairs and program.by_row:
        panels = sum(-(-width // columns) * columns for width in shape.widths)
        words = -(-shape.keys // 2) * 4 * panels
    return shape.keys * queries * shape.bits // 8 * arrays + words


def _nanoseconds(shape: Shape, lanes: int, at_once: int) -> float:
    """Return how long all of it takes one thread, where queries are computed in so many parts."""
    products = shape.queries * shape.keys * sum((*shape.depths, *shape.widths))
    seen = 1.0
    if shape.program.visible is not None and shape.program.visible < shape.keys // 2:
        # Queries that are computed at once go through all keys that any of them sees.
        seen = (at_once + 1) / (2 * at_once)
    nanoseconds = shape.batch * seen * products / lanes * FMA_NS
    return nanoseconds + shape.batch * seen * shape.queries * shape.keys / lanes * _ELEMENT_STEPS * VECTOR_NS


def _heads_together(shape: Shape, queries: int, target: Target) -> int:
    """Return of how many heads so many queries are summed at once; 0 for too rough a sum."""
    room = target.l3_bytes // 4 // (shape.keys * queries * shape.bits // 8 * shape.kept)
    together = max(1, min(_MOST_TOGETHER, room, shape.batch))
    if together > shape.members:
        return together - together % shape.members
    together = -(-shape.members // -(-shape.members // together))
    return together if together + -(-shape.members // together) <= roundings(shape.members) else 0


def _tile(tiles: Sequence[tuple[int, int]], widths: Sequence[int], target: Target) -> tuple[int, int]:
    """Return the tile, rows and vectors, that wastes the least of rows that are so many vectors wide."""

    def cost(tile: tuple[int, int]) -> float:
        rows, vectors = tile
        steps = sum(-(-width // vectors) * vectors for width in widths)
        return steps * tile_cost(rows, vectors) / (rows * vectors)

    fitting = (tile for tile in tiles if tile[0] * tile[1] + tile[1] + 1 <= target.vector_registers)
    return min(fitting, key=cost)


#: Keys and vectors of queries of the tiles of scores that there are.
_SCORE_TILES = ((8, 3), (8, 2), (4, 4), (4, 2), (6, 2), (4, 1), (8, 1))
#: What comes after a tile of so many vectors where fewer queries are to be computed at a time.
_NARROWER = {4: (8, 2), 3: (8, 2), 2: (8, 1)}
#: Rows and vectors of the tiles of outputs that there are.
_OUT_TILES = ((6, 4), (8, 3), (8, 2), (4, 3), (6, 2), (8, 1), (4, 2), (4, 1))
#: Fewer queries or keys than this are computed one operation after the other.
FEWEST = 16
#: Factors of more columns are no rows of an attention.
WIDEST = 512
#: Bytes of the scores of some queries that a thread keeps.
_ROOM = OWN_BYTES - (96 << 10)
#: Heads that are computed side by side: as many terms are then summed one after the other.
_MOST_TOGETHER = 32
#: Keys that are one block, and those of a block where there are more.
_WHOLE, _BLOCK = 1024, 512
#: Vector operations for an element.
_ELEMENT_STEPS = 30
