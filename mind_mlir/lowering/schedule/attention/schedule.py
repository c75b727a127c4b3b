"""Schedules of attention as data, chosen by shape, element size and target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import WAKING_NS
from mind_mlir.lowering.emission.decision import Computed, Decision, chosen
from mind_mlir.lowering.emission.split import split
from mind_mlir.lowering.kernels.tile_operations import EMULATED, INSTRUCTIONS, SIDE
from mind_mlir.lowering.schedule.contraction.costs import tile_cost
from mind_mlir.lowering.schedule.contraction.schedule import instructions
from mind_mlir.ops.accumulation import roundings
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.abi import OWN_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.factors import Factors
    from mind_mlir.lowering.schedule.scalars.axes import Source
    from mind_mlir.target import Target


@dataclass(frozen=True)
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
        tiles: How tiles of these are multiplied, as `kernels.tile_operations` has it, if they are.
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
    tiles: str = ""

    @property
    def queries(self) -> int:
        """Queries that are computed at a time."""
        return self.lanes * self.vectors

    def decision(self, factors: Factors[Source], operations: tuple[Computed, ...]) -> Decision:
        """Return what was chosen for an attention that is ``operations``, for people."""
        blocks = "scores of a block stay in the cache; sums are scaled when the maximum grows"
        outputs = f"tiles of {self.out_rows} x {self.out_vectors * self.lanes}"
        registers = "tile" if self.tiles else "vector"
        choices = chosen(
            ("queries", str(self.queries), "a vector register for each tile of scores"),
            ("keys", "all", "a row of scores at a time fits the cache")
            if self.keys >= factors.keys
            else ("keys", f"{self.keys} at a time", blocks),
            ("scores", f"tiles of {self.rows} x {self.queries}", f"fits the {registers} registers"),
            ("outputs", outputs, f"fits the {registers} registers, and the result"),
            ("chunk", str(self.units), "enough work to be worth a claim"),
            self.pairs and ("terms", "2 at a time", "one instruction multiplies and adds as many"),
            self.together > 0
            and ("heads", f"{self.together} at a time", "a block of queries of each, then sums over heads"),
            self.skips
            and ("skipped", f"keys beyond query + {self.visible}", "a mask hides them from the query"),
        )
        extents = (factors.heads, factors.queries, factors.keys, *factors.sizes)
        return Decision("attention", operations, extents, choices)


def choose_attention_schedule(factors: Factors[Source], target: Target) -> AttentionSchedule | None:
    """Return the schedule of an attention; None if it is rather computed one operation after the other."""
    lanes, program = target.lanes(factors.element.width), factors.program
    if min(factors.queries, factors.keys) < FEWEST or max(factors.sizes) > WIDEST:
        return None
    if not target.masks and any(output.width % lanes for output in factors.outputs):
        return None
    rows, vectors = _tile(_SCORE_TILES, [-(-factors.queries // lanes)], target)
    widths = [-(-output.width // lanes) for output in factors.outputs]
    whole = [tile for tile in _OUT_TILES if target.masks or not any(each % tile[1] for each in widths)]
    out_rows, out_vectors = _tile(whole, widths, target)
    columns, is_short = lanes * out_vectors, str(factors.stored) == "bf16"
    pairs = is_short and target.bf16_dots and target.masks and _in_pairs(factors)
    if program.by_row and pairs:
        pairs = _bytes(factors, lanes, columns, pairs=True) <= _ROOM
    tiles = _tiles(factors, target) if pairs else ""
    if tiles:
        (rows, vectors), (out_rows, out_vectors) = _SQUARE, _SQUARE
    if is_short and target.bf16_dots and not pairs and program.visible is None:
        return None  # products one after the other have an instruction that is twice as fast
    if not program.is_online:  # rows have to stay whole: fewer of them at a time
        while vectors > 1 and _bytes(factors, lanes * vectors, columns, pairs=pairs) > _ROOM:
            rows, vectors = _NARROWER[vectors]
    keys = _BLOCK if program.is_online and factors.keys > _WHOLE else factors.keys
    at_once = -(-factors.queries // (lanes * vectors))
    nanoseconds = _nanoseconds(factors, lanes * (2 if pairs else 1), at_once, target)
    together = 0
    if factors.members > 1:
        together = _heads_together(factors, lanes * vectors, target)
        if not together:
            return None
        nanoseconds *= together / factors.heads / at_once
    parts = together or factors.heads * (at_once if program.by_row else 1)
    return AttentionSchedule(
        lanes=lanes,
        rows=rows,
        vectors=vectors,
        out_rows=out_rows,
        out_vectors=out_vectors,
        keys=min(keys, factors.keys),
        units=split(parts, nanoseconds).step,
        together=together,
        visible=program.visible or 0,
        skips=program.visible is not None and program.visible < factors.keys - 1,
        brief=nanoseconds < WAKING_NS,
        pairs=pairs,
        tiles=tiles,
        **instructions(target),
    )


def _in_pairs(factors: Factors[Source]) -> bool:
    """Return whether two terms of each product of bf16 may go into a word.

    Keys are read where they lie: their features are contiguous, and of an even number. The terms of outputs
    are numbers of bf16, and computed by the last pass over the scores; none of them is a result itself.
    """
    if any(score.keys.access[-1].dim != score.dim or score.depth % 2 for score in factors.scores):
        return False
    program = factors.program
    terms, computed = set(program.terms), program.stages[-1].stores.keys()
    are_short = all(node.name == "arith.extf" and str(node.operands[0].type) == "bf16" for node in terms)
    return are_short and terms <= computed and terms.isdisjoint(program.kept)


def _tiles(factors: Factors[Source], target: Target) -> str:
    """Return how tiles of words are multiplied, or nothing where they are not.

    Tiles read keys where they lie, all of their rows and columns; what scores become is packed.
    """
    rows, vectors = _SQUARE
    queries, arrays = vectors * SIDE, len(factors.program.places) + len(set(factors.program.terms)) / 2
    whole = factors.keys % rows == 0 and all(score.depth % (2 * SIDE) == 0 for score in factors.scores)
    if not (target.bf16_tiles and factors.program.by_row and whole) or factors.queries < queries:
        return ""
    values = sum(-(-output.width // queries) * queries * 2 * factors.keys for output in factors.outputs)
    if 4 * queries * factors.keys * arrays + values > _ROOM:
        return ""
    return EMULATED if target.emulates_tiles else INSTRUCTIONS


def _bytes(factors: Factors[Source], queries: int, columns: int, *, pairs: bool) -> float:
    """Return the bytes of whole rows of so many queries in a thread, and of panels of so many columns."""
    program, words = factors.program, 0
    # Tiles that all threads see are no memory of a thread.
    arrays: float = len(program.places) - (len(set(program.kept)) if factors.members > 1 else 0)
    if pairs:
        arrays += len(program.column_terms) / 2
    if pairs and program.by_row:
        panels = sum(-(-output.width // columns) * columns for output in factors.outputs)
        words = -(-factors.keys // 2) * 4 * panels
    return factors.score_bytes * queries * arrays + words


def _nanoseconds(factors: Factors[Source], terms: int, at_once: int, target: Target) -> float:
    """Return how long all of it takes one thread, where queries are computed in so many parts.

    An instruction multiplies so many ``terms``.
    """
    rates, lanes = target.rates, target.lanes(factors.element.width)
    products = factors.queries * factors.keys * sum(factors.sizes)
    seen = 1.0
    if factors.program.visible is not None and factors.program.visible < factors.keys // 2:
        # Queries that are computed at once go through all keys that any of them sees.
        seen = (at_once + 1) / (2 * at_once)
    elements = factors.heads * seen * factors.queries * factors.keys
    nanoseconds = factors.heads * seen * products / terms * rates.multiply_add_ns
    return nanoseconds + elements / lanes * _ELEMENT_STEPS * rates.vector_ns


def _heads_together(factors: Factors[Source], queries: int, target: Target) -> int:
    """Return of how many heads so many queries are summed at once; 0 for too rough a sum."""
    members, arrays = factors.members, len(set(factors.program.kept))
    room = target.l3_bytes // 4 // (factors.score_bytes * queries * arrays)
    together = max(1, min(_MOST_TOGETHER, room, factors.heads))
    if together > members:
        return together - together % members
    together = -(-members // -(-members // together))
    return together if together + -(-members // together) <= roundings(members) else 0


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
#: Those of both where AMX multiplies tiles: 2 x 2 of these.
_SQUARE = 2 * SIDE, 2
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
