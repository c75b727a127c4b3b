"""What moves elements, in front of and behind every kind of schedule: each computes what numpy does.

A sample by itself: each operation that moves elements with each kind of schedule, on both sides, at one size.
``MIND_MLIR_FUZZ=<factor>`` draws of all 280,000 that there are, at all sizes: 30 times as many of each kind.
"""

from __future__ import annotations

import os
from itertools import product
from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest
from differences import difference
from movers import MOVERS, chained
from pairs import Pair, flat, program
from schedule_kinds import KINDS, Kind

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.ops.opdef import MOVABLE, Rounding
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from movers import Mover


RANDOM = "MIND_MLIR_FUZZ" in os.environ
FUZZ = int(os.environ.get("MIND_MLIR_FUZZ", "1"))
#: Pairs of a module: more of them are compiled in less time, and one that is wrong takes longer to find.
BATCH = 12
FRONT, BEHIND = ("given", "made", "shared", "constant", "carried"), ("given", "shared")
SORTS = tuple(dict.fromkeys(mover.sort for mover in MOVERS))


def test_what_moves_elements_is_a_mover() -> None:
    moving = {
        record.opcode
        for record in all_ops()
        if record.examples
        and record.operands
        and record.operands[0].dtypes is MOVABLE
        and record.rounding is Rounding.EXACT
        and not record.vector_operations
        and not record.attribute("mesh")
    }
    # Of one dtype as it is, of another one another number: those do not move elements.
    assert moving - {"StopGradient", "Cast", "Compare"} == {mover.opcode for mover in MOVERS}


def every(kind: Kind, movers: Sequence[Mover], sizes: Sequence[int]) -> Iterator[Pair]:
    """Iterate over the pairs of ``kind`` and ``movers`` that fit together."""
    for size, dtype, mover in product(sizes, kind.dtypes, movers):
        shapes = kind.sizes[size]
        for place in range(-1, len(shapes)):
            for source in FRONT if place >= 0 else BEHIND:
                pair = Pair(kind, shapes, dtype, mover, place, source)
                if pair.fits():
                    yield pair


def sample(kind: Kind) -> Iterator[Pair]:
    """Iterate over pairs of ``kind``: one for each operation, of slices each kind, and side."""
    rng = np.random.default_rng(len(kind.name))
    small = range(min(3, len(kind.sizes)))
    for sort in SORTS:
        movers = [mover for mover in MOVERS if mover.sort == sort]
        found = list(every(kind, movers, [int(rng.choice(small))]))
        for side in (True, False):
            fitting = [pair for pair in found if (pair.place < 0) is side]
            if fitting:
                yield fitting[rng.integers(len(fitting))]


def check(pairs: Sequence[Pair]) -> None:
    """Compare ``pairs``, compiled together, with the interpreter; name the first one that is wrong."""
    lowered, arrays = program(pairs)
    executable = lowered.compile()
    arguments = dict(zip((each.name for each in executable.parameters), arrays, strict=True))
    with np.errstate(all="ignore"):
        expected = mind_mlir.interpret(lowered.module, arguments)
    tolerance = pairs[0].kind.tolerance
    actual = guarded.call_executable(executable, arguments)
    found = [difference(*each, tolerance, 1.0) for each in zip(actual, expected, strict=True)]
    if any(found) and len(pairs) > 1:
        for pair in pairs:
            check([pair])
    assert not any(found), f"{'; '.join(map(str, pairs))}: {found}"


def in_batches(pairs: Sequence[Pair]) -> None:
    """Check ``pairs``, some at a time."""
    for first in range(0, len(pairs), BATCH):
        check(pairs[first : first + BATCH])


@pytest.mark.programs(30)
@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in KINDS])
def test_pairs(kind: Kind) -> None:
    """Each operation that moves elements, in front of and behind each kind of schedule."""
    if not RANDOM:
        in_batches(list(sample(kind)))
        return
    pairs = list(every(kind, MOVERS, range(len(kind.sizes))))
    drawn = np.random.default_rng().permutation(len(pairs))
    in_batches([pairs[place] for place in drawn[: 30 * FUZZ]])


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in KINDS])
def test_two_in_front(kind: Kind) -> None:
    rng = np.random.default_rng(None if RANDOM else 1)
    found: list[Pair] = []
    while len(found) < BATCH // 4 * FUZZ:
        first, second = (MOVERS[place] for place in rng.integers(len(MOVERS), size=2))
        shapes = kind.sizes[rng.integers(min(len(kind.sizes), 99 if RANDOM else 3))]
        place, source = int(rng.integers(len(shapes))), str(rng.choice(FRONT))
        pair = Pair(kind, shapes, str(rng.choice(kind.dtypes)), chained(first, second), place, source)
        found += [pair] if pair.fits() else []
    in_batches(found)


DIFFERENTIABLE = [
    kind for kind in KINDS if kind.name in ("product", "convolution", "softmax", "window sum", "attention")
]


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in DIFFERENTIABLE])
def test_gradients(kind: Kind) -> None:
    """Compiled, the gradient of a pair is what it is interpreted."""
    chosen = [pair for pair in every(kind, MOVERS, [1]) if (pair.dtype, pair.source) == ("f32", "given")]
    rng = np.random.default_rng(7)
    for place in rng.permutation(len(chosen))[: 4 * FUZZ]:
        pair = chosen[place]
        arrays = pair.arguments()
        lowered = mind_mlir.jit(mind_mlir.grad(_total_of(pair))).lower(list(arrays))
        executable = lowered.compile()
        arguments = dict(zip((each.name for each in executable.parameters), arrays, strict=True))
        expected = mind_mlir.interpret(lowered.module, arguments)
        for one, other in zip(executable(**arguments), expected, strict=True):
            assert difference(one, other, max(kind.tolerance, 200), 1.0) is None, str(pair)


def _total_of(pair: Pair) -> Callable[[Any], Any]:
    return lambda operands: sum(mnp.sum(each * each) for each in flat(pair(*operands)))
