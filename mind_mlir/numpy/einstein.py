"""Sums of products in Einstein's notation, each pair of operands as one DotGeneral."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.numpy.arrays import op, together
from mind_mlir.numpy.calling import spelled
from mind_mlir.support import argument_checks
from mind_mlir.tracing.reductions import reduce

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike
    from mind_mlir.tracing.array import TracedArray

_EXAMPLE = "such as 'ij,jk->ik'"


class _Labelled(NamedTuple):
    """An array with a letter for each of its dimensions."""

    array: TracedArray
    labels: str


@spelled("DotGeneral")
def einsum(subscripts: str, /, *operands: ArrayLike) -> Array:
    """Sum products of operands over the dimensions whose letters the result does not have.

    Args:
        subscripts: Letters for the dimensions of each operand, and of the result: ``"bij,bjk->bik"``. Without
            ``->``, the result has the letters that occur once, in alphabetical order. No operand has a letter
            twice, and there is no ellipsis.
        operands: Arrays, multiplied from the left to the right.
    """
    arrays = together(*operands)
    labels, result = _parsed(argument_checks.text(subscripts, "subscripts"), [array.ndim for array in arrays])
    first, *others = [_Labelled(array, letters) for array, letters in zip(arrays, labels, strict=True)]
    for place, other in enumerate(others, start=2):
        needed = {*result}.union(*labels[place:])
        first = _product(
            _summed(first, needed | {*other.labels}), _summed(other, needed | {*first.labels}), needed
        )
    last = _summed(first, {*result})
    return last.array.transpose([last.labels.index(letter) for letter in result])


def _parsed(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of each operand, and of the result."""
    written, arrow, result = subscripts.replace(" ", "").partition("->")
    labels = written.split(",")
    letters = "".join(labels)
    if not arrow:
        result = "".join(sorted(letter for letter in {*letters} if letters.count(letter) == 1))
    wrong = None
    if not all(each.isalpha() and each.isascii() for each in (*labels, result) if each):
        wrong = "hold letters"
    elif [len(each) for each in labels] != ranks:
        wrong = f"have as many letters as the operands have dimensions, {', '.join(map(str, ranks))}"
    elif any(len({*each}) < len(each) for each in (*labels, result)):
        wrong = "name no dimension of one array twice"
    elif not {*result} <= {*letters}:
        wrong = "have letters of operands in the result"
    if wrong:
        raise ValueError(
            f"subscripts must {wrong}, {_EXAMPLE}, not be {argument_checks.describe(subscripts)}"
        )
    return labels, result


def _summed(operand: _Labelled, needed: set[str]) -> _Labelled:
    """Return an operand summed over the dimensions that nothing else has."""
    axes = [axis for axis, letter in enumerate(operand.labels) if letter not in needed]
    if not axes:
        return operand
    total = reduce(operand.array, "Sum", axes, keepdims=False)
    return _Labelled(total, "".join(each for each in operand.labels if each in needed))


def _product(left: _Labelled, right: _Labelled, needed: set[str]) -> _Labelled:
    """Return the product of two operands, summed over what both have and nothing else needs."""
    both = [letter for letter in left.labels if letter in right.labels]
    batch = [letter for letter in both if letter in needed]
    contracted = [letter for letter in both if letter not in needed]
    found = op(
        "DotGeneral",
        left.array,
        right.array,
        batch_lhs=[left.labels.index(letter) for letter in batch],
        batch_rhs=[right.labels.index(letter) for letter in batch],
        contract_lhs=[left.labels.index(letter) for letter in contracted],
        contract_rhs=[right.labels.index(letter) for letter in contracted],
    )
    free = [letter for each in (left, right) for letter in each.labels if letter not in both]
    return _Labelled(found, "".join(batch + free))
