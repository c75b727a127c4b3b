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


def kept(rank: int, whole: Iterable[int]) -> str:
    """Return letters for all of ``rank`` dimensions but those that are ``whole``."""
    places = {axis % rank for axis in whole}
    letters = letters_of(rank)
    return "".join([WHOLE if at in places else letter for at, letter in enumerate(letters)])


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
    operands = [aligned(each.extents, result.extents, letters) for each in use.operands]
    return Dims(tuple(operands), (letters,) * (1 + len(others)), adds=adds)


def adding(use: DimsContext) -> Dims:
    """Add elements, or change their sign: what is made of sums are sums."""
    return elementwise(use, adds=True)


def aligned(shape: Sequence[int], result: Sequence[int], letters: str) -> str:
    """Return letters of a shape that broadcasts to another one: those of that, where it has its extent."""
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
    operand = aligned(use.operands[0].extents, result.extents, letters)
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
