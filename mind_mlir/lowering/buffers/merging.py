"""Neighbouring parallel loops as one, where each chunk needs of the others what it has computed itself.

A softmax is three nests over the same rows. One after the other, each waits for all threads to be done with
the one before, and finds its rows in memory again. As one loop, a chunk goes through all three with its rows,
which stay in the cache. That this is the same is shown by the elements that an iteration of each loop
touches: those of one chunk lie within a window of each buffer that is written, and windows do not overlap.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.buffers.footprint import Touch, bounds_of, touched
from mind_mlir.lowering.buffers.kernel_footprint import ProductKernels
from mind_mlir.lowering.buffers.private import make_private
from mind_mlir.lowering.buffers.spans import Span, hull
from mind_mlir.lowering.emission.emitter import BRIEF_ATTRIBUTE, PARALLEL_ATTRIBUTE
from mind_mlir.mlir.bindings import arith, func, ir, scf
from mind_mlir.mlir.memory import VIEWS
from mind_mlir.mlir.passes import find_all
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.mlir.bindings import Block, Module, Operation, Value

#: Operations between two loops that may as well stand before both.
MOVABLE = (
    *VIEWS,
    "arith.constant",
    "memref.alloc",
    "memref.extract_strided_metadata",
    "memref.get_global",
)
#: Runs that go on beside one another: a few, for time is to be linear in the number of loops.
_RUNNING = 8
#: A merged loop has at least so many chunks, unless its parts have fewer: enough for threads to share.
_CHUNKS = 8


class _Part(NamedTuple):
    """A loop that is to be merged with others.

    Attributes:
        loop: The loop.
        trips: How many iterations it has.
        parallel: Whether they are known to be independent.
        touches: What each of them touches.
        rate: How many of them make up as much as how many of the other parts.
    """

    loop: Operation
    trips: int
    parallel: bool
    touches: dict[Value, Touch]
    rate: Fraction


def merge_parallel_loops(module: Module) -> None:
    """Merge neighbouring parallel loops of ``module``, and small loops that follow them, where that is sound.

    What only one merged loop uses, and a chunk finds only where it has written itself, becomes memory of that
    chunk (see `make_private`).

    Args:
        module: A bufferized module whose buffers are not placed yet: each is memory of its own.
    """
    kernels = ProductKernels(module)
    for function in module.body.operations:
        if not isinstance(function, func.FuncOp):
            continue
        loops = [loop.operation for loop in find_all(function, scf.ForOp) if is_parallel(loop)]
        for block in dict.fromkeys(loop.block for loop in loops):
            for run in _runs(block, kernels):
                deliver()
                _merge(run)


def is_parallel(op: Operation) -> bool:
    """Return whether ``op`` is a loop whose iterations may run in any order and at the same time."""
    return op.operation.name == "scf.for" and PARALLEL_ATTRIBUTE in op.attributes


def _runs(block: Block, kernels: ProductKernels) -> list[list[_Part]]:
    """Return what is to be merged in ``block``: two loops or more each, some of them parallel.

    Each run takes the place of its last loop. What stands between its loops is another run, which touches
    nothing that matters to it: runs that do are one, or the one before is complete.
    """
    found = [run for loops in _neighbours(block) for run in _runs_of(loops, kernels)]
    return [run for run in found if len(run) > 1 and any(part.parallel for part in run)]


def _neighbours(block: Block) -> list[list[Operation]]:
    """Return the loops of ``block`` with nothing between that matters, two or more each, one parallel."""
    found: list[list[Operation]] = [[]]
    for view in block.operations:
        op = view.operation
        name = op.name
        if name == "scf.for" and not op.results:
            found[-1].append(op)
        elif name not in MOVABLE and found[-1]:
            found.append([])
    return [loops for loops in found if len(loops) > 1 and any(is_parallel(loop) for loop in loops)]


def _runs_of(loops: Sequence[Operation], kernels: ProductKernels) -> list[list[_Part]]:
    complete: list[list[_Part]] = []
    running: list[list[_Part]] = []
    for loop in loops:
        part = _part(loop, kernels)
        if part is None:
            complete += running
            running = []
            continue
        before = [run for run in running if _depends(part, run)]
        running = [run for run in running if all(run is not other for other in before)]
        joined = _joined(part, before)
        if joined is None and len(before) > 1:
            joined = _joined(part, before[-1:])
            complete += before if joined is None else before[:-1]
        elif joined is None:
            complete += before
        running.append(joined or [part])
        if len(running) > _RUNNING:
            complete.append(running.pop(0))
    return complete + running


def _part(loop: Operation, kernels: ProductKernels) -> _Part | None:
    """Return ``loop`` as the first part of a run; None if it cannot be one of any."""
    bounds = bounds_of(loop)
    if bounds is None or bounds[0] != 0 or bounds[1] < 1:
        return None
    touches = touched(loop, kernels)
    if touches is None:
        return None
    return _Part(loop, -(-bounds[1] // bounds[2]), is_parallel(loop), touches, Fraction(1))


def _depends(part: _Part, run: list[_Part]) -> bool:
    """Return whether ``part`` has to stay behind one of ``run``."""
    return any(
        part.touches[root].writes or touch.writes
        for before in run
        for root, touch in before.touches.items()
        if root in part.touches
    )


def _joined(part: _Part, runs: list[list[_Part]]) -> list[_Part] | None:
    """Return ``part`` and the ``runs`` before it as one; None if they cannot be merged."""
    joined: list[_Part] = []
    for run in runs:
        rates = {
            before.rate * one.pitch / other.pitch
            for before in run
            for one, other in _shared(before.touches, part.touches)
            if one.pitch > 0 and other.pitch > 0
        }
        if len(rates) != 1:
            return None
        rate = rates.pop()
        joined += [before._replace(rate=before.rate / rate) for before in run]
    joined.append(part)
    return joined if _is_sound(joined) else None


def _shared(one: dict[Value, Touch], other: dict[Value, Touch]) -> list[tuple[Span, Span]]:
    """Return what is known to be touched of the buffers that both touch and one of them writes."""
    found = []
    for root, mine in one.items():
        theirs = other.get(root)
        if theirs is not None and (mine.writes or theirs.writes) and mine.span and theirs.span:
            found.append((mine.span, theirs.span))
    return found


def _counts(run: list[_Part]) -> list[int]:
    """Return how many iterations of each part make up a chunk: the fewest possible."""
    scale = math.lcm(*(part.rate.denominator for part in run))
    counts = [int(part.rate * scale) for part in run]
    return [count // math.gcd(*counts) for count in counts]


def _is_sound(run: list[_Part]) -> bool:
    """Return whether chunks of all parts of ``run``, one after the other, compute what its loops do."""
    counts = _counts(run)
    chunks = {-(-part.trips // count) for part, count in zip(run, counts, strict=True)}
    if len(chunks) != 1 or min(chunks) < min([_CHUNKS, *(part.trips for part in run if part.parallel)]):
        return False
    for root in _written(run):
        spans = [
            (part.touches[root].span, count)
            for part, count in zip(run, counts, strict=True)
            if root in part.touches
        ]
        windows = []
        for span, count in spans:
            if span is None or span.pitch <= 0:
                return False
            windows.append(span.of_several(count))
        window = hull(windows)
        if window is None or window.high - window.low >= window.pitch:
            return False
    return True


def _written(run: list[_Part]) -> Iterable[Value]:
    """Return the buffers that are written, but for those of which a parallel loop alone takes care."""
    users: dict[Value, list[_Part]] = {}
    for part in run:
        for root in part.touches:
            users.setdefault(root, []).append(part)
    return [
        root
        for root, parts in users.items()
        if any(part.touches[root].writes for part in parts) and (len(parts) > 1 or not parts[0].parallel)
    ]


def _merge(run: list[_Part]) -> None:
    """Replace the loops of ``run`` by one."""
    last = run[-1].loop
    counts = _counts(run)
    chunks = -(-run[0].trips // counts[0])
    with ir.InsertionPoint(last), run[0].loop.location as location:
        is_brief = all(BRIEF_ATTRIBUTE in part.loop.attributes for part in run if part.parallel)
        merged = parallel_loop(chunks, is_brief=is_brief)
    body = merged.regions[0].blocks[0]
    number = body.arguments[0]
    for part, count in zip(run, counts, strict=True):
        loop = part.loop
        bounds = bounds_of(loop)
        assert bounds is not None
        if count == 1:
            append_iteration(body, loop, _multiple(body, loop, bounds[2]))
            continue
        loop.detach_from_parent()
        body.append(loop)
        for name in (PARALLEL_ATTRIBUTE, BRIEF_ATTRIBUTE):
            if name in loop.attributes:
                del loop.attributes[name]
        with ir.InsertionPoint(loop), loop.location:
            size = arith.ConstantOp(ir.IndexType.get(), count * bounds[2]).result
            start = arith.MulIOp(number, size).result
            end = arith.AddIOp(start, size).result
            if part.trips % count:
                end = arith.MinUIOp(end, loop.operands[1]).result
        loop.operands[0], loop.operands[1] = start, end
    with ir.InsertionPoint(body), location:
        scf.YieldOp([])
    make_private(merged.operation, [(part.touches, count) for part, count in zip(run, counts, strict=True)])


def parallel_loop(trips: int, *, is_brief: bool) -> Operation:
    """Emit a parallel loop without a body yet."""
    index = ir.IndexType.get()
    zero, upper, one = (arith.ConstantOp(index, value).result for value in (0, trips, 1))
    loop = scf.ForOp(zero, upper, one)
    loop.attributes[PARALLEL_ATTRIBUTE] = ir.UnitAttr.get()
    if is_brief:
        loop.attributes[BRIEF_ATTRIBUTE] = ir.UnitAttr.get()
    return loop


def _multiple(body: Block, loop: Operation, step: int) -> Value:
    """Return the number of the iteration of a loop around ``body`` times ``step``, for ``loop``."""
    number = body.arguments[0]
    if step == 1:
        return number
    with ir.InsertionPoint(body), loop.location:
        return arith.MulIOp(number, arith.ConstantOp(ir.IndexType.get(), step).result).result


def append_iteration(body: Block, loop: Operation, number: Value) -> None:
    """Append the iteration of ``loop`` whose variable is ``number`` to ``body``, in the place of the loop."""
    inner = loop.regions[0].blocks[0]
    inner.arguments[0].replace_all_uses_with(number)
    *operations, _ = (op.operation for op in inner.operations)
    for op in operations:
        op.detach_from_parent()
        body.append(op)
    loop.erase()
