"""How the dimensions of an operation's operands and results belong together (`OpDef.dims`).

As in einsum, each dimension has a letter: those with one letter run over the same places, so that the ranks
of a mesh may each compute a part of them. ``ab,bc->ac`` is a product of matrices. Other dimensions, ``*``,
are whole on every rank. Partitioning a program is propagating which axes of a mesh divide which letters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from string import ascii_letters
from typing import TYPE_CHECKING, Any

from mind_mlir.ops.axes import sliced_positions
from mind_mlir.ops.infer import normal_attributes
from mind_mlir.ops.opdef import Movement, OpDef
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import CoreOperation
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ops.rules import DimsRule

#: The letter of dimensions that are whole on every rank.
WHOLE = "*"


@dataclass(frozen=True, slots=True)
class DimsContext:
    """An operation as rules of dimensions see it: a verified one.

    Attributes:
        record: Its record.
        operands: The types of its operands.
        results: Those of its results.
        attributes: Its attributes, complete and in normal form.
    """

    record: OpDef
    operands: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    attributes: Mapping[str, Any]

    @staticmethod
    def of(record: OpDef, operation: CoreOperation, operands: Sequence[TensorType]) -> DimsContext:
        """Return an operation whose operands have the types given."""
        attributes = normal_attributes(record, operation.attributes, operation.result_type)
        return DimsContext(record, tuple(operands), operation.result_types, attributes)


@dataclass(frozen=True, slots=True)
class Dims:
    """The letters of an operation.

    Attributes:
        operands: For each operand a letter for each dimension.
        results: The same for the results.
        joined: How the results of parts of a letter that no result has are joined: a kind of `AllReduce`.
            What is not here cannot be divided.
        adds: Whether what it makes of sums, of all operands alike, is the sum of what it makes of the terms.
        local: The attributes of the operation on parts, from its own and the type of its first result there,
            where these are others.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]
    joined: Mapping[str, str] = field(default_factory=FrozenDict)
    adds: bool = False
    local: Callable[[TensorType], Mapping[str, AttributeValue]] = lambda _: {}


def letters_of(count: int, first: int = 0) -> str:
    """Return letters that differ from one another, and from those before ``first``."""
    return "".join([ascii_letters[n] if n < 52 else chr(0x100 + n) for n in range(first, first + count)])


def dims_of(use: DimsContext) -> Dims | None:
    """Return the letters of an operation, from its record or from its class; None where it has no rule."""
    record = use.record
    if record.dims is not None:
        return record.dims(use)
    if record.movement is not None:
        return _MOVEMENTS[record.movement](use)
    return elementwise(use) if record.vector_operations else None


# Elements


def elementwise(use: DimsContext, *, adds: bool = False) -> Dims:
    """Compute elements of those at the same places; shapes are aligned from the right and broadcast."""
    (result, *others) = use.results
    letters = letters_of(result.rank)
    operands = [_aligned(each.extents, result.extents, letters) for each in use.operands]
    return Dims(tuple(operands), (letters,) * (1 + len(others)), adds=adds)


def adding(use: DimsContext) -> Dims:
    """Add elements, or change their sign: what is made of sums are sums."""
    return elementwise(use, adds=True)


def _aligned(shape: Sequence[int], result: Sequence[int], letters: str) -> str:
    first = len(result) - len(shape)
    pairs = zip(shape, result[first:], letters[first:], strict=True)
    return "".join([letter if extent == whole else WHOLE for extent, whole, letter in pairs])


# Movement


def _reshaping(use: DimsContext) -> Dims:
    """Let dimensions that stay have a letter, and the first ones of those that are cut or merged, too."""
    before, after = use.operands[0].extents, use.results[0].extents
    old, new = [WHOLE] * len(before), [WHOLE] * len(after)
    if 0 not in before:
        for count, (here, there) in enumerate(_groups(before, after)):
            old[here] = new[there] = letters_of(1, count)
    named = {"new_shape"} & use.attributes.keys()
    return Dims(
        ("".join(old),),
        ("".join(new),),
        adds=True,
        local=lambda type_: dict.fromkeys(named, type_.extents),
    )


