"""Rules of dimensions (`OpDef.dims`) of what works along some of them: rows, sums, products, indices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.ops.dims import WHOLE, Dims, DimsContext, aligned, kept, letters_of

if TYPE_CHECKING:
    from mind_mlir.ops.rules import DimsRule

# Rows


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
    lhs = aligned(left.extents[:-2], batch, letters[:-3]) + (m if left.rank > 1 else "") + k
    rhs = aligned(right.extents[:-2], batch, letters[:-3]) + k + (n if right.rank > 1 else "")
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
