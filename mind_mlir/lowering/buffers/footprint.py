"""Memory footprints: the elements of buffers that an iteration of a loop touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.buffers.spans import Span
from mind_mlir.lowering.kernels.product import PRODUCT_ARGUMENTS
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import METADATA, root_of
from mind_mlir.mlir.values import callee_of, constant_of, definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.buffers.kernel_footprint import ProductKernels
    from mind_mlir.mlir.bindings import Attribute, Operation, Type, Value


@dataclass(slots=True)
class Touch:
    """The accesses of an iteration to one buffer.

    Attributes:
        writes: Whether it writes there.
        span: The elements in row-major order; None if that is not known.
        users: The operations.
    """

    writes: bool
    span: Span | None
    users: list[Operation]


#: Operations that access no memory, by dialect, besides `vector` ones that are none of those below.
_PURE = ("arith.", "math.", "vector.", "ub.")
_STRUCTURE = ("scf.for", "scf.if", "scf.yield", "memref.prefetch")
#: Accesses: the number of the operand that is the buffer, and whether they write.
_ACCESSES = {
    "memref.load": (0, False),
    "memref.store": (1, True),
    "vector.load": (0, False),
    "vector.store": (1, True),
    "vector.transfer_read": (0, False),
    "vector.transfer_write": (1, True),
}
#: What spans are computed through.
_ARITHMETIC = ("arith.addi", "arith.muli", "arith.divui", "arith.remui")
_OTHER_ACCESSES = (
    "vector.gather",
    "vector.scatter",
    "vector.mask",
    "vector.expandload",
    "vector.compressstore",
)


def touched(loop: Operation, kernels: ProductKernels) -> dict[Value, Touch] | None:
    """Return what an iteration of ``loop`` touches, by buffer; None where that cannot be told.

    Args:
        loop: An `scf.for` with constant bounds, see `bounds_of`.
        kernels: What it may call.
    """
    return _Footprint(loop, kernels).run()


def bounds_of(loop: Operation) -> tuple[int, int, int] | None:
    """Return the bounds and the step of an `scf.for`, if they are constants."""
    lower, upper, step = (_constant(value) for value in list(loop.operands)[:3])
    return None if lower is None or upper is None or step is None else (lower, upper, step)


def first_operand(buffer: int) -> int:
    """Return which operand of a call of a kernel says where it starts in operand ``buffer``, in elements."""
    return 3 + buffer


class _Footprint:
    def __init__(self, loop: Operation, kernels: ProductKernels) -> None:
        self._kernels = kernels
        bounds = bounds_of(loop)
        assert bounds is not None
        self._loop = loop
        self._spans: dict[Value, Span | None] = {
            loop.regions[0].blocks[0].arguments[0]: Span(bounds[2], bounds[0], bounds[0])
        }
        self._layouts: dict[Value, _Layout | None] = {}
        self._lengths: dict[Type, int] = {}
        self._maps: dict[Attribute, bool] = {}
        self._found: dict[Value, Touch] = {}
        self._known = True
        self._own: set[Operation] = set()  # memory that an iteration has to itself

    def run(self) -> dict[Value, Touch] | None:
        self._loop.walk(self._visit, ir.WalkOrder.PRE_ORDER)
        return self._found if self._known else None

    def _visit(self, op: Operation) -> object:
        name = op.name
        access = _ACCESSES.get(name)
        if access is not None:
            number, writes = access
            self._known = self._access(op, name, number, writes=writes)
        elif name == "func.call":
            self._known = self._call(op)
        elif name in _OTHER_ACCESSES or name.startswith("vector.masked"):
            self._known = False
        elif name == "scf.for":
            if op != self._loop:
                self._spans[op.regions[0].blocks[0].arguments[0]] = self._inner(op)
        elif name == "memref.alloc":
            self._own.add(op)
        else:
            self._known = name.startswith(_PURE) or name in _STRUCTURE
        return ir.WalkResult.ADVANCE if self._known else ir.WalkResult.INTERRUPT

    def _inner(self, loop: Operation) -> Span | None:
        """Return where the variable of an inner loop lies."""
        first, end, step = list(loop.operands)[:3]
        lower, upper, stride = self._span(first), self._least(end), _constant(step)
        if lower is None or upper is None or stride is None:
            return None
        if (lower.pitch, lower.digits) != (upper.pitch, upper.digits):
            return None
        if lower.low != lower.high:  # starts where the variable of another inner loop is
            return lower._replace(high=max(lower.low, upper.high - 1))
        trips = max(0, -(-(upper.high - lower.low) // stride))
        return lower._replace(high=lower.low + max(0, trips - 1) * stride)

    def _least(self, value: Value) -> Span | None:
        """Return a span whose upper end ``value`` does not exceed: that of the first operand of a minimum."""
        owner = definition(value)
        if owner is not None and owner.name in ("arith.minui", "arith.minsi"):
            return self._span(owner.operands[0])
        return self._span(value)

    def _span(self, value: Value) -> Span | None:
        if value not in self._spans:
            self._spans[value] = self._compute(value)
        return self._spans[value]

    def _compute(self, value: Value) -> Span | None:
        owner = definition(value)
        name = "" if owner is None else owner.name
        if name == "arith.constant":
            constant = _constant(value)
            return None if constant is None else Span(0, constant, constant)
        if owner is None or name not in _ARITHMETIC:
            return None
        one, other = owner.operands
        left, right = self._span(one), self._span(other)
        if left is None or right is None:
            return None
        if name == "arith.addi":
            return left.plus(right)
        if name == "arith.muli":
            left, right = (right, left) if left.is_number else (left, right)
            return left.times(right.low) if right.is_number and right.low >= 0 else None
        if not right.is_number or right.low <= 0:
            return None
        quotient, remainder = left.divided(right.low)
        return quotient if name == "arith.divui" else remainder

    def _access(self, op: Operation, name: str, number: int, *, writes: bool) -> bool:
        """Enter an access of operand ``number``; return False if it is not known what it is a view of."""
        operands = list(op.operands)
        buffer = operands[number]
        if buffer not in self._layouts:
            self._layouts[buffer] = _layout(buffer)
        layout = self._layouts[buffer]
        if layout is None:
            return False
        if definition(layout.root) in self._own:
            return True
        lanes = self._lanes(op, name, operands)
        last = len(layout.shape) - 1
        places = [
            self._place(index, extent, lanes if axis == last else 1)
            for axis, (index, extent) in enumerate(zip(operands[number + 1 :], layout.shape, strict=False))
        ]
        span = _sum(places, layout) if lanes and layout.strides is not None else None
        self._enter(layout.root, Touch(writes, span, [op]))
        return True

    def _call(self, op: Operation) -> bool:
        """Enter what a call touches; return False if that is not known."""
        name = callee_of(op)
        if name not in self._kernels:
            return False
        operands = list(op.operands)
        arguments = dict(zip(PRODUCT_ARGUMENTS, operands[3:], strict=False))
        reaches = self._kernels.reaches(name, {each: self._most(arguments[each]) for each in arguments})
        if reaches is None:
            return False
        for reach in reaches:
            base = definition(operands[reach.operand])
            if base is None or base.name != METADATA:
                return False
            root = root_of(base.operands[0])
            if root is None:
                return False
            first = self._span(arguments[reach.first])
            span = None if first is None or first.digits else first._replace(high=first.high + reach.extent)
            self._enter(root, Touch(reach.writes, span, [op]))
        return True

    def _most(self, value: Value) -> int | None:
        """Return what ``value`` is at most, if that is the same in each iteration."""
        owner = definition(value)
        if owner is not None and owner.name in ("arith.minui", "arith.minsi"):
            found = [most for operand in owner.operands if (most := self._most(operand)) is not None]
            return min(found, default=None)
        span = self._span(value)
        return span.high if span is not None and span.is_number else None

    def _lanes(self, op: Operation, name: str, operands: Sequence[Value]) -> int:
        """Return the elements along the last axis that ``op`` accesses; 0 if it does so in another way."""
        if name.startswith("memref."):
            return 1
        type_ = operands[0].type if name.endswith(("store", "write")) else op.results[0].type
        if type_ not in self._lengths:
            whole = isinstance(type_, ir.VectorType) and type_.rank == 1
            self._lengths[type_] = type_.shape[0] if whole else 0
        if name.startswith("vector.transfer"):
            attribute = op.attributes["permutation_map"]
            if attribute not in self._maps:
                map_ = ir.AffineMapAttr(attribute).value
                self._maps[attribute] = map_ == ir.AffineMap.get_minor_identity(map_.n_dims, 1)
            if not self._maps[attribute]:
                return 0
        return self._lengths[type_]

    def _place(self, index: Value, extent: int, lanes: int) -> Span:
        """Return where an access lies along one axis of ``extent``; all of it if that is not known."""
        span = self._span(index)
        if span is None:
            return Span(0, 0, extent - 1)
        high = span.high + max(lanes, 1) - 1
        if span.pitch or span.digits:
            return Span(span.pitch, span.low, high, span.digits)
        return Span(0, max(span.low, 0), min(high, extent - 1))

    def _enter(self, root: Value, new: Touch) -> None:
        old = self._found.get(root)
        if old is None:
            self._found[root] = new
            return
        old.writes = old.writes or new.writes
        old.span = old.span.hull(new.span) if old.span is not None and new.span is not None else None
        old.users += new.users


class _Layout(NamedTuple):
    """The layout of a view in its buffer; without strides, the layout is not known."""

    root: Value
    shape: Sequence[int]
    strides: Sequence[int] | None
    offset: int


def _layout(view: Value) -> _Layout | None:
    """Return the layout of ``view``, or None if it is not known what it is a view of."""
    type_, root = view.type, root_of(view)
    if root is None or not type_.has_static_shape:
        return None
    strides, offset = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    known = offset != dynamic and dynamic not in strides
    return _Layout(root, list(type_.shape), list(strides) if known else None, offset)


def _sum(places: Sequence[Span], layout: _Layout) -> Span | None:
    """Return where the elements lie that are at ``places`` along the axes; None if that has digits."""
    assert layout.strides is not None
    if any(place.digits for place in places):
        span = Span(0, layout.offset, layout.offset)
        for place, stride in zip(places, layout.strides, strict=True):
            span = span.plus(place.times(stride))
        return None if span.digits else span
    pitch, low, high = 0, layout.offset, layout.offset
    for place, stride in zip(places, layout.strides, strict=True):
        pitch += place.pitch * stride
        low += place.low * stride
        high += place.high * stride
    return Span(pitch, low, high)


def _constant(value: Value) -> int | None:
    return constant_of(value) if isinstance(value.type, ir.IndexType) else None
