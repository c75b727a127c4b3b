"""Types of the functions' arguments and results, and helpers that apply operations while tracing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops.accumulators import ACCUMULATOR, OUTPUT, default_accumulator
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.opdef import COMPLEX, OpDef
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support import argument_checks
from mind_mlir.tracing.array import TracedArray
from mind_mlir.tracing.conversion import as_dtype, as_value, as_values
from mind_mlir.tracing.operators import broadcast_to, conversion_for, divide
from mind_mlir.tracing.promotion import FLOAT, LatticeNode
from mind_mlir.tracing.trace import Trace, current_trace

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.ir.value import Value

    #: A traced array, an array of numpy, a number, or nested lists of numbers.
    ArrayLike: TypeAlias = TracedArray | npt.ArrayLike
    #: A dtype, or what names one.
    DTypeLike: TypeAlias = DType | npt.DTypeLike
    Shape: TypeAlias = int | Sequence[int]
    Axes: TypeAlias = int | Sequence[int] | None

#: What the functions return: traced arrays within a function that is traced, else arrays of numpy. To type
#: checkers, a traced array is one of numpy, with ``at`` besides.
if TYPE_CHECKING:
    Array: TypeAlias = TracedArray
else:
    Array = TracedArray | np.ndarray[Any, Any]


def traced(x: ArrayLike) -> TracedArray:
    """Return an argument as an array of the trace that runs; a number stays without a dtype of its own."""
    (found,) = together(x)
    return found


def together(*xs: ArrayLike) -> list[TracedArray]:
    """Return arguments as arrays of the trace, of the dtype that they have together."""
    trace = current_trace()
    values, weak = as_values(trace, *xs)
    return [trace.wrap(value, weak=weak) for value in values]


def floats(x: ArrayLike) -> TracedArray:
    """Return an argument as floats, or complex numbers if it is; integers as ``x / 1`` converts them."""
    found = traced(x)
    is_float = found.value.type.dtype.kind in (DTypeKind.FLOAT, DTypeKind.COMPLEX)
    return found if is_float else divide(found, 1)


def stretched(x: TracedArray, shape: Sequence[int]) -> TracedArray:
    """Return ``x`` repeated to fill ``shape``.

    Raises:
        VerificationError: E3001, it does not broadcast to it.
    """
    trace = current_trace()
    return trace.wrap(broadcast_to(trace, trace.value(x), tuple(shape)), weak=x.weak)


def filled(shape: Sequence[int], number: float, dtype: DType) -> TracedArray:
    """Return an array of one number; as a truth value, it is whether that is not 0."""
    trace = current_trace()
    one = bool(number) if dtype is DType.I1 else number
    return stretched(trace.wrap(as_value(trace, one, dtype)), shape)


def constructed(dtype: DTypeLike | None, make: Callable[[DType], TracedArray]) -> TracedArray:
    """Return what ``make`` makes of a dtype; of none, floats that take the dtype of the arrays they meet."""
    if dtype is not None:
        return make(as_dtype(dtype))
    trace = current_trace()
    return trace.wrap(make(FLOAT.dtype).value, weak=trace.promotes)


def shape_of(shape: Any, parameter: str = "shape") -> tuple[int, ...]:
    """Return extents, given as an integer or as several."""
    one = argument_checks.whole(shape)
    if one is not None:
        return (one,)
    listed = argument_checks.items(shape, parameter, "an integer or a sequence of integers")
    return tuple([argument_checks.integer(extent, f"each extent of {parameter}") for extent in listed])


def op(opcode: str, *operands: Any, **attributes: Any) -> TracedArray:
    """Append an operation of one result."""
    (result,) = apply(by_opcode()[opcode], operands, attributes)
    return result


def apply(record: OpDef, operands: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[TracedArray, ...]:
    """Append an operation to the trace that runs, and return its results.

    Args:
        record: The operation.
        operands: What it reads: traced arrays, numpy's, or numbers, which take the dtype of the others.
        attributes: As Python writes them; None stands for what is left out.

    Raises:
        VerificationError: It breaks a rule of its record.
    """
    trace = current_trace()
    values, groups = _values(trace, record, operands)
    opcode = conversion_for(trace, record, values[0].type.dtype)[0] if values else record.opcode
    if opcode is None:
        return (trace.wrap(values[0], weak=groups[0].weak),)
    given = {name: value for name, value in attributes.items() if value is not None}
    for attribute in record.attributes:
        name = attribute.name
        if attribute.kind is AttrKind.DTYPE and name in given:
            given[name] = as_dtype(given[name], name)
        elif name == ACCUMULATOR.name and name not in given:
            given[name] = default_accumulator(values[0].type.dtype)
        elif name == OUTPUT.name and name not in given:
            given[name] = values[0].type.dtype
    results = trace.emit_all(opcode, *values, **given)
    if len(results) != 1:
        return results
    (result,) = results
    # What is computed of numbers alone is a number.
    alike = [node.weak for node in groups if node.dtype is result.value.type.dtype]
    weak = bool(alike) and all(alike if trace.promotes else [node.weak for node in groups])
    return (trace.wrap(result.value, weak=weak and (trace.promotes or not result.ndim)),)


def _alike(record: OpDef, index: int) -> object:
    """Return what operands of one dtype have alike; what a variadic one stands for may have several."""
    if record.same_dtype or not record.operands:
        return True
    operand = record.operand(index)
    return index if operand.variadic else operand.dtypes


def _values(trace: Trace, record: OpDef, operands: Sequence[Any]) -> tuple[list[Value], list[LatticeNode]]:
    """Return the operands as values, and what those of the same dtypes in the schema have together."""
    nodes = []
    groups: dict[object, list[int]] = {}
    for index in range(len(operands)):
        groups.setdefault(_alike(record, index), []).append(index)
    found: dict[int, Value] = {}
    for places in groups.values():
        values, are_weak = as_values(trace, *(operands[place] for place in places))
        allowed = record.operand(places[0]).dtypes if record.operands else ()
        dtype = values[0].type.dtype
        taken = conversion_for(trace, record, dtype)[1] if 0 in places else dtype
        if taken is not dtype:
            values, are_weak = [as_value(trace, operands[place], taken) for place in places], True
        elif are_weak and allowed and dtype not in allowed:
            like = _widest(allowed)
            values = [as_value(trace, operands[place], like) for place in places]
        nodes.append(LatticeNode(values[0].type.dtype, are_weak))
        found |= dict(zip(places, values, strict=True))
    return [found[index] for index in range(len(operands))], nodes


def _widest(allowed: Sequence[DType]) -> DType:
    """Return the dtype that a number takes where its own is none of those ``allowed``."""
    return max([dtype for dtype in allowed if dtype not in COMPLEX] or allowed, key=lambda dtype: dtype.bits)
