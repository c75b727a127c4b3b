"""Reductions of traced arrays along axes, as numpy names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops import registry
from mind_mlir.support import argument_checks
from mind_mlir.tracing.places import broken_rule
from mind_mlir.tracing.promotion import FLOAT
from mind_mlir.tracing.trace import current_trace

if TYPE_CHECKING:
    from mind_mlir.tracing.array import TracedArray


def axes_of(axis: Any, rank: int) -> list[int]:
    """Return the axes that ``axis`` names, one or several, counted from the first.

    Raises:
        TypeError: It is no integer, and no sequence of integers.
        VerificationError: E3004, there is no such axis; E3005, one is named twice.
    """
    one = argument_checks.whole(axis)
    if one is None:
        expected = "an integer or a sequence of integers"
        given = [
            argument_checks.integer(each, "axis") for each in argument_checks.items(axis, "axis", expected)
        ]
    else:
        given = [one]
    axes = []
    for each in given:
        if not -rank <= each < rank:
            help_ = f"axes are {-rank} to {rank - 1}" if rank else "a scalar has no axes"
            message = f"axis {each} is outside of an array of rank {rank}"
            raise broken_rule("E3004", message, help_)
        axes.append(each % rank)
    if len(set(axes)) < len(axes):
        raise broken_rule("E3005", f"axes {given} name one axis twice", "name each axis once")
    return axes


def reduce(array: TracedArray, kind: str, axis: Any, *, keepdims: bool) -> TracedArray:
    """Return the sum, the greatest or the least element along axes, or of all."""
    trace = current_trace()
    value = trace.value(array)
    axes = list(range(array.ndim)) if axis is None else axes_of(axis, array.ndim)
    keepdims = argument_checks.flag(keepdims, "keepdims")
    if not axes:
        return trace.wrap(value, weak=array.weak)
    dtype = value.type.dtype
    if kind == "Sum" and dtype in registry.by_opcode()["Sum"].operand(0).dtypes:
        return trace.emit("Sum", value, axes=axes, keepdims=keepdims, weak=array.weak)
    is_narrow = dtype.is_narrow and kind == "Sum"
    return trace.emit(
        "Reduce",
        value,
        kind=kind,
        axes=axes,
        keepdims=keepdims,
        accum_dtype=DType.F32 if is_narrow else dtype,
        out_dtype=dtype,
        weak=array.weak,
    )


def total(array: TracedArray, axis: Any, dtype: DType, *, keepdims: bool) -> TracedArray:
    """Return the sum along axes, or of all, of numbers of ``dtype``, which it has, too."""
    axes = list(range(array.ndim)) if axis is None else axes_of(axis, array.ndim)
    return current_trace().emit(
        "Reduce",
        current_trace().value(array),
        kind="Sum",
        axes=axes,
        keepdims=argument_checks.flag(keepdims, "keepdims"),
        accum_dtype=dtype,
        out_dtype=dtype,
    )


def counted(array: TracedArray) -> TracedArray:
    """Return what is added up, or multiplied: truth values and integers as i64 or ui64, as numpy's."""
    dtype = array.value.type.dtype
    if dtype is DType.I1:
        return array.astype(DType.SI64)
    if not current_trace().promotes or not dtype.is_integer or array.weak:
        return array
    return array.astype(DType.UI64 if dtype.kind is DTypeKind.UNSIGNED else DType.SI64)


def mean(array: TracedArray, axis: Any, *, keepdims: bool) -> TracedArray:
    """Return the mean of floats along axes, or of all."""
    trace = current_trace()
    value = trace.value(array)
    dtype = value.type.dtype
    if dtype.kind not in (DTypeKind.FLOAT, DTypeKind.COMPLEX):
        if trace.promotes:
            floats = trace.emit("Cast", value, dtype=FLOAT.dtype, weak=True)
            return mean(floats, axis, keepdims=keepdims)
        raise broken_rule(
            "E2005",
            f"mean does not take {dtype.core_name}: the mean of integers is none",
            "convert them first: x.astype('f32').mean()",
            context={"found": dtype.core_name},
        )
    axes = list(range(array.ndim)) if axis is None else axes_of(axis, array.ndim)
    if not axes:
        return trace.wrap(value, weak=array.weak)
    if dtype in registry.by_opcode()["Mean"].operand(0).dtypes:
        return trace.emit(
            "Mean", value, axes=axes, keepdims=argument_checks.flag(keepdims, "keepdims"), weak=array.weak
        )
    total = reduce(array, "Sum", axis, keepdims=keepdims)
    return total / (array.size / max(total.size, 1))


def product(array: TracedArray, axis: Any, *, keepdims: bool) -> TracedArray:
    """Return the product along axes, or of all."""
    trace = current_trace()
    axes = list(range(array.ndim)) if axis is None else axes_of(axis, array.ndim)
    keepdims = argument_checks.flag(keepdims, "keepdims")
    value = trace.value(array)
    if not axes:
        return trace.wrap(value, weak=array.weak)
    return trace.emit("ReduceProd", value, axes=axes, keepdims=keepdims, weak=array.weak)


def argmax(array: TracedArray, axis: Any, *, keepdims: bool, least: bool = False) -> TracedArray:
    """Return where the greatest or the ``least`` element is, along an axis or in row-major order."""
    trace = current_trace()
    keepdims = argument_checks.flag(keepdims, "keepdims")
    one = array.reshape(-1) if axis is None else array
    place = 0 if axis is None else axes_of(argument_checks.integer(axis, "axis"), array.ndim)[0]
    if least:  # the greatest one in the opposite order
        one = -one if array.value.type.dtype.is_float else ~one
    found = trace.emit(
        "ArgMax",
        trace.value(one),
        axis=place,
        keepdims=keepdims and axis is not None,
        output_dtype=DType.SI64,
    )
    return found.reshape([1] * array.ndim) if keepdims and axis is None else found
