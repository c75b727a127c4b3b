"""LayerNorm: mean 0 and variance 1, then scale and shift (ptir-v0.4.md, "Fused and convenience ops")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.types import DType, TensorType, format_shape
from mind_mlir.ops import complex_normalization, numbers
from mind_mlir.ops import stablehlo_contractions as hlo
from mind_mlir.ops.accumulation import ACCURACY
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import require_axis
from mind_mlir.ops.complex_numbers import joined
from mind_mlir.ops.contract import same_fields
from mind_mlir.ops.dims_rules import along
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    COMPLEX,
    NO_FLOATS,
    NO_NUMBERS,
    AttributeDef,
    DTypeSet,
    Example,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.open_rules import untouched
from mind_mlir.ops.reductions import reduced_shape, spread_along

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

_DTYPES: DTypeSet = ALL_FLOATS + COMPLEX


def _normalize(attributes: Mapping[str, AttributeValue], result: TensorType) -> Mapping[str, AttributeValue]:
    return {**attributes, "feature_axis": cast("int", attributes["feature_axis"]) % result.rank}


def _type(context: TypeContext) -> TensorType:
    x, *affine = context.operands
    axis = require_axis(context, x.rank, "feature_axis")
    if not 0 <= context.attributes["epsilon"] < float("inf"):
        context.report(
            "E1103",
            f"epsilon is {context.attributes['epsilon']}",
            attribute="epsilon",
            help="it is added to the variance, and must be a number from 0 on",
        )
    for place, type_ in enumerate(affine, start=1):
        name = ("x", "gamma", "beta")[place]
        facts: dict[str, Any] = {
            "operand": place,
            "notes": (f"x has shape {format_shape(x.shape)}, {name} has {format_shape(type_.shape)}",),
            "help": f"{name} has one element for each of the {x.shape[axis]} features along axis {axis}",
        }
        if type_.rank != 1:
            message = f"LayerNorm needs {name} of rank 1, found rank {type_.rank}"
            context.report("E3002", message, expected=1, found=type_.rank, **facts)
        elif type_.shape[0] != x.shape[axis]:
            message = f"LayerNorm of {x.shape[axis]} features with {name} of {type_.shape[0]}"
            extents = (x.shape[axis], type_.shape[0])
            context.report("E3003", message, dimension=axis, extents=extents, **facts)
    context.stop_if_reported()
    return x


def _along(array: Array, rank: int, axis: int) -> Array:
    """Return a vector as an array of ``rank`` whose elements lie along ``axis``."""
    return array.reshape([-1 if each == axis else 1 for each in range(rank)])


def _parts(x: Array, axis: int, epsilon: float) -> tuple[Array, Array]:
    """Return the elements less their mean, and one over the standard deviation, in ``x``'s dtype."""
    mean = np.mean(x, axis=axis, keepdims=True)
    centered = x - mean
    variance = np.mean(centered * centered, axis=axis, keepdims=True)
    return centered, 1 / np.sqrt(variance + x.dtype.type(epsilon))


def _evaluate(context: EvalContext) -> Array:
    dtype, epsilon = context.result_type.dtype, context.attributes["epsilon"]
    # In f64, whatever the dtype: the exact result, rounded once.
    wide = np.complex128 if dtype in COMPLEX else np.float64
    x, gamma, beta = (operand.astype(wide) for operand in context.operands)
    if x.size == 0:
        return np.zeros(x.shape, dtype.numpy)
    axis = context.attributes["feature_axis"] % x.ndim
    gamma, beta = (_along(each, x.ndim, axis) for each in (gamma, beta))
    if dtype in COMPLEX:
        return numbers.rounded(complex_normalization.normalized(x, gamma, beta, axis, epsilon), dtype)
    centered, scale = _parts(x, axis, epsilon)
    return numbers.rounded(centered * scale * gamma + beta, dtype)


def _finite(array: Array) -> Array:
    if numbers.dtype_of(array) in COMPLEX:
        return joined(*(_finite(part) for part in (array.real, array.imag)))
    wide = numbers.widened(array).astype(np.float64)
    return np.where(np.isfinite(wide), wide, 0)


