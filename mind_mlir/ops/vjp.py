"""The contexts of rules that append operations: of derivatives, and of what an operation is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mind_mlir.ir.value import Value
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.opdef import NUMERIC
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.ir.module import Block, CoreOperation, Parameter, ValueId
    from mind_mlir.ir.types import DType, TensorType


class Fills(Protocol):
    """The part that rules need of `mind_mlir.builders.region.Region`, which stands above the records."""

    parameters: list[Value]
    operations: list[CoreOperation]
    yields: tuple[Value, ...] | None

    def __enter__(self) -> Fills:
        """Let the builder append here."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the builder append where it did before."""

    def parameter(self, type_: TensorType) -> Value:
        """Add a parameter."""

    def yield_(self, values: Sequence[Value]) -> None:
        """Say what the region yields."""

    def prune(self) -> None:
        """Drop what the yielded values do not need."""

    def block(self, label: str) -> Block:
        """Return the block."""


class Appends(Protocol):
    """The part that rules need of `mind_mlir.builders.builder.Builder`, which stands above the records."""

    operations: list[CoreOperation]

    def emit(self, opcode: str, /, *operands: Value, **attributes: Any) -> Value:
        """Append an operation and return its value."""

    def emit_all(self, opcode: str, /, *operands: Value, **attributes: Any) -> tuple[Value, ...]:
        """Append an operation and return its values."""

    def copy_all(self, operation: CoreOperation, operands: Sequence[Value]) -> tuple[Value, ...]:
        """Append a verified operation of another module and return its values."""

    def constant(self, data: npt.ArrayLike, dtype: DType) -> Value:
        """Append a constant and return its value."""

    def fresh(self, type_: TensorType) -> Value:
        """Return a value that whoever asks will define."""

    def region(self, types: Sequence[TensorType] = ()) -> Fills:
        """Return a region to fill."""

    def reopen(self, block: Block, yields: Sequence[TensorType]) -> Fills:
        """Return a region that holds what ``block`` does."""


class Differentiates(Protocol):
    """A region of the operation whose derivative is wanted."""

    @property
    def active(self) -> tuple[bool, ...]:
        """Return for each parameter whether it can have a cotangent."""

    def run(self, arguments: Sequence[Value]) -> list[Value]:
        """Append the operations of the region, for these values of its parameters, and return its yields."""

    def pull(self, cotangents: Sequence[Value | None]) -> tuple[list[Value | None], list[Value | None]]:
        """Append the derivative of what `run` has appended last.

        Args:
            cotangents: Of what the region yields; None where there is none.

        Returns:
            The cotangents of the region's parameters and of the captured values, None where there is none.
        """


#: Appends a call of a function's derivative, from its name, its operands, the cotangents of its results, and
#: which operands need one; returns the cotangents of the operands, None where there is none.
CallsDerivative: TypeAlias = (
    "Callable[[str, Sequence[Value], Sequence[Value | None], Sequence[bool]], list[Value | None]]"
)


