"""Words that factors of few bits are packed into, where an instruction multiplies several terms at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.kernels.llvm_text import HALF, SHORT
from mind_mlir.lowering.kernels.summands import PRODUCTS
from mind_mlir.lowering.kernels.tile_operations import SIDE
from mind_mlir.lowering.kernels.vnni import BF16, I8, I8_U8, I16, LEAST, RAISED, SPREAD, SUMS, U8_I8
from mind_mlir.lowering.schedule.contraction import costs
from mind_mlir.lowering.schedule.contraction.schedule import round_up
from mind_mlir.lowering.schedule.linalg_view.values import CASTS
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.geometry import Geometry
    from mind_mlir.lowering.schedule.contraction.match import Contraction, Operand
    from mind_mlir.target import Target


class Words(NamedTuple):
    """The words of both factors, left and right.

    Attributes:
        kind: The kind of dot products; nothing where tiles are multiplied.
        terms: How many terms are in a word.
        sources: How elements become those of words.
        infos: What packing does besides.
        types: What tiles are of.
        summands: Of how many bf16 each element of a factor is the sum.
    """

    kind: str
    terms: int
    sources: tuple[str, str]
    infos: tuple[str, str] = ("", "")
    types: tuple[str, str] = ("", "")
    summands: int = 1

    @property
    def is_tiled(self) -> bool:
        """Whether tiles of them are multiplied."""
        return not self.kind

    @property
    def have_sums(self) -> bool:
        """Whether sums of columns are stored: a column is packed at a time, with all of its steps."""
        return SUMS in self.infos


_BF16, _I16, _I8, _U8 = "i16:short f32", "i16:sext i32", "i8:sext i32", "i8:zext i32"
#: By both factors, as kernels take them: words for vectors.
_FOR_VECTORS = {
    (_BF16, _BF16): Words(BF16, 2, ("i16", "i16"), (LEAST, LEAST)),
    (_I16, _I16): Words(I16, 2, ("i16", "i16")),
    (_I8, _I8): Words(I8, 4, ("i8", "i8"), (RAISED, SUMS)),
    (_U8, _U8): Words(I16, 2, ("i8:zext i16", "i8:zext i16")),
    (_U8, _I8): Words(U8_I8, 4, ("i8", "i8")),
    (_I8, _U8): Words(I8_U8, 4, ("i8", "i8")),
}
_BYTES = {_I8: "i8", _U8: "u8"}
#: Floats that are sums of bf16, and of how many.
_SUMMANDS = {"f32": 3, "i16:bitcast f16:fpext f32": 2}
#: The same for tiles.
_FOR_TILES = {
    (_BF16, _BF16): Words("", 2, ("i16", "i16"), (LEAST, LEAST), (BF16, BF16)),
    **{
        (left, right): Words("", 4, ("i8", "i8"), types=(one, other))
        for left, one in _BYTES.items()
        for right, other in _BYTES.items()
    },
    **{
        (each, each): Words("", 2, (each, each), (SPREAD, SPREAD), (BF16, BF16), count)
        for each, count in _SUMMANDS.items()
    },
}


def words_of(contraction: Contraction, *, tiled: bool) -> Words | None:
    """Return the words that instructions for vectors, or for tiles, take of factors of these types."""
    left, right = (conversions(operand) for operand in (contraction.left, contraction.right))
    return (_FOR_TILES if tiled else _FOR_VECTORS).get((left, right))


def words_for(
    contraction: Contraction, geometry: Geometry, target: Target, once: tuple[bool, bool] = (False, False)
) -> Words | None:
    """Return the words that both factors go into, to be multiplied by one instruction, if they do.

    Of each factor ``once`` tells whether packing it takes no time when the product is computed.
    """
    is_float = contraction.floating
    has_tiles = target.bf16_tiles if is_float else target.integer_tiles
    has_dots = target.bf16_dots if is_float else target.integer_dots
    found = words_of(contraction, tiled=True) if has_tiles else None
    if found is None and has_dots and target.masks:
        found = words_of(contraction, tiled=False)
    if found is None or len(geometry.rows) > 1 or len(geometry.depth) != 1:
        return None
    rows, columns, depth = geometry.rows[0], geometry.columns, geometry.depth[0]
    if 1 not in (rows.left, depth.left) or 1 not in (columns.right, depth.right):
        return None
    few = rows.extent < (costs.LEAST_ROWS_PACKED if geometry.is_strided else costs.LEAST_ROWS)
    if few or columns.extent < costs.LEAST_COLUMNS or depth.extent < costs.LEAST_TERMS:
        return None
    is_for = found.summands == 1 or (target.bf16x6 and _is_faster(found, geometry, once))
    return found if is_for else None


def _is_faster(words: Words, geometry: Geometry, once: tuple[bool, bool]) -> bool:
    """Return whether tiles multiply all summands, and packing takes these, in less time than vectors take.

    Bits depend on that, so that it is asked of no rates that were measured.
    """
    rows, steps = geometry.rows[0].extent, geometry.steps
    vectors = -(-geometry.columns.extent // SIDE)
    right = steps * geometry.columns.extent
    by_vectors = max(rows * steps * vectors * REFERENCE.multiply_add_ns, 4 * right * REFERENCE.byte_ns)
    whole = round_up(rows, SIDE) * round_up(steps, SIDE * words.terms) // words.terms * vectors
    by_tiles = whole * len(PRODUCTS[words.summands]) * REFERENCE.multiply_add_ns / costs.TILE_SPEED
    by_tiles = max(by_tiles, 4 * right * words.summands / words.terms * REFERENCE.byte_ns)
    split = sum(size for size, is_once in zip((rows * steps, right), once, strict=True) if not is_once)
    return by_tiles + split * costs.SPLIT_NS < by_vectors


def conversions(operand: Operand, *, half: bool = True) -> str:
    """Return the element type of ``operand`` in memory and its conversions, as kernels take them.

    Floats of 16 bits are their bits: what is only moved, is moved. One instruction converts f16 if there is
    one for a ``half``.
    """
    element = str(operand.element)
    names = [f"{CASTS[op.name]} {op.results[0].type}" for op in operand.casts]
    if element in ("bf16", "f16"):
        how = SHORT if element == "bf16" else "bitcast f16:fpext" if half else HALF
        element, names[0] = "i16", names[0].replace("fpext", how)
    return ":".join((element, *names))