def _groups(before: Sequence[int], after: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Yield the outermost dimensions of each group that has the same elements before and after."""
    here = there = 0
    while here < len(before) and there < len(after):
        if before[here] == 1 or after[there] == 1:
            here, there = here + (before[here] == 1), there + (before[here] != 1)
            continue
        yield here, there
        left, right = before[here], after[there]
        while left != right:
            if left < right:
                here += 1
                left *= before[here]
            else:
                there += 1
                right *= after[there]
        here, there = here + 1, there + 1


def _permuting(use: DimsContext) -> Dims:
    letters = letters_of(use.operands[0].rank)
    moved = "".join([letters[place] for place in use.attributes["permutation"]])
    return Dims((letters,), (moved,), adds=True)


def _broadcasting(use: DimsContext) -> Dims:
    result = use.results[0]
    letters = letters_of(result.rank)
    operand = _aligned(use.operands[0].extents, result.extents, letters)
    return Dims((operand,), (letters,), local=lambda type_: {"result_shape": type_.extents})


def _tiling(use: DimsContext) -> Dims:
    letters = kept(use.operands[0].rank, [at for at, n in enumerate(use.attributes["repeats"]) if n != 1])
    return Dims((letters,), (letters,))


def _slicing(use: DimsContext) -> Dims:
    shape = use.operands[0].extents
    taken = sliced_positions(use.attributes, shape)
    letters = kept(len(shape), [at for at, extent in enumerate(shape) if taken[at] != range(extent)])
    starts, ends, steps = (list(use.attributes[name]) for name in ("starts", "ends", "steps"))

    def local(type_: TensorType) -> Mapping[str, AttributeValue]:
        for at, letter in enumerate(letters):
            if letter != WHOLE:
                starts[at], ends[at], steps[at] = 0, type_.extents[at], 1
        return {"starts": tuple(starts), "ends": tuple(ends), "steps": tuple(steps)}

    return Dims((letters,), (letters,), adds=True, local=local)


_MOVEMENTS: Mapping[Movement, DimsRule] = {
    Movement.RESHAPE: _reshaping,
    Movement.PERMUTATION: _permuting,
    Movement.BROADCAST: _broadcasting,
    Movement.REPETITION: _tiling,
    Movement.SELECTION: _slicing,
}


# Rows


def kept(rank: int, whole: Iterable[int]) -> str:
    """Return letters for all of ``rank`` dimensions but those that are ``whole``."""
    places = {axis % rank for axis in whole}
    letters = letters_of(rank)
    return "".join([WHOLE if at in places else letter for at, letter in enumerate(letters)])


def along(whole: Callable[[DimsContext], Iterable[int]]) -> DimsRule:
    """Return the rule of what works along some dimensions of its first operand and leaves others alone.

    Other operands of its rank have these, too; results have them, or only those that are left.
    """

    def rule(use: DimsContext) -> Dims:
        rank = use.operands[0].rank
        letters = kept(rank, whole(use))
        operands = [letters if each.rank == rank else WHOLE * each.rank for each in use.operands]
        results = [letters if each.rank == rank else letters.replace(WHOLE, "") for each in use.results]
        return Dims(tuple(operands), tuple(results))

    return rule


#: Works along the dimension that attribute `axis` names.
along_axis = along(lambda use: (use.attributes["axis"],))


def reducing(kind: Callable[[Mapping[str, Any]], str | None], *, all_of_none: bool = False) -> DimsRule:
    """Return the rule of reductions along `axes`, whose parts are joined by a kind of `AllReduce`, if any."""

    def rule(use: DimsContext) -> Dims:
        rank = use.operands[0].rank
        axes = {axis % rank for axis in use.attributes["axes"]}
        if all_of_none and not axes:
            axes = set(range(rank))
        letters, how = letters_of(rank), kind(use.attributes)
        result = [WHOLE if at in axes else letter for at, letter in enumerate(letters)]
        if use.results[0].rank < rank:
            result = [letter for letter in result if letter != WHOLE]
        if how is None:
            return Dims((kept(rank, axes) if axes else letters,), ("".join(result),))
        joined = {letters[axis]: how for axis in sorted(axes)}
        return Dims((letters,), ("".join(result),), joined, adds=how == "sum")

    return rule


# Arrays that are made


def making(use: DimsContext) -> Dims:
    """Make an array of a shape, which grows along an axis."""
    letters = kept(use.results[0].rank, (use.attributes["axis"],))
    return Dims((), (letters,), local=lambda type_: {"shape": type_.extents})


# Products


def multiplying(use: DimsContext) -> Dims:
    """Multiply vectors and matrices; dimensions in front of matrices are a batch, and broadcast."""
    left, right = use.operands
    batch = use.results[0].extents[:-2] if max(left.rank, right.rank) > 2 else ()
    letters = letters_of(len(batch) + 3)
    k, m, n = list(letters[-3:])
    lhs = _aligned(left.extents[:-2], batch, letters[:-3]) + (m if left.rank > 1 else "") + k
    rhs = _aligned(right.extents[:-2], batch, letters[:-3]) + k + (n if right.rank > 1 else "")
    result = letters[:-3] + (m if left.rank > 1 else "") + (n if right.rank > 1 else "")
    return Dims((lhs, rhs), (result,), {k: "sum"})


def multiplying_in_general(use: DimsContext) -> Dims:
    """Multiply over any dimensions."""
    ranks = [each.rank for each in use.operands]
    sides = []
    for side, rank in zip(("lhs", "rhs"), ranks, strict=True):
        batch, contracted = (
            [a % rank for a in use.attributes[f"{role}_{side}"]] for role in ("batch", "contract")
        )
        sides.append((batch, contracted))
    batch_count, contracted_count = map(len, sides[0])
    shared, summed = letters_of(batch_count), letters_of(contracted_count, batch_count)
    used, operands, free = batch_count + contracted_count, [], ""
    for (batch, contracted), rank in zip(sides, ranks, strict=True):
        known = {**dict(zip(batch, shared, strict=True)), **dict(zip(contracted, summed, strict=True))}
        more = iter(letters_of(rank - len(known), used))
        used += rank - len(known)
        labels = [known.get(at) or next(more) for at in range(rank)]
        operands.append("".join(labels))
        free += "".join([letter for at, letter in enumerate(labels) if at not in known])
    return Dims(tuple(operands), (shared + free,), dict.fromkeys(summed, "sum"))


def convolving(use: DimsContext) -> Dims:
    """Convolve `[N, space..., C]` with `[window..., C, F]`: images, channels and features may be divided."""
    space = use.operands[0].rank - 2
    whole = WHOLE * space
    if use.attributes.get("groups", 1) != 1:
        return Dims((f"n{whole}*", f"{whole}**"), (f"n{whole}*",))
    return Dims((f"n{whole}c", f"{whole}cf"), (f"n{whole}f",), {"c": "sum"})


# Indices


def taking(use: DimsContext) -> Dims:
    """Take rows of a table: the features of the table, or the indices, may be divided."""
    table, indices = use.operands
    features, places = letters_of(table.rank - 1), letters_of(indices.rank, table.rank - 1)
    return Dims((WHOLE + features, places), (places + features,))


def taking_elements(use: DimsContext) -> Dims:
    """Take elements along an axis, at the same places of all others."""
    rank = use.operands[0].rank
    letters, axis = letters_of(rank), use.attributes["axis"] % rank
    return Dims((letters[:axis] + WHOLE + letters[axis + 1 :], letters), (letters,))


def picking(use: DimsContext) -> Dims:
    """Read at indices that the program names."""
    count = len(use.attributes["indices"])
    letters = letters_of(use.operands[0].rank - count)
    return Dims((WHOLE * count + letters,), (letters,))


def windowing(use: DimsContext) -> Dims:
    """Read or write a window that begins somewhere: along dimensions of which it has all."""
    whole, window = use.operands[0].extents, (*use.results, *use.operands[1:-1])[-1].extents
    letters = kept(len(whole), [at for at, extent in enumerate(whole) if window[at] != extent])
    arrays = (letters,) * (len(use.operands) - 1)
    sized = {"sizes"} & use.attributes.keys()
    return Dims((*arrays, WHOLE), (letters,), local=lambda type_: dict.fromkeys(sized, type_.extents))


def scattering(use: DimsContext) -> Dims:
    """Add windows to an array: along dimensions of which they have all, and which no index names."""
    operand, indices, updates = use.operands
    given = use.attributes
    inserted = {axis % operand.rank for axis in given["inserted_window_dims"]}
    named = {axis % operand.rank for axis in given["scatter_dims_to_operand_dims"]}
    letters = letters_of(operand.rank)
    window = [axis for axis in range(operand.rank) if axis not in inserted]
    of_operand, of_updates = [WHOLE] * operand.rank, [WHOLE] * updates.rank
    for axis, place in zip(window, given["update_window_dims"], strict=True):
        if axis not in named and operand.extents[axis] == updates.extents[place % updates.rank]:
            of_operand[axis] = of_updates[place % updates.rank] = letters[axis]
    text = "".join(of_operand)
    return Dims((text, WHOLE * indices.rank, "".join(of_updates)), (text,))


def padding(use: DimsContext) -> Dims:
    """Pad some dimensions."""
    given = [use.attributes[name] for name in ("low", "high", "interior")]
    padded = [at for at, numbers in enumerate(zip(*given, strict=True)) if any(numbers)]
    letters = kept(use.operands[0].rank, padded)
    return Dims((letters,), (letters,))