@dataclass(frozen=True, slots=True)
class VjpContext:
    """One primal operation as its derivative rule sees it (autodiff.md, "Derivative rules").

    The rule appends operations through ``builder`` and returns one cotangent per operand, None where
    ``needs`` is False or no gradient flows. A cotangent may have any shape that the operand's shape
    broadcasts to: the driver sums it back to the operand's shape, rules never undo broadcasting.
    The rule of an operation with regions returns those of the captured values, too, after the operands'.

    Attributes:
        builder: Appends to the gradient module.
        operands: The primal operands, as values of the gradient module.
        result: The primal result, likewise, for rules that reuse it; the first of several.
        cotangent: The gradient with respect to the result; same type as the result. Of several results, that
            of the first one that has one.
        attributes: The primal attributes, complete.
        needs: Which operands need a cotangent.
        results: All primal results.
        cotangents: The gradients of all results; None for one that has none.
        place: Where the primal operation stands among the builder's operations.
        regions: Its regions.
        captured: The values around it that its regions read and that can have a cotangent.
        depth: In how many regions it stands.
        constants: The integer scalars that are known.
        call: For operations that call functions.
    """

    builder: Appends
    operands: tuple[Value, ...]
    result: Value
    cotangent: Value
    attributes: Mapping[str, Any]
    needs: tuple[bool, ...]
    results: tuple[Value, ...] = ()
    cotangents: tuple[Value | None, ...] = ()
    place: int = 0
    regions: tuple[Differentiates, ...] = ()
    captured: tuple[Value, ...] = ()
    depth: int = 0
    constants: Mapping[ValueId, int] = field(default_factory=FrozenDict)
    call: CallsDerivative | None = None

    def emit(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        """Append an operation to the gradient module."""
        return self.builder.emit(opcode, *operands, **attributes)

    def scalar(self, value: float) -> Value:
        """Append a rank-0 constant of the result's dtype."""
        return self.builder.constant(value, self.result.type.dtype)

    def cast(self, value: Value, dtype: DType) -> Value:
        """Return ``value`` in ``dtype``: itself where it has that one, else cast."""
        return value if value.type.dtype is dtype else self.emit("Cast", value, dtype=dtype)

    def zeros(self, type_: TensorType) -> Value:
        """Append a tensor of zeros."""
        scalar = self.builder.constant(0, type_.dtype)
        return self.emit("BroadcastTo", scalar, result_shape=type_.extents) if type_.rank else scalar

    def sum(self, left: Value | None, right: Value | None) -> Value | None:
        """Return the sum of two cotangents of one type, where None is zero."""
        if left is None or right is None:
            return right if left is None else left
        return self.emit("Add", left, right)


def summed(builder: Appends, value: Value, axes: Sequence[int], *, keepdims: bool = False) -> Value:
    """Append the sum over ``axes``: by PTIR's operation where Core's does not take the dtype.

    Narrow floats are summed in f32, and rounded once.
    """
    dtype = value.type.dtype
    if dtype in NUMERIC:
        return builder.emit("Sum", value, axes=tuple(axes), keepdims=keepdims)
    dtypes = {"accum_dtype": default_accumulator(dtype), "out_dtype": dtype}
    return builder.emit("Reduce", value, kind="Sum", axes=tuple(axes), keepdims=keepdims, **dtypes)


# Operations that stand for others are there for people, and for the numpy rules. In structured form, before
# differentiation and lowering, others take their place (`mind_mlir.passes.structure.expansion`), so that
# nothing else knows them.


@dataclass(frozen=True, slots=True)
class ExpandContext:
    """One verified operation whose place others are to take.

    The rule appends them to the builder, and has them define the results. The regions' operations may be
    appended as they are, once: they keep the ids of their values, and so may what defines their parameters.

    Attributes:
        builder: Takes the operations.
        operands: Its operands.
        results: The values of its results, for `emit_all(..., defines=...)`.
        attributes: Its attributes, complete.
        regions: Its regions, in which everything has been expanded.
    """

    builder: Appends
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Any]
    regions: tuple[Block, ...]

    def parameters(self, parameters: Iterable[Parameter]) -> list[Value]:
        """Return the parameters of a region as values of the builder."""
        return [Value(each.value_id, each.tensor_type, self.builder) for each in parameters]

    def yielded(self, region: Block, types: Sequence[TensorType]) -> list[Value]:
        """Return what a region yields, values of these types, as values of the builder."""
        yielded = zip(region.terminator.operands, types, strict=True)
        return [Value(value, type_, self.builder) for value, type_ in yielded]

    def emit(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        """Append an operation and return its value."""
        return self.builder.emit(opcode, *operands, **attributes)

    def define(self, opcode: str, *operands: Value, **attributes: Any) -> bool:
        """Append the operation whose results are those of the one that is expanded; return True."""
        self.builder.emit_all(opcode, *operands, defines=self.results, **attributes)
        return True

    def full(self, number: float, like: Value) -> Value:
        """Append a tensor of the type of ``like``, each element of it ``number``."""
        return self.stretched(self.builder.constant(number, like.type.dtype), like.type.extents)

    def stretched(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Append ``value`` in a shape that it broadcasts to."""
        return value if value.type.extents == shape else self.emit("BroadcastTo", value, result_shape=shape)
