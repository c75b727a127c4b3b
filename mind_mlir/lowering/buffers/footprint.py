"""Which elements of which buffers an iteration of a loop touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.bindings import ir
from mind_mlir.lowering.buffers.aliases import root_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Operation, Value


class Span(NamedTuple):
    """Some of the integers from ``pitch * n + low`` to ``pitch * n + high``, both included.

    ``n`` is the number of an iteration, from zero.
    """

    pitch: int
    low: int
    high: int

    def plus(self, other: Span) -> Span:
        """Return where sums of the two lie."""
        return Span(self.pitch + other.pitch, self.low + other.low, self.high + other.high)

    def times(self, factor: int) -> Span:
        """Return where the multiples by a non-negative ``factor`` lie."""
        return Span(self.pitch * factor, self.low * factor, self.high * factor)

    def hull(self, other: Span) -> Span | None:
        """Return what holds both, or None where the distance between them grows."""
        if self.pitch != other.pitch:
            return None
        return Span(self.pitch, min(self.low, other.low), max(self.high, other.high))


@dataclass(slots=True)
class Touch:
    """What an iteration does with a buffer.

    Attributes:
        writes: Whether it writes there.
        span: The elements in row-major order; None if that is not known.
        rows: The same of the first dimension, where all accesses are the buffer's own; else None.
        users: The operations.
    """

    writes: bool
    span: Span | None
    rows: Span | None
    users: list[Operation]


#: Operations that access no memory, by dialect, besides `vector` ones that are none of those below.
_PURE = ("arith.", "math.", "vector.", "ub.")
_STRUCTURE = ("scf.for", "scf.if", "scf.yield")
#: Accesses: the number of the operand that is the buffer, and whether they write.
_ACCESSES = {
    "memref.load": (0, False),
    "memref.store": (1, True),
    "vector.load": (0, False),
    "vector.store": (1, True),
    "vector.transfer_read": (0, False),
    "vector.transfer_write": (1, True),
}
_OTHER_ACCESSES = (
    "vector.gather",
    "vector.scatter",
    "vector.mask",
    "vector.expandload",
    "vector.compressstore",
)


def touched(loop: Operation) -> dict[Value, Touch] | None:
    """Return what an iteration of ``loop`` touches, by buffer; None where that cannot be told.

    Args:
        loop: An `scf.for` with constant bounds, see `bounds_of`.
    """
    return _Footprint(loop).run()


def bounds_of(loop: Operation) -> tuple[int, int, int] | None:
    """Return the bounds and the step of an `scf.for`, if they are constants."""
    lower, upper, step = (_constant(value) for value in list(loop.operands)[:3])
    return None if lower is None or upper is None or step is None else (lower, upper, step)


class _Footprint:
    def __init__(self, loop: Operation) -> None:
        bounds = bounds_of(loop)
        assert bounds is not None
        self._loop = loop
        self._spans: dict[Value, Span | None] = {
            loop.regions[0].blocks[0].arguments[0]: Span(bounds[2], bounds[0], bounds[0])
        }
        self._found: dict[Value, Touch] = {}
        self._known = True

    def run(self) -> dict[Value, Touch] | None:
        self._loop.walk(self._visit, ir.WalkOrder.PRE_ORDER)
        return self._found if self._known else None

    def _visit(self, op: Operation) -> object:
        op = op.operation
        name = op.name
        access = _ACCESSES.get(name)
        if access is not None:
            self._known = self._access(op, *access)
        elif name in _OTHER_ACCESSES or name.startswith("vector.masked"):
            self._known = False
        elif name == "scf.for":
            if op != self._loop:
                self._spans[op.regions[0].blocks[0].arguments[0]] = self._inner(op)
        else:
            self._known = name.startswith(_PURE) or name in _STRUCTURE
        return ir.WalkResult.ADVANCE if self._known else ir.WalkResult.INTERRUPT

    def _inner(self, loop: Operation) -> Span | None:
        """Return where the variable of an inner loop lies."""
        first, end, step = list(loop.operands)[:3]
        lower, upper, stride = self._span(first), self._least(end), _constant(step)
        if lower is None or upper is None or stride is None or lower.low != lower.high:
            return None
        if lower.pitch != upper.pitch:
            return None
        trips = max(0, -(-(upper.high - lower.low) // stride))
        return Span(lower.pitch, lower.low, lower.low + max(0, trips - 1) * stride)

    def _least(self, value: Value) -> Span | None:
        """Return a span whose upper end ``value`` does not exceed: that of the first operand of a minimum."""
        owner = _owner(value)
        if owner is not None and owner.name in ("arith.minui", "arith.minsi"):
            return self._span(owner.operands[0])
        return self._span(value)

    def _span(self, value: Value) -> Span | None:
        if value not in self._spans:
            self._spans[value] = self._compute(value)
        return self._spans[value]

    def _compute(self, value: Value) -> Span | None:
        constant = _constant(value)
        if constant is not None:
            return Span(0, constant, constant)
        owner = _owner(value)
        if owner is None or owner.name not in ("arith.addi", "arith.muli"):
            return None
        left, right = (self._span(operand) for operand in owner.operands)
        if left is None or right is None:
            return None
        if owner.name == "arith.addi":
            return left.plus(right)
        if left == Span(0, left.low, left.low):
            left, right = right, left
        if right != Span(0, right.low, right.low) or right.low < 0:
            return None
        return left.times(right.low)

    def _access(self, op: Operation, number: int, writes: bool) -> bool:
        buffer = op.operands[number]
        type_ = buffer.type
        root = root_of(buffer)
        if root is None or not type_.has_static_shape:
            return False
        indices = list(op.operands)[number + 1 : number + 1 + type_.rank]
        lanes = _lanes(op)
        strides, offset = type_.get_strides_and_offset()
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        span: Span | None = None
        places = [
            self._place(index, extent, lanes if axis == type_.rank - 1 else 1)
            for axis, (index, extent) in enumerate(zip(indices, type_.shape, strict=True))
        ]
        if lanes and offset != dynamic and dynamic not in strides:
            span = Span(0, offset, offset)
            for place, stride in zip(places, strides, strict=True):
                span = span.plus(place.times(stride))
        rows = places[0] if lanes and places and buffer == root else None
        self._enter(root, Touch(writes, span, rows, [op]))
        return True

    def _place(self, index: Value, extent: int, lanes: int) -> Span:
        """Return where an access lies along one axis of ``extent``; all of it if that is not known."""
        span = self._span(index)
        if span is None:
            return Span(0, 0, extent - 1)
        span = span._replace(high=span.high + max(lanes, 1) - 1)
        return span if span.pitch else Span(0, max(span.low, 0), min(span.high, extent - 1))

    def _enter(self, root: Value, new: Touch) -> None:
        old = self._found.get(root)
        if old is None:
            self._found[root] = new
            return
        old.writes = old.writes or new.writes
        old.span = old.span.hull(new.span) if old.span is not None and new.span is not None else None
        old.rows = old.rows.hull(new.rows) if old.rows is not None and new.rows is not None else None
        old.users += new.users


def _lanes(op: Operation) -> int:
    """Return the elements along the last axis that ``op`` accesses; 0 if it does so in another way."""
    if op.name.startswith("memref."):
        return 1
    vector = op.operands[0].type if op.name.endswith(("store", "write")) else op.results[0].type
    if not isinstance(vector, ir.VectorType) or vector.rank != 1:
        return 0
    if "permutation_map" in op.attributes:
        map_ = ir.AffineMapAttr(op.attributes["permutation_map"]).value
        if map_ != ir.AffineMap.get_minor_identity(map_.n_dims, 1):
            return 0
    return int(vector.shape[0])


def _owner(value: Value) -> Operation | None:
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def _constant(value: Value) -> int | None:
    owner = _owner(value)
    if owner is None or owner.name != "arith.constant" or not isinstance(value.type, ir.IndexType):
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def hull(spans: Sequence[Span]) -> Span | None:
    """Return what holds all ``spans``, or None where the distance between two of them grows."""
    found: Span | None = spans[0]
    for span in spans[1:]:
        found = None if found is None else found.hull(span)
    return found
