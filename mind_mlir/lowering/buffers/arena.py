"""Static placement of temporary buffers in one scratch arena.

Every `memref.alloc` becomes a `memref.view` of the function's last argument, a `memref<Nxi8>` that the caller
provides, at an offset that is a multiple of 64 bytes. Buffers whose lifetimes do not overlap share memory:

- the operations of a block are numbered; a buffer lives from its allocation to the last operation of its
  block that uses it, or contains a use of it, through any alias. A loop is one operation of its block, so a
  buffer from before a loop lives at least to the end of a loop that uses it;
- buffers allocated inside the regions of an operation form an arena of their own, which lives in the arena
  of the enclosing block for the time of that operation. Alternatives of an `scf.if` share memory, iterations
  of a parallel loop do not;
- in a function of several blocks, buffers of the function's own blocks share nothing.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ir.allocation import allocation_failed
from mind_mlir.ir.types import MAX_BYTES
from mind_mlir.lowering.buffers.aliases import buffer_uses
from mind_mlir.lowering.buffers.placement import Lifetime, place
from mind_mlir.lowering.buffers.plan import Arena, Copies, Life, Moments, describe
from mind_mlir.lowering.emission.emitter import PARALLEL_ATTRIBUTE, PRIVATE_ATTRIBUTE
from mind_mlir.mlir.bindings import arith, ir, memref
from mind_mlir.mlir.memory import byte_size
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import constant_of, name_of
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Block, Operation, Value

_EXCLUSIVE = ("scf.if", "scf.index_switch")
_PARALLEL = ("scf.forall", "scf.parallel")


class Placement(NamedTuple):
    """The place of a buffer: `offset`, plus `stride` times the iteration number of each loop, in bytes."""

    allocation: Operation
    offset: int
    loops: tuple[tuple[Operation, int], ...] = ()


@dataclass(slots=True)
class _Item:
    """Something to be placed in the arena of a block: a buffer, or what an operation's regions need."""

    size: int
    start: int
    end: int
    contents: list[Placement]


@dataclass(slots=True)
class Plans:
    """Takes down where buffers lie.

    Attributes:
        arenas: One for each function that has buffers, callees first.
        callees: The functions whose arenas some allocations are, for the time of a call.
    """

    arenas: list[Arena] = field(default_factory=list)
    callees: dict[Operation, str] = field(default_factory=dict)

    def add(self, function: Operation, placer: _Placer, size: int, placements: list[Placement]) -> None:
        """Take down the places of the buffers of one function, while their allocations are there."""
        moments = Moments.of(function)
        buffers = [
            replace(
                describe(each.allocation, placer.life(each.allocation), moments, self.callees),
                offset=each.offset,
                copies=tuple(Copies(trip_count(loop), stride) for loop, stride in each.loops),
            )
            for each in placements
        ]
        buffers.sort(key=lambda buffer: buffer.start)
        name = name_of(function)
        public = "sym_visibility" not in function.attributes
        self.arenas.append(Arena(name, public, size, tuple(buffers)))


def place_buffers(function: Operation, *, always: bool = True, plans: Plans | None = None) -> int | None:
    """Replace the allocations of ``function`` by views of a new last argument; return its size in bytes.

    Args:
        function: A `func.func` on buffers.
        always: Add the argument even when there are no allocations; otherwise nothing is added then, and the
            result is None.
        plans: Takes down what lies where, if that is wanted.

    Raises:
        EscapeError: A buffer is carried from one loop iteration to the next.
        ValueError: A buffer has a dynamic extent.
        ExecutionError: E6004, the arena would not fit any address space.
    """
    body = function.regions[0]
    entry = body.blocks[0]
    placer = _Placer(function, share=len(body.blocks) == 1)
    size, placements = placer.place()
    if not (placements or always):
        return None
    if size > MAX_BYTES - ALIGNMENT:  # the caller aligns it
        raise allocation_failed(f"{size} bytes of scratch memory", ())
    if plans is not None:
        plans.add(function, placer, size, placements)
    with function.location as location:
        type_ = ir.MemRefType.get([size], ir.IntegerType.get_signless(8))
        scratch = entry.add_argument(type_, location)
    results = function.type.results
    types = [argument.type for argument in entry.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))
    if "arg_attrs" in function.attributes:
        described = [*ir.ArrayAttr(function.attributes["arg_attrs"]), ir.DictAttr.get({})]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(described)
    for placement in placements:
        _replace(placement, scratch, function)
    return size


