"""Recipes of reductions, of axes, segments and windows, and of what looks through windows (`recipes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from growth import MAX_RANK, Growth, has_elements

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import ANY, FLOATS, INTEGERS, NUMERIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.value import Value


def reduction(opcode: str) -> Callable[[Growth], Value]:
    def recipe(g: Growth) -> Value:
        operand = g.operand(NUMERIC)
        rank = operand.type.rank
        axes = tuple(axis - rank if g.flag() else axis for axis in g.subset(range(rank)))
        value = g.emit(opcode, operand, axes=axes, keepdims=g.flag())
        g.accumulated(value)
        if operand.id in g.positive and operand.type.element_count:
            g.positive.add(value.id)
        return value

    return recipe


def reduce_prod(g: Growth) -> Value:
    # Of few elements: products of many leave the range of numbers.
    operand = g.operand(NUMERIC)
    few = [axis for axis, extent in enumerate(operand.shape) if extent <= 4]
    return g.accumulated(g.emit("ReduceProd", operand, axes=tuple(g.subset(few)[:1]), keepdims=g.flag()))


def cumulate(g: Growth) -> Value:
    operand = g.operand(NUMERIC, (1, MAX_RANK))
    axis = g.number(0, operand.type.rank - 1)
    few = operand.shape[axis] <= 4  # products of many leave the range of numbers
    kind = g.pick(["Sum", "Max", "Min", *(["Prod"] if few else [])])
    form = {"kind": kind, "axis": axis, "exclusive": g.flag(), "reverse": g.flag()}
    return g.accumulated(g.emit("Cumulate", operand, **form))


def reduce_bits(g: Growth) -> Value:
    operand = g.operand((DType.I1, DType.SI32, DType.SI64))
    kind = g.pick(["And", "Or", "Xor"])
    axes = tuple(g.subset(range(operand.type.rank)))
    return g.emit("ReduceBits", operand, axes=axes, keepdims=g.flag(), kind=kind)


def reduce(g: Growth) -> Value:
    kind = g.pick(["Sum", "Max", "Min"])
    operand = g.operand(ANY)
    dtype = operand.type.dtype
    if kind == "Sum" and dtype is DType.I1:
        dtype = DType.SI32
    axes = g.subset(range(operand.type.rank))
    value = g.emit(
        "Reduce", operand, kind=kind, axes=axes, keepdims=g.flag(), accum_dtype=dtype, out_dtype=dtype
    )
    g.accumulated(value)
    if operand.id in g.positive and operand.type.element_count:
        g.positive.add(value.id)
    return value


def argmax(g: Growth) -> Value:
    # Which of two numbers is greater is open where their last bits are.
    operand = g.operand(ANY, (1, MAX_RANK), lambda value: 0 not in value.shape and value.id not in g.inexact)
    axis = g.number(0, operand.type.rank - 1)
    return g.emit("ArgMax", operand, axis=axis, keepdims=g.flag(), output_dtype=g.pick(list(INTEGERS)))


def layer_norm(g: Growth) -> Value:
    x = g.operand(FLOATS, (1, MAX_RANK), lambda value: 0 not in value.shape)
    axis = g.number(0, x.type.rank - 1)
    features = x.type.with_shape((x.shape[axis],))
    # Without a large epsilon, the scale of equal features would depend on their last bits.
    value = g.emit("LayerNorm", x, g.of_type(features), g.of_type(features), epsilon=1.0, feature_axis=axis)
    return g.accumulated(value)


def segment_reduce(g: Growth) -> Value:
    values = g.operand(NUMERIC, (1, MAX_RANK), has_elements)
    ids = g.constant(TensorType(DType.SI64, values.shape[:1]))
    zeros = g.emit("Mul", ids, g.emit("Sub", ids, ids))
    dtype = values.type.dtype
    flags = {"indices_are_sorted": g.flag(), "unique": False}
    kind = g.pick(["Sum", "Max"])
    value = g.emit("SegmentReduce", values, zeros, kind=kind, num_segments=2, accum_dtype=dtype, **flags)
    return g.accumulated(value)


def reduce_window(g: Growth) -> Value:
    x = g.operand(NUMERIC, (0, MAX_RANK), has_elements)
    rank = x.type.rank
    window = tuple(g.number(1, min(extent, 3)) for extent in x.shape)
    lists = dict.fromkeys(("base_dilation", "window_dilation"), (1,) * rank)
    lists["strides"] = tuple(g.number(1, 2) for _ in window)
    lists |= {
        name: tuple(g.number(0, extent - 1) for extent in window) for name in ("padding_low", "padding_high")
    }
    kind = g.pick(["Sum", "Max", "Min"])
    dtype = x.type.dtype
    return g.accumulated(
        g.emit("ReduceWindow", x, window_dims=window, reduce=kind, accum_dtype=dtype, **lists)
    )


def extract_patches(g: Growth) -> Value:
    x = g.operand(ANY, (2, MAX_RANK), has_elements)
    window = tuple(g.number(1, min(extent, 3)) for extent in x.shape[1:-1])
    lists: dict[str, tuple[int, ...]] = {"dilation": (1,) * len(window)}
    lists["strides"] = tuple(g.number(1, 2) for _ in window)
    for name in ("padding_low", "padding_high"):
        lists[name] = tuple(g.number(0, 1) for _ in window)
    return g.emit("ExtractPatches", x, window=window, pad_value=TensorLiteral.of(1, x.type.dtype), **lists)