def _magnitude(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Return what an element is the sum of: that its mean is taken from, the mean, and the shift."""
    x, gamma, beta = (_finite(o) for o in operands)
    if x.size == 0:
        return x
    axis = attributes["feature_axis"] % x.ndim
    terms = np.abs(x) + np.mean(np.abs(x), axis=axis, keepdims=True)
    shift = np.abs(_along(beta, x.ndim, axis))
    with np.errstate(all="ignore"):
        parts = complex_normalization.centered_and_scale if x.dtype.kind == "c" else _parts
        _, scale = parts(x, axis, attributes["epsilon"])
        total = 2 * terms * scale * np.abs(_along(gamma, x.ndim, axis)) + shift
        return numbers.rounded(total, numbers.dtype_of(operands[0]))


def _terms(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, AttributeValue]) -> int:
    return shapes[0][cast("int", attributes["feature_axis"])]


class _Gradients:
    """Appends the gradients, in the dtype that the result is computed in."""

    def __init__(self, context: VjpContext) -> None:
        self._c = context
        x, gamma, _ = context.operands
        self.dtype = default_accumulator(x.type.dtype)
        self.axis = context.attributes["feature_axis"] % x.type.rank
        self.shape, self.others = x.shape, tuple(a for a in range(x.type.rank) if a != self.axis)
        self.x, self.gamma = context.cast(x, self.dtype), self.spread(context.cast(gamma, self.dtype))
        self.cotangent = context.cast(context.cotangent, self.dtype)
        centered = self.emit("Sub", self.x, self.mean(self.x))
        variance = self.mean(self.emit("Mul", centered, centered))
        epsilon = self.constant(context.attributes["epsilon"])
        self.scale = self.emit("Rsqrt", self.emit("Add", variance, epsilon))
        self.normal = self.emit("Mul", centered, self.scale)

    def emit(self, opcode: str, *operands: Value) -> Value:
        return self._c.emit(opcode, *operands)

    def cast(self, value: Value, dtype: DType) -> Value:
        return self._c.cast(value, dtype)

    def constant(self, number: float) -> Value:
        scalar = self._c.builder.constant(number, self.dtype)
        return self._c.emit("BroadcastTo", scalar, result_shape=self.shape)

    def spread(self, vector: Value) -> Value:
        """Repeat what there is of each feature."""
        return spread_along(self._c, vector, self.others, self._c.operands[0])

    def total(self, value: Value, axes: tuple[int, ...], *, keepdims: bool) -> Value:
        dtypes = {"accum_dtype": self.dtype, "out_dtype": self.dtype}
        return self._c.emit("Reduce", value, kind="Sum", axes=axes, keepdims=keepdims, **dtypes)

    def mean(self, value: Value) -> Value:
        """Return the mean over the features, repeated along them."""
        total = self.total(value, (self.axis,), keepdims=True)
        count = self._c.builder.constant(1 / self.shape[self.axis], self.dtype)
        share = self._c.emit("BroadcastTo", count, result_shape=total.shape)
        return self._c.emit("BroadcastTo", self.emit("Mul", total, share), result_shape=self.shape)

    def of_x(self) -> Value:
        """Take from the scaled cotangent what moves the mean and what moves the variance."""
        given = self.emit("Mul", self.cotangent, self.gamma)
        along = self.emit("Mul", self.normal, self.mean(self.emit("Mul", given, self.normal)))
        rest = self.emit("Sub", self.emit("Sub", given, self.mean(given)), along)
        return self.emit("Mul", self.scale, rest)

    def of_features(self, value: Value) -> Value:
        """Sum what each feature contributes."""
        return self.total(value, self.others, keepdims=False)


def _vjp(context: VjpContext) -> Sequence[Value | None]:
    types = [operand.type for operand in context.operands]
    if 0 in context.result.shape:
        return tuple(context.zeros(type_) for type_ in types)
    gradients = _Gradients(context)
    rules: tuple[Callable[[], Value], ...] = (
        gradients.of_x,
        lambda: gradients.of_features(gradients.emit("Mul", gradients.cotangent, gradients.normal)),
        lambda: gradients.of_features(gradients.cotangent),
    )
    found = [rule() if needed else None for rule, needed in zip(rules, context.needs, strict=True)]
    return tuple(
        None if gradient is None else gradients.cast(gradient, type_.dtype)
        for gradient, type_ in zip(found, types, strict=True)
    )


def _lower(context: LoweringContext) -> Any:
    result = context.result_type
    if result.element_count == 0:
        return context.empty(result)
    if result.dtype in COMPLEX:
        return complex_normalization.lower_complex(context)
    ir, mlir = context.mlir.ir, context.mlir
    x, gamma, beta = context.operands
    rank, axis = result.rank, context.attributes["feature_axis"] % result.rank
    arithmetic = context.arithmetic(result.dtype)
    computed = context.arithmetic(default_accumulator(result.dtype))
    rows = TensorType(computed.dtype, reduced_shape(result.shape, (axis,), keepdims=False))
    dims = [ir.AffineDimExpr.get(dim) for dim in range(rank)]
    whole = ir.AffineMap.get_identity(rank)
    row = ir.AffineMap.get(rank, 0, [dim for place, dim in enumerate(dims) if place != axis])
    feature = ir.AffineMap.get(rank, 0, [dims[axis]])
    count = result.extents[axis]

    def mean(total: Any) -> Any:
        return mlir.arith.divf(total, computed.constant(count))

    def centered(element: Any, middle: Any) -> Any:
        return computed.subtract(arithmetic.widened(element), middle)

    def square(element: Any, middle: Any, total: Any) -> Any:
        difference = centered(element, middle)
        return computed.add(total, computed.multiply(difference, difference))

    def scale(total: Any) -> Any:
        return mlir.math.rsqrt(computed.add(mean(total), computed.constant(context.attributes["epsilon"])))

    def normal(element: Any, middle: Any, factor: Any, weight: Any, shift: Any, _: Any) -> Any:
        unit = computed.multiply(centered(element, middle), factor)
        scaled = computed.multiply(unit, arithmetic.widened(weight))
        return arithmetic.rounded(computed.add(scaled, arithmetic.widened(shift)))

    zeros = context.filled(rows, 0)
    sums = context.reduce(x, zeros, [axis], lambda e, total: computed.add(total, arithmetic.widened(e)))
    means = context.elementwise(mean, [sums], rows)
    iterators = ["reduction" if dim == axis else "parallel" for dim in range(rank)]
    (squares,) = context.generic([x, means], [whole, row, row], [context.filled(rows, 0)], iterators, square)
    scales = context.elementwise(scale, [squares], rows)
    inputs, maps = [x, means, scales, gamma, beta], [whole, row, row, feature, feature, whole]
    (value,) = context.generic(inputs, maps, [context.empty(result)], ["parallel"] * rank, normal)
    return value


def _form(axis: int, epsilon: float = 1e-5) -> dict[str, Any]:
    return {"epsilon": epsilon, "feature_axis": axis}


_ATTRIBUTES = (
    AttributeDef("epsilon", AttrKind.F64, "what is added to the variance"),
    AttributeDef("feature_axis", AttrKind.I64, "the axis that the features lie along"),
)

OPERATIONS = (
    OpDef(
        opcode="LayerNorm",
        summary="Computes features of mean 0 and variance 1, then scales and shifts them.",
        description="`result = (x - mean) / sqrt(variance + epsilon) * gamma + beta`, where mean and "
        "variance are those along `feature_axis`, the variance the mean of the squares of `x - mean`, and "
        "`gamma` and `beta` have an element a feature (E3002, E3003). An axis outside the rank is E3004, an "
        "`epsilon` that is negative or not finite E1103.",
        spec="ptir-v0.4.md, Fused and convenience ops",
        operands=(OperandDef("x", _DTYPES), OperandDef("gamma", _DTYPES), OperandDef("beta", _DTYPES)),
        attributes=_ATTRIBUTES,
        type_rule=_type,
        evaluate=_evaluate,
        derivative=_vjp,
        dims=along(lambda use: (use.attributes["feature_axis"],)),
        open_axes=untouched(lambda context: (context.attributes["feature_axis"],)),
        lower=_lower,
        stablehlo=hlo.layer_norm,
        normalize=_normalize,
        rounding=Rounding.ACCUMULATING,
        terms=_terms,
        magnitude=_magnitude,
        choices=(
            "A negative axis counts from the end.",
            "Floats narrower than f32 are computed in f32, and rounded once, at the end.",
            "The mean is subtracted before anything is squared, so that the variance is not the difference "
            f"of large numbers. {ACCURACY}",
            "The gradients are those of the formula, for all three operands.",
            complex_normalization.CHOICE,
        ),
        extension=True,
        never=(
            NO_NUMBERS,
            NO_FLOATS,
        ),
        contract=same_fields("LayerNorm", _ATTRIBUTES, spec=None),
        examples=(
            Example(("T[5, 37]", "T[37]", "T[37]"), _form(1)),
            Example(("T[2, 3, 8]", "T[8]", "T[8]"), _form(-1, 1e-3), "a negative axis counts from the end"),
            Example(("T[37, 5]", "T[37]", "T[37]"), _form(0)),
            Example(("T[2, 7, 3]", "T[7]", "T[7]"), _form(1, 0.5)),
            Example(("T[13]", "T[13]", "T[13]"), _form(0)),
            Example(("T[3, 1]", "T[1]", "T[1]"), _form(1), "one feature: the shift alone"),
            Example(("T[0, 3]", "T[3]", "T[3]"), _form(1), "no rows"),
        ),
    ),
)
