"""The dtypes that reductions accumulate in and give (ptir-v0.4.md, "Accumulator/output dtype policy").

And the greatest and the least numbers, of a dtype and of arrays, with the derivative of finding them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mind_mlir.ir.elements import holds_all, limits
from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops import numbers
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Field, FieldKind
from mind_mlir.ops.conversion import cast_array, converted
from mind_mlir.ops.opdef import COMPLEX, AttributeDef, DTypeSet

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.vjp import VjpContext


def identity(kind: str, dtype: DType) -> Any:
    """Return, as a numpy scalar of ``dtype``, what changes no ``Sum``, ``Max`` or ``Min`` (ptir-v0.4.md)."""
    if kind == "Sum":
        return dtype.numpy.type(0)
    if dtype is DType.I1:
        return np.bool_(kind == "Min")
    if dtype.is_integer:
        least, greatest = limits(dtype)
        return dtype.numpy.type(least if kind == "Max" else greatest)
    # A float without infinities has its extreme finite numbers in their place.
    end = np.inf if dtype.format.infinite else dtype.format.greatest
    return np.float64(-end if kind == "Max" else end).astype(dtype.numpy)


def numpy_extreme(rows: Array, kind: str, dtype: DType) -> Array:
    """Return the greatest (``Max``) or least element of each row, NaN where there is one.

    Of two zeros -0.0 is the lesser; of no elements it is the `identity`.
    """
    if rows.shape[-1] == 0:
        return np.full(rows.shape[:-1], identity(kind, dtype), dtype.numpy)
    exact = numbers.widened(rows)
    found = np.asarray(exact.max(axis=-1) if kind == "Max" else exact.min(axis=-1))
    if not dtype.is_float:
        return numbers.rounded(found, dtype)
    # Of zeros, numpy gives any.
    wanted = (exact == 0) & (np.signbit(exact) != (kind == "Max"))
    zero = exact.dtype.type(0.0 if kind == "Max" else -0.0)
    return numbers.rounded(np.where((found == 0) & wanted.any(axis=-1), zero, found), dtype)


def identity_number(kind: str, dtype: DType) -> float:
    """Return the `identity` as Python has it."""
    number: float = numbers.widened(np.asarray(identity(kind, dtype), dtype.numpy)).item()
    return number


#: The attributes of what accumulates, and the field of the contract that the first comes from.
ACCUMULATOR = AttributeDef("accum_dtype", AttrKind.DTYPE, "the dtype to accumulate in")
OUTPUT = AttributeDef("out_dtype", AttrKind.DTYPE, "the dtype of the result")
ACCUMULATOR_FIELD = Field("accum_dtype", FieldKind.OPTIONAL_DTYPE)

#: What accumulators are computed in where that is not their own dtype: sums wrap, or are rounded, at the end.
_COMPUTED = {DType.SI4: DType.SI8, DType.UI4: DType.UI8}

#: What few small integers are added in, if it holds all sums: the narrowest.
_SUMS = (DType.UI8, DType.SI16, DType.SI32)

POLICY = (
    "Where PTIR leaves `accum_dtype` out, floats narrower than f32 accumulate in f32 and all others in their "
    "own dtype; where it leaves `out_dtype` out, the result has the input's dtype."
)
NARROW = "An accumulator narrower than f32 is one of f32, whose total is rounded to it: once, at the end."


def default_accumulator(dtype: DType) -> DType:
    """Return what elements of ``dtype`` accumulate in where nothing is said.

    Example:
        >>> default_accumulator(DType.BF16), default_accumulator(DType.SI8)
        (DType.F32, DType.SI8)
    """
    return DType.F32 if dtype.is_narrow else dtype


def computed_dtype(accumulator: DType) -> DType:
    """Return the dtype that compiled code accumulates in, which holds all that ``accumulator`` does."""
    return _COMPUTED.get(accumulator, default_accumulator(accumulator))


class Accumulation(NamedTuple):
    """The dtypes of one reduction: elements of ``source`` accumulate in one and become ``output``.

    Attributes:
        context: The operation.
        source: The dtype of the elements.
        accumulator: The dtype that they accumulate in, as the operation says.
        output: The dtype of the result.
    """

    context: LoweringContext
    source: DType
    accumulator: DType
    output: DType

    def of_some(self, kind: str, terms: int) -> Accumulation:
        """Return what gives the same where each element of the result reduces 1 to ``terms`` elements.

        The greatest of numbers is one of them: it is found among the elements, if the accumulator
        holds all of these. Sums of few small integers are exact in an accumulator of few bits.
        """
        if not holds_all(self.accumulator, self.source):
            return self
        if kind != "Sum":
            return self._replace(accumulator=self.source)
        if self.source.is_float or self.source.is_complex:
            return self
        own, sums = self.accumulator, [terms * each for each in limits(self.source)]
        if own.is_float and max(map(abs, sums)) > 1 << own.format.precision:
            return self
        for narrow in (each for each in _SUMS if each.bits < own.bits):
            least, greatest = limits(narrow)
            if all(least <= each <= greatest for each in sums):
                return self._replace(accumulator=narrow)
        return self

    @property
    def computed(self) -> DType:
        """Return the dtype that compiled code accumulates in."""
        return computed_dtype(self.accumulator)

    def term(self, element: Any) -> Any:
        """Emit an element as one of the dtype that is computed in."""
        exact = converted(self.context, element, self.source, self.accumulator)
        return converted(self.context, exact, self.accumulator, self.computed)

    def finished(self, total: Any) -> Any:
        """Emit what was computed as an element of the accumulator, and that as one of the output."""
        rounded = self.context.arithmetic(self.accumulator).rounded(total)
        return converted(self.context, rounded, self.accumulator, self.output)

    def nothing(self, kind: str, type_: TensorType) -> Any:
        """Append the reduction of no elements, a tensor of ``type_``."""
        start = np.asarray(identity(kind, self.accumulator), self.accumulator.numpy)
        return self.context.filled(type_, numbers.widened(cast_array(start, self.output)).item())

    def terms(self, values: Any, type_: TensorType) -> Any:
        """Append a tensor of ``type_``, of elements, in the dtype that is computed in."""
        if self.source is self.computed:
            return values
        return self.context.elementwise(self.term, [values], type_.with_dtype(self.computed))

    def result(self, total: Any, type_: TensorType) -> Any:
        """Append what was computed in the dtype of the output; ``type_`` has its shape."""
        if self.output is self.accumulator is self.computed:
            return total
        return self.context.elementwise(self.finished, [total], type_.with_dtype(self.output))


def holds(wide: DType, narrow: DType) -> bool:
    """Return whether the float ``wide`` has all numbers of the float ``narrow``."""
    return wide is narrow or (wide.is_float and wide.bits >= 32 and wide.bits > narrow.bits)


def check_reduction(context: TypeContext, kind: str, dtypes: DTypeSet) -> None:
    """Report an order that complex numbers lack, and the accumulators that do not go with the input: E2005.

    Args:
        context: An operation that reduces its first operand.
        kind: Sum, Max or Min.
        dtypes: What real numbers and truth values are accumulated in; complex numbers are among themselves.
    """
    found = context.operands[0].dtype
    if found in COMPLEX and kind != "Sum":
        listing = ", ".join(each.core_name for each in dtypes if each in context.profile.dtypes)
        context.fail(
            "E2005",
            f"{context.opcode} has no {kind} of {found.core_name}: complex numbers have no order",
            operand=0,
            help=f"add them (Sum), or reduce one of: {listing}",
            found=found.core_name,
            allowed=listing,
        )
    check_accumulator(context, kind, COMPLEX if found in COMPLEX else dtypes)


def check_accumulator(context: TypeContext, kind: str, dtypes: DTypeSet) -> None:
    """Report the dtypes among ``accum_dtype`` and ``out_dtype`` that ``kind`` does not go with: E2005."""
    if "accum_dtype" in context.attributes:
        adding = [each for each in dtypes if _goes_with(kind, each)]
        context.allows_dtype("accum_dtype", adding, f"does not accumulate a {kind} in")
    if "out_dtype" in context.attributes:
        context.allows_dtype("out_dtype", dtypes)
    context.stop_if_reported()


def _goes_with(kind: str, dtype: DType) -> bool:
    """Return whether numbers of ``dtype`` can be added, or have an order."""
    return dtype.kind is not (DTypeKind.BOOL if kind == "Sum" else DTypeKind.COMPLEX)


def combination(context: LoweringContext, kind: str, dtype: DType) -> Any:
    """Return what combines two scalars of ``dtype``."""
    arithmetic = context.arithmetic(dtype)
    return {"Sum": arithmetic.add, "Max": arithmetic.maximum, "Min": arithmetic.minimum}[kind]


def extreme_vjp(
    context: VjpContext,
    x: Value,
    extreme: Value,
    spread: Callable[[Value], Value],
    total: Callable[[Value], Value],
    inside: Callable[[], Value | None] = lambda: None,
) -> Value:
    """Share the cotangent of each group equally among its elements that are the extreme, NaN where it is.

    Args:
        context: What finds the extreme of groups of elements.
        x: The elements.
        extreme: The extreme of each group, in the dtype of the elements.
        spread: Appends for each element what there is of its group.
        total: Appends the sum of each group's elements.
        inside: Appends whether elements are in a group at all; None where all are.
    """
    dtype = x.type.dtype
    computed = computed_dtype(dtype)
    equal = context.emit("Compare", x, spread(extreme), op="Equal")
    chosen = context.emit("Or", equal, context.emit("Compare", x, x, op="NotEqual"))
    is_inside = inside()
    chosen = chosen if is_inside is None else context.emit("And", chosen, is_inside)
    part = context.emit("Reciprocal", total(context.cast(chosen, computed)))
    share = context.emit("Mul", context.cast(context.cotangent, computed), part)
    given = spread(context.cast(share, dtype))
    return context.emit("Select", chosen, given, context.zeros(x.type))
