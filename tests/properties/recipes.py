"""How each operation is put to use in a generated program: one small recipe an opcode.

A recipe picks operands from the program so far and attributes that fit them, and appends the operation. It
always succeeds: what does not exist yet is made. `Builder` rejects whatever breaks a rule, so a recipe that
is wrong fails loudly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from growth import MAX_RANK, SMALL, Growth, InputDomain

from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import ANY, BOOL, FLOATS, INTEGERS, NUMERIC, Domain
from mind_mlir.ops.scatter_windows import row_form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from growth import Shape

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import DTypeSet


def _input(g: Growth) -> Value:
    return g.fresh(TensorType(g.dtype(), g.shape()))


def _constant(dtype: DType) -> Callable[[Growth], Value]:
    return lambda g: g.constant(TensorType(dtype))


def _constant_tensor(g: Growth) -> Value:
    shape = tuple(g.pick(SMALL.extents[:3]) for _ in range(g.number(1, 3)))
    return g.constant(TensorType(g.dtype(), shape))


# Elementwise


def _binary(opcode: str, dtypes: DTypeSet = NUMERIC) -> Callable[[Growth], Value]:
    def recipe(g: Growth) -> Value:
        left = g.operand(dtypes)
        operands = [left, g.broadcastable(left)]
        if g.flag():
            operands.reverse()
        value = g.emit(opcode, *operands)
        if opcode != "Sub" and all(operand.id in g.positive for operand in operands):
            g.positive.add(value.id)
        return value

    return recipe


def _unary(opcode: str) -> Callable[[Growth], Value]:
    return lambda g: g.emit(opcode, g.operand(NUMERIC))


def _exp(g: Growth) -> Value:
    value = g.emit("Exp", g.operand(FLOATS))
    g.positive.add(value.id)
    g.inexact.add(value.id)
    return value


def _positive(g: Growth) -> Value:
    """Return a float that is positive, unless the program is wild."""
    if g.wild:
        return g.operand(FLOATS)
    found = g.existing(lambda value: value.id in g.positive and value.type.dtype in FLOATS)
    return found or g.fresh(TensorType(g.dtype(FLOATS), g.shape()), InputDomain(Domain.POSITIVE))


def _log(g: Growth) -> Value:
    value = g.emit("Log", _positive(g))
    g.inexact.add(value.id)
    return value


def _reciprocal(g: Growth) -> Value:
    operand = _positive(g)
    value = g.emit("Reciprocal", operand)
    if operand.id in g.positive:
        g.positive.add(value.id)
    return value


def _rsqrt(g: Growth) -> Value:
    operand = _positive(g)
    value = g.emit("Rsqrt", operand)
    if operand.id in g.positive:
        g.positive.add(value.id)
    g.inexact.add(value.id)
    return value


def _inexact(opcode: str) -> Callable[[Growth], Value]:
    def grow(g: Growth) -> Value:
        value = g.emit(opcode, g.operand(FLOATS))
        g.inexact.add(value.id)
        return value

    return grow


def _clamp(g: Growth) -> Value:
    x = g.operand(NUMERIC)
    return g.emit("Clamp", x, g.of_type(x.type), g.of_type(x.type))


def _compare(g: Growth) -> Value:
    # A comparison of values whose last bits are open has an open result.
    left = g.operand(ANY, wanted=lambda value: value.id not in g.inexact)
    right = g.of_type(left.type, lambda value: value.id not in g.inexact)
    op = g.pick(["Less", "LessEqual", "Equal", "GreaterEqual", "Greater", "NotEqual"])
    return g.emit("Compare", left, right, op=op)


def _not(g: Growth) -> Value:
    return g.emit("Not", g.operand(BOOL))


def _cast(g: Growth) -> Value:
    dtype = g.dtype()
    # Whether the last bits of a float are open makes another integer of it.
    exact = not dtype.is_float
    operand = g.operand(ANY, wanted=lambda value: not (exact and value.id in g.inexact))
    return g.emit("Cast", operand, dtype=dtype)


def _select(g: Growth) -> Value:
    pred = g.operand((DType.I1,))
    branch = TensorType(g.dtype(), pred.shape)
    return g.emit("Select", pred, g.of_type(branch), g.of_type(branch))


# Reductions


def _reduction(opcode: str) -> Callable[[Growth], Value]:
    def recipe(g: Growth) -> Value:
        operand = g.operand(NUMERIC)
        rank = operand.type.rank
        axes = tuple(axis - rank if g.flag() else axis for axis in g.subset(range(rank)))
        value = g.emit(opcode, operand, axes=axes, keepdims=g.flag())
        _accumulated(g, value)
        if operand.id in g.positive and operand.type.element_count:
            g.positive.add(value.id)
        return value

    return recipe


def _reduce(g: Growth) -> Value:
    kind = g.pick(["Sum", "Max", "Min"])
    operand = g.operand(ANY)
    dtype = operand.type.dtype
    if kind == "Sum" and dtype is DType.I1:
        dtype = DType.SI32
    axes = g.subset(range(operand.type.rank))
    value = g.emit(
        "Reduce", operand, kind=kind, axes=axes, keepdims=g.flag(), accum_dtype=dtype, out_dtype=dtype
    )
    _accumulated(g, value)
    if operand.id in g.positive and operand.type.element_count:
        g.positive.add(value.id)
    return value


def _argmax(g: Growth) -> Value:
    # Which of two numbers is greater is open where their last bits are.
    operand = g.operand(ANY, (1, MAX_RANK), lambda value: 0 not in value.shape and value.id not in g.inexact)
    axis = g.number(0, operand.type.rank - 1)
    return g.emit("ArgMax", operand, axis=axis, keepdims=g.flag(), output_dtype=g.pick(list(INTEGERS)))


def _accumulated(g: Growth, value: Value) -> Value:
    if value.type.dtype.is_float:
        g.inexact.add(value.id)
    return value


# Shapes


def _factor(g: Growth, count: int) -> Shape:
    """Return a shape of ``count`` elements, its prime factors distributed at random."""
    extents = [1] * g.number(0 if count == 1 else 1, MAX_RANK)
    factor = 2
    while count > 1:
        while count % factor:
            factor += 1
        count //= factor
        extents[g.number(0, len(extents) - 1)] *= factor
    return tuple(extents)


def _reshape(g: Growth) -> Value:
    operand = g.operand(ANY)
    count = operand.type.element_count
    if count == 0:
        others = tuple(g.pick(SMALL.extents) for _ in range(g.number(0, MAX_RANK - 1)))
        at = g.number(0, len(others))
        return g.emit("Reshape", operand, new_shape=(*others[:at], -1, *others[at:]))
    shape = list(_factor(g, count))
    if shape and g.flag():
        shape[g.number(0, len(shape) - 1)] = -1
    return g.emit("Reshape", operand, new_shape=tuple(shape))


def _expand_dims(g: Growth) -> Value:
    operand = g.operand(ANY)
    rank = operand.type.rank
    axes = [g.number(0, rank) for _ in range(g.number(0, MAX_RANK - rank))]
    return g.emit("ExpandDims", operand, axes=tuple(axes))


def _squeeze(g: Growth) -> Value:
    operand = g.operand(ANY, wanted=lambda value: 1 in value.shape)
    ones = [axis for axis, extent in enumerate(operand.shape) if extent == 1]
    return g.emit("Squeeze", operand, axes=tuple(g.subset(ones)))


def _transpose(g: Growth) -> Value:
    operand = g.operand(ANY)
    axes = list(range(operand.type.rank))
    permutation: list[int] = []
    while axes:
        permutation.append(axes.pop(g.number(0, len(axes) - 1)))
    return g.emit("Transpose", operand, permutation=tuple(permutation))


def _broadcast_to(g: Growth) -> Value:
    operand = g.operand(ANY)
    shape = list(operand.shape)
    smallest = 0 if g.empties else 1
    while len(shape) < MAX_RANK and g.flag():
        shape.insert(0, 1)
    for axis, extent in enumerate(shape):
        if extent == 1 and g.flag():
            room = g.sizes.elements // max(math.prod(shape), 1)
            extents = [e for e in (*g.sizes.extents, 0) if smallest <= e <= room]
            shape[axis] = g.pick(extents)
    return g.emit("BroadcastTo", operand, result_shape=tuple(shape))


# Indexing


def _full(value: Value) -> bool:
    return value.type.element_count > 0


def _index(g: Growth) -> Value:
    operand = g.operand(ANY, wanted=_full)
    return g.emit("Index", operand, indices=tuple(g.number(-extent, extent - 1) for extent in operand.shape))


def _index_shape(g: Growth, row: Shape) -> Shape:
    shape: list[int] = []
    while len(shape) + len(row) < MAX_RANK and g.flag():
        shape.append(g.extent(tuple(shape), row))
    return tuple(shape)


def _gather(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK), wanted=lambda value: value.shape[0] > 0)
    return g.emit("Gather", operand, g.indices(operand.shape[0], _index_shape(g, operand.shape[1:])))


def _scatter_add(g: Growth) -> Value:
    operand = g.operand(NUMERIC, (1, MAX_RANK), wanted=lambda value: value.shape[0] > 0)
    indices = g.indices(operand.shape[0], _index_shape(g, operand.shape[1:]))
    updates = g.of_type(operand.type.with_shape((*indices.shape, *operand.shape[1:])))
    form = row_form(operand.type.rank, indices.type.rank)
    return _accumulated(g, g.emit("ScatterAdd", operand, indices, updates, **form))


def _take(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK), wanted=lambda value: value.shape[0] > 0)
    return g.emit("Take", operand, g.positions(operand.shape[0], _index_shape(g, operand.shape[1:])))


def _along(g: Growth, operand: Value) -> tuple[int, Shape]:
    """Return an axis that is not empty, and the shape of ``operand`` with another extent there."""
    axis = g.pick([axis for axis, extent in enumerate(operand.shape) if extent])
    others = (*operand.shape[:axis], *operand.shape[axis + 1 :])
    return axis, (*others[:axis], g.extent(others), *others[axis:])


def _gather_elements(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK), wanted=lambda value: any(value.shape))
    axis, shape = _along(g, operand)
    return g.emit("GatherElements", operand, g.positions(operand.shape[axis], shape), axis=axis)


def _scatter_reduce(g: Growth) -> Value:
    operand = g.operand(NUMERIC, (1, MAX_RANK), wanted=lambda value: any(value.shape))
    axis, shape = _along(g, operand)
    indices = g.positions(operand.shape[axis], shape)
    updates = g.of_type(operand.type.with_shape(shape))
    kind = g.pick(["Add", "Max", "Min", "Replace"])
    return _accumulated(g, g.emit("ScatterReduce", operand, indices, updates, axis=axis, reduce=kind))


def _slice(g: Growth) -> Value:
    operand = g.operand(ANY)
    starts, ends, steps = [], [], []
    for extent in operand.shape:
        start, end, step = _range(g, extent)
        starts.append(start)
        ends.append(end)
        steps.append(step)
    return g.emit("Slice", operand, starts=tuple(starts), ends=tuple(ends), steps=tuple(steps))


def _range(g: Growth, extent: int) -> tuple[int, int, int]:
    if g.flag():
        return 0, extent, 1
    step = g.pick([1, 2, -1, 3, -2])
    start, end = g.number(-extent - 1, extent + 1), g.number(-extent - 1, extent + 1)
    if range(*slice(start, end, step).indices(extent)) or g.empties:
        return start, end, step
    return (0, extent, step) if step > 0 else (extent, -extent - 1, step)


def _start(g: Growth, rank: int) -> Value:
    return g.of_type(TensorType(g.dtype(INTEGERS), (rank,)))


def _window(g: Growth, shape: Shape) -> Shape:
    return tuple(g.number(0 if g.empties else min(1, extent), extent) for extent in shape)


def _dynamic_slice(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK))
    start = _start(g, operand.type.rank)
    return g.emit("DynamicSlice", operand, start, sizes=_window(g, operand.shape))


def _dynamic_update_slice(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK))
    update = g.of_type(operand.type.with_shape(_window(g, operand.shape)))
    return g.emit("DynamicUpdateSlice", operand, update, _start(g, operand.type.rank))


def _concat(g: Growth) -> Value:
    operand = g.operand(ANY, (1, MAX_RANK))
    axis = g.number(-operand.type.rank, operand.type.rank - 1)
    shape = list(operand.shape)
    shape[axis] = g.extent(tuple(extent for at, extent in enumerate(shape) if at != axis % len(shape)))
    shape[axis] = min(shape[axis], max(operand.shape[axis], 1))
    return g.emit("Concat", operand, g.of_type(operand.type.with_shape(tuple(shape))), axis=axis)


def _tile(g: Growth) -> Value:
    operand = g.operand(ANY)
    repeats, shape = [], list(operand.shape)
    for axis, extent in enumerate(operand.shape):
        repeats.append(g.number(0 if g.empties else 1, 2))
        shape[axis] = extent * repeats[-1]
        if not g.sizes.fit(tuple(shape)):
            repeats[-1], shape[axis] = 1, extent
    return g.emit("Tile", operand, repeats=tuple(repeats))


def _iota(g: Growth) -> Value:
    shape = g.shape(1)
    return g.emit("Iota", shape=shape, dtype=g.dtype(NUMERIC), axis=g.number(-len(shape), len(shape) - 1))


def _pad(g: Growth) -> Value:
    operand = g.operand(ANY)
    low, high, interior = [], [], []
    shape = list(operand.shape)
    for axis, extent in enumerate(operand.shape):
        amounts = (g.number(0, 2), g.number(0, 2), g.number(0, 2)) if g.flag() else (0, 0, 0)
        shape[axis] = amounts[0] + extent + amounts[1] + max(extent - 1, 0) * amounts[2]
        if not g.sizes.fit(tuple(shape)):
            amounts, shape[axis] = (0, 0, 0), extent
        low.append(amounts[0])
        high.append(amounts[1])
        interior.append(amounts[2])
    value = TensorLiteral.of(g.number(0, 1), operand.type.dtype)
    return g.emit("Pad", operand, low=tuple(low), high=tuple(high), interior=tuple(interior), pad_value=value)


# Extensions


def _dequantize(g: Growth) -> Value:
    x = g.operand((DType.SI32,))
    scale = g.of_type(TensorType(g.dtype(FLOATS)))
    zero = g.of_type(TensorType(DType.SI32))
    return _accumulated(g, g.emit("Dequantize", x, scale, zero, output_dtype=g.dtype(FLOATS), axis=()))


# Contractions


def _dot(g: Growth) -> Value:
    left = g.operand(NUMERIC, (1, 2))
    shape: Shape = left.shape[-1:]
    if g.flag():
        shape = (*shape, g.extent(max(left.shape[:-1], left.shape[-1:], key=math.prod)))
    return _accumulated(g, g.emit("Dot", left, g.of_type(left.type.with_shape(shape))))


def _matmul(g: Growth) -> Value:
    left = g.operand(NUMERIC, (2, MAX_RANK))
    batch = left.shape[g.number(0, left.type.rank - 2) : -2]
    batch = tuple(1 if g.number(0, 2) == 0 else extent for extent in batch)
    columns = g.extent(max(left.shape[:-1], (*batch, left.shape[-1]), key=math.prod))
    right = g.of_type(left.type.with_shape((*batch, left.shape[-1], columns)))
    return _accumulated(g, g.emit("MatMul", left, right))


def _dot_general(g: Growth) -> Value:
    left = g.operand(NUMERIC, (0, 3), _full)
    axes = list(range(left.type.rank))
    paired = g.subset(axes)
    batch = tuple(axis for axis in paired if g.flag())
    contract = tuple(axis for axis in paired if axis not in batch)
    free = () if g.flag() else (g.pick(SMALL.extents[:3]),)
    shape = (*(left.shape[axis] for axis in (*contract, *batch)), *free)
    right = g.of_type(left.type.with_shape(shape))
    places = range(len(paired))
    value = g.emit(
        "DotGeneral",
        left,
        right,
        batch_lhs=batch,
        batch_rhs=tuple(places[len(contract) :]),
        contract_lhs=contract,
        contract_rhs=tuple(places[: len(contract)]),
        accum_dtype=left.type.dtype,
        out_dtype=left.type.dtype,
    )
    return _accumulated(g, value)


def _layer_norm(g: Growth) -> Value:
    x = g.operand(FLOATS, (1, MAX_RANK), lambda value: 0 not in value.shape)
    axis = g.number(0, x.type.rank - 1)
    features = x.type.with_shape((x.shape[axis],))
    # Without a large epsilon, the scale of equal features would depend on their last bits.
    value = g.emit("LayerNorm", x, g.of_type(features), g.of_type(features), epsilon=1.0, feature_axis=axis)
    return _accumulated(g, value)


def _segment_reduce(g: Growth) -> Value:
    values = g.operand(NUMERIC, (1, MAX_RANK), _full)
    ids = g.constant(TensorType(DType.SI64, values.shape[:1]))
    zeros = g.emit("Mul", ids, g.emit("Sub", ids, ids))
    dtype = values.type.dtype
    flags = {"indices_are_sorted": g.flag(), "unique": False}
    kind = g.pick(["Sum", "Max"])
    value = g.emit("SegmentReduce", values, zeros, kind=kind, num_segments=2, accum_dtype=dtype, **flags)
    return _accumulated(g, value)


def _reduce_window(g: Growth) -> Value:
    x = g.operand(NUMERIC, (0, MAX_RANK), _full)
    rank = x.type.rank
    window = tuple(g.number(1, min(extent, 3)) for extent in x.shape)
    lists = dict.fromkeys(("base_dilation", "window_dilation"), (1,) * rank)
    lists["strides"] = tuple(g.number(1, 2) for _ in window)
    lists |= {
        name: tuple(g.number(0, extent - 1) for extent in window) for name in ("padding_low", "padding_high")
    }
    kind = g.pick(["Sum", "Max", "Min"])
    dtype = x.type.dtype
    return _accumulated(
        g, g.emit("ReduceWindow", x, window_dims=window, reduce=kind, accum_dtype=dtype, **lists)
    )


def _extract_patches(g: Growth) -> Value:
    x = g.operand(ANY, (2, MAX_RANK), _full)
    window = tuple(g.number(1, min(extent, 3)) for extent in x.shape[1:-1])
    lists: dict[str, tuple[int, ...]] = {"dilation": (1,) * len(window)}
    lists["strides"] = tuple(g.number(1, 2) for _ in window)
    for name in ("padding_low", "padding_high"):
        lists[name] = tuple(g.number(0, 1) for _ in window)
    return g.emit("ExtractPatches", x, window=window, pad_value=TensorLiteral.of(1, x.type.dtype), **lists)


def _conv2d(g: Growth) -> Value:
    image = g.operand(NUMERIC, (4, 4), wanted=_full)
    kernel = tuple(g.number(1, min(extent, 3)) for extent in image.shape[1:3])
    filter_ = g.of_type(image.type.with_shape((*kernel, image.shape[3], g.pick(SMALL.extents[:3]))))
    padding = Padding(g.pick(list(PaddingMode)))
    if padding.mode is PaddingMode.CUSTOM:
        (top, bottom), (left, right) = ((g.number(0, 2), g.number(0, 2)) for _ in range(2))
        padding = Padding(padding.mode, ((top, bottom), (left, right)))
    strides = (g.number(1, 3), g.number(1, 3))
    return _accumulated(g, g.emit("Conv2d", image, filter_, strides=strides, padding=padding))


RECIPES: Mapping[str, Callable[[Growth], Value]] = {
    "Input": _input,
    "ConstI64": _constant(DType.SI64),
    "ConstF32": _constant(DType.F32),
    "ConstF64": _constant(DType.F64),
    "ConstTensor": _constant_tensor,
    "Add": _binary("Add"),
    "Sub": _binary("Sub"),
    "Mul": _binary("Mul"),
    "Maximum": _binary("Maximum"),
    "Minimum": _binary("Minimum"),
    "Neg": _unary("Neg"),
    "Relu": _unary("Relu"),
    "Exp": _exp,
    "Log": _log,
    "Reciprocal": _reciprocal,
    "Tanh": _inexact("Tanh"),
    "Erf": _inexact("Erf"),
    "Rsqrt": _rsqrt,
    "Abs": _unary("Abs"),
    "Clamp": _clamp,
    "StopGradient": lambda g: g.emit("StopGradient", g.operand(ANY)),
    "Compare": _compare,
    "Select": _select,
    "And": _binary("And", BOOL),
    "Or": _binary("Or", BOOL),
    "Xor": _binary("Xor", BOOL),
    "Not": _not,
    "Cast": _cast,
    "Sum": _reduction("Sum"),
    "Reduce": _reduce,
    "ArgMax": _argmax,
    "Mean": _reduction("Mean"),
    "Reshape": _reshape,
    "ExpandDims": _expand_dims,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "BroadcastTo": _broadcast_to,
    "Index": _index,
    "Gather": _gather,
    "Take": _take,
    "GatherElements": _gather_elements,
    "ScatterReduce": _scatter_reduce,
    "Concat": _concat,
    "Tile": _tile,
    "Iota": _iota,
    "Dequantize": _dequantize,
    "Slice": _slice,
    "DynamicSlice": _dynamic_slice,
    "DynamicUpdateSlice": _dynamic_update_slice,
    "Pad": _pad,
    "ScatterAdd": _scatter_add,
    "Dot": _dot,
    "MatMul": _matmul,
    "DotGeneral": _dot_general,
    "LayerNorm": _layer_norm,
    "ExtractPatches": _extract_patches,
    "ReduceWindow": _reduce_window,
    "SegmentReduce": _segment_reduce,
    "Conv2d": _conv2d,
}

CONSTANTS = frozenset({"Input", "ConstI64", "ConstF32", "ConstF64", "ConstTensor"})
ELEMENTWISE = frozenset(
    {
        *("Add", "Sub", "Mul", "Neg", "Maximum", "Minimum", "Relu", "Exp", "Log", "Reciprocal"),
        *("Tanh", "Erf", "Rsqrt", "Abs", "Clamp", "StopGradient"),
        *("Compare", "Select", "And", "Or", "Xor", "Not", "Cast", "BroadcastTo"),
    }
)
#: Differentiable wherever the operands are in their domain.
SMOOTH = frozenset(RECIPES) - {
    *("Relu", "Compare", "Maximum", "Minimum", "Cast", "Abs", "Clamp", "StopGradient"),
    # Not of complex numbers, by which slopes are measured.
    *("Erf", "Reduce", "DotGeneral", "LayerNorm", "ReduceWindow", "SegmentReduce", "ScatterReduce"),
    *("Dequantize", "ScatterAdd", "Rsqrt", "ExtractPatches"),
}