class _Placer:
    """Sorts the buffers of a function into a tree of blocks, and places them from the innermost outwards."""

    def __init__(self, function: Operation, *, share: bool) -> None:
        self.function = function.operation
        self.share = share
        self.buffers: dict[Block, list[_Item]] = {}
        self.owners: dict[
            Block, dict[Operation, None]
        ] = {}  # operations whose regions hold buffers, in order
        self.ordinals: dict[Block, dict[Operation, int]] = {}
        self.operations: dict[Block, list[Operation]] = {}  # of blocks that have been asked about
        self.lives: dict[Operation, tuple[Block, int, int]] = {}  # first and last position, by allocation
        for allocation in _used_allocations(function):
            self._add(allocation)

    def place(self) -> tuple[int, list[Placement]]:
        """Return the size of the arena in bytes and the place of each buffer."""
        item = self._place_regions(self.function, 0)
        return item.size, item.contents

    def life(self, allocation: Operation) -> Life:
        """Return the first and the last operation of the time in which a buffer is in use."""
        block, start, last = self.lives[allocation.operation]
        operations = self.operations.get(block) or list(self.ordinals[block])
        self.operations[block] = operations
        return Life(operations[start], operations[min(last, len(operations) - 1)])

    def _add(self, allocation: Operation) -> None:
        users = [use.user for use in buffer_uses(allocation.result).found]
        block, first = allocation.block, allocation
        last = self._last_use(block, users)
        while last is None and block.owner.operation != self.function:
            first = block.owner.operation  # used outside of the block: it leaves through the terminator
            block = first.block
            last = self._last_use(block, users)
        size = -(-byte_size(allocation.result.type) // ALIGNMENT) * ALIGNMENT
        start = self._ordinal(block, first)
        if last is None or (not self.share and block.owner.operation == self.function):
            start, last = 0, len(self.ordinals[block])
        self.lives[allocation.operation] = (block, start, last)
        item = _Item(size, start, last, [Placement(allocation, 0)])
        self._enter(block)
        self.buffers[block].append(item)

    def _enter(self, block: Block) -> None:
        """Make ``block`` and the blocks around it known."""
        while block not in self.buffers:
            self.buffers[block] = []
            self.owners.setdefault(block, {})
            owner = block.owner.operation
            if owner == self.function:
                return
            block = owner.block
            self.owners.setdefault(block, {})[owner] = None

    def _last_use(self, block: Block, users: list[Operation]) -> int | None:
        """Return the position of the last user in ``block``, or None if one lies outside of it."""
        last = 0
        for user in users:
            inner = user
            while inner.block != block:
                inner = inner.parent.operation
                if inner == self.function:
                    return None
            last = max(last, self._ordinal(block, inner))
        return last

    def _ordinal(self, block: Block, op: Operation) -> int:
        if block not in self.ordinals:
            self.ordinals[block] = {each.operation: index for index, each in enumerate(block.operations)}
        return self.ordinals[block][op]

    def _place_regions(self, op: Operation, position: int) -> _Item:
        item = _Item(0, position, position, [])
        for region in op.regions:
            for block in region.blocks:
                if block not in self.buffers:
                    continue
                size, contents = self._place_block(block)
                base = 0 if op.name in _EXCLUSIVE else item.size
                item.contents += [each._replace(offset=each.offset + base) for each in contents]
                item.size = max(item.size, base + size)
        if op.name in _PARALLEL or (op.name == "scf.for" and PARALLEL_ATTRIBUTE in op.attributes):
            loop = (op, item.size)
            item.contents = [each._replace(loops=(*each.loops, loop)) for each in item.contents]
            item.size *= trip_count(op)
        return item

    def _place_block(self, block: Block) -> tuple[int, list[Placement]]:
        items = self.buffers[block] + [
            self._place_regions(owner, self._ordinal(block, owner)) for owner in self.owners[block]
        ]
        size, offsets = place([Lifetime(item.size, item.start, item.end) for item in items])
        return size, [
            each._replace(offset=each.offset + offset)
            for item, offset in zip(items, offsets, strict=True)
            for each in item.contents
        ]


def _used_allocations(function: Operation) -> list[Operation]:
    """Return the allocations of ``function`` that something uses, and erase the others."""
    used = []
    for allocation in find_all(function, memref.AllocOp):
        if next(iter(allocation.result.uses), None) is None:
            allocation.operation.erase()
        else:
            used.append(allocation)
    return used


def _replace(placement: Placement, scratch: Value, function: Operation) -> None:
    """Put a view of ``scratch`` in the place of an allocation.

    A view at a fixed offset goes to the function's own block, where one loop nest after the other finds it.
    """
    allocation = placement.allocation
    point = allocation
    if not placement.loops:
        while point.parent.operation != function.operation:
            point = point.parent.operation
    with ir.InsertionPoint(point), allocation.location:
        index = ir.IndexType.get()
        offset = arith.ConstantOp(index, placement.offset).result
        for loop, stride in placement.loops:
            step = arith.MulIOp(iteration_number(loop), arith.ConstantOp(index, stride).result).result
            offset = arith.AddIOp(offset, step).result
        result = allocation.result
        marks = {PRIVATE_ATTRIBUTE: ir.UnitAttr.get()} if PRIVATE_ATTRIBUTE in allocation.attributes else {}
        view = ir.Operation.create("memref.view", [result.type], [scratch, offset], marks)
    result.replace_all_uses_with(view.result)
    allocation.erase()


_DYNAMIC = -(2**63)


def trip_count(loop: Operation) -> int:
    """Return the number of iterations of an `scf.parallel`, `scf.forall` or `scf.for` with constant bounds.

    Raises:
        ValueError: A bound is not a constant.
    """
    count = 1
    for lower, upper, step in _ranges(loop):
        count *= max(0, -(-(upper - lower) // step))
    return count


def iteration_number(loop: Operation) -> Value:
    """Emit the row-major number of the running iteration of ``loop``, from zero, at the insertion point."""
    index = ir.IndexType.get()
    number = arith.ConstantOp(index, 0).result
    for variable, (lower, upper, step) in zip(
        loop.regions[0].blocks[0].arguments, _ranges(loop), strict=False
    ):
        position = arith.SubIOp(variable, arith.ConstantOp(index, lower).result).result
        position = arith.DivUIOp(position, arith.ConstantOp(index, step).result).result
        extent = arith.ConstantOp(index, max(0, -(-(upper - lower) // step))).result
        number = arith.AddIOp(arith.MulIOp(number, extent).result, position).result
    return number


def _ranges(loop: Operation) -> list[tuple[int, int, int]]:
    """Return (lower bound, upper bound, step) of each dimension of ``loop``."""
    if loop.name == "scf.forall":
        bounds = [
            list(ir.DenseI64ArrayAttr(loop.attributes[name]))
            for name in ("staticLowerBound", "staticUpperBound", "staticStep")
        ]
        if any(_DYNAMIC in values for values in bounds):
            raise ValueError("a parallel loop with temporary buffers needs constant bounds")
        return list(zip(*bounds, strict=True))
    rank = len(loop.regions[0].blocks[0].arguments)
    known = (constant_of(operand) for operand in list(loop.operands)[: 3 * rank])
    values = [number for number in known if number is not None]
    if len(values) < 3 * rank:
        raise ValueError("a parallel loop with temporary buffers needs constant bounds")
    return list(zip(values[:rank], values[rank : 2 * rank], values[2 * rank :], strict=True))
