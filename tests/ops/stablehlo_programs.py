"""One operation of ours as a StableHLO program: an independent statement of what it computes.

StableHLO says less than the contract about what is undefined there (conversions of numbers that do not fit,
integer division by zero), and other things of broadcasting: what is implicit with us is spelled out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, DTypeKind, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ELEMENTS = {
    DType.I1: "i1",
    DType.FP8_E4M3: "f8E4M3FN",
    DType.FP8_E5M2: "f8E5M2",
    DType.CF32: "complex<f32>",
    DType.CF64: "complex<f64>",
}


def element(dtype: DType) -> str:
    """Return how StableHLO spells ``dtype``."""
    if dtype.kind is DTypeKind.SIGNED:
        return f"i{dtype.bits}"
    return _ELEMENTS.get(dtype, str(dtype.value))


def spelled(type_: TensorType) -> str:
    """Return how StableHLO spells ``type_``."""
    return f"tensor<{'x'.join([*map(str, type_.extents), element(type_.dtype)])}>"


def array(values: Sequence[int]) -> str:
    """Return an attribute with integers."""
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def number(value: float, dtype: DType) -> str:
    """Return a literal of rank 0."""
    if dtype is DType.I1:
        return str(bool(value)).lower()
    if dtype.is_float and not math.isfinite(value):
        bits = int.from_bytes(dtype.numpy.type(value).tobytes(), "little")
        return f"0x{bits:0{dtype.bits // 4}X}"
    return repr(float(value)) if dtype.is_float else str(int(value))


@dataclass
class Writer:
    """Writes the statements of a program.

    Attributes:
        operands: The names of the operation's operands.
        types: Their types.
        attributes: The complete attributes of the operation.
        result: The type of its result.
    """

    operands: list[str]
    types: tuple[TensorType, ...]
    attributes: Mapping[str, Any]
    result: TensorType
    lines: list[str] = field(default_factory=list)

    def emit(self, text: str, types: str) -> str:
        """Append an operation and return the name of its value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text} : {types}")
        return name

    def convert(self, value: str, source: TensorType, target: TensorType) -> str:
        """Append a conversion, if there is anything to convert."""
        if source == target:
            return value
        return self.emit(f"stablehlo.convert {value}", f"({spelled(source)}) -> {spelled(target)}")

    def constant(self, value: float, type_: TensorType) -> str:
        """Append a constant whose elements are all ``value``."""
        return self.emit(f"stablehlo.constant dense<{number(value, type_.dtype)}>", spelled(type_))

    def broadcast(self, value: str, source: TensorType, shape: tuple[int, ...]) -> str:
        """Append ``value`` stretched to ``shape``, aligned from the right."""
        if source.extents == shape:
            return value
        axes = range(len(shape) - source.rank, len(shape))
        types = f"({spelled(source)}) -> {spelled(source.with_shape(shape))}"
        return self.emit(f"stablehlo.broadcast_in_dim {value}, dims = {list(axes)}", types)

    def reduce(
        self, value: str, source: TensorType, axes: Sequence[int], kind: str, result: TensorType
    ) -> str:
        """Append a reduction of ``axes``; ``result`` is its type."""
        start = self.constant(identity(kind, source.dtype), source.with_shape(()))
        name, scalar = _COMBINERS[kind], spelled(source.with_shape(()))
        types = f"({spelled(source)}, {scalar}) -> {spelled(result)}"
        text = f"stablehlo.reduce({value} init: {start}) applies stablehlo.{name}"
        return self.emit(f"{text} across dimensions = {list(axes)}", types)


_COMBINERS = {"Sum": "add", "Max": "maximum", "Min": "minimum", "Add": "add"}


def identity(kind: str, dtype: DType) -> float:
    """Return what a reduction starts from."""
    if kind in ("Sum", "Add"):
        return 0
    sign = -1 if kind == "Max" else 1
    if dtype is DType.I1:
        return 0 if kind == "Max" else 1
    if dtype.is_float:
        return sign * (math.inf if dtype is not DType.FP8_E4M3 else 448)
    low = 0 if dtype.kind is DTypeKind.UNSIGNED else -(2 ** (dtype.bits - 1))
    return low if kind == "Max" else low + 2**dtype.bits - 1


def _unary(name: str) -> Callable[[Writer], str]:
    def write(w: Writer) -> str:
        return w.emit(f"stablehlo.{name} {w.operands[0]}", spelled(w.result))

    return write


def _stretched(w: Writer) -> list[str]:
    pairs = zip(w.operands, w.types, strict=True)
    return [w.broadcast(value, type_, w.result.extents) for value, type_ in pairs]


def _binary(name: str) -> Callable[[Writer], str]:
    def write(w: Writer) -> str:
        left, right = _stretched(w)
        return w.emit(f"stablehlo.{name} {left}, {right}", spelled(w.result))

    return write


def _reciprocal(w: Writer) -> str:
    return w.emit(f"stablehlo.divide {w.constant(1, w.result)}, {w.operands[0]}", spelled(w.result))


_DIRECTIONS = {
    "Less": "LT",
    "LessEqual": "LE",
    "Equal": "EQ",
    "GreaterEqual": "GE",
    "Greater": "GT",
    "NotEqual": "NE",
}


def _compare(w: Writer) -> str:
    dtype = w.types[0].dtype
    signed = dtype.kind is DTypeKind.SIGNED
    kind = (
        "FLOAT" if dtype.is_float or dtype.kind is DTypeKind.COMPLEX else "SIGNED" if signed else "UNSIGNED"
    )
    direction, type_ = _DIRECTIONS[w.attributes["op"]], spelled(w.types[0])
    left, right = w.operands
    return w.emit(
        f"stablehlo.compare {direction}, {left}, {right}, {kind}",
        f"({type_}, {type_}) -> {spelled(w.result)}",
    )


def _select(w: Writer) -> str:
    types = f"{spelled(w.types[0])}, {spelled(w.result)}"
    return w.emit(f"stablehlo.select {', '.join(w.operands)}", types)


def _clamp(w: Writer) -> str:
    x, low, high = w.operands
    least = w.emit(f"stablehlo.maximum {x}, {low}", spelled(w.result))
    return w.emit(f"stablehlo.minimum {least}, {high}", spelled(w.result))


def _relu(w: Writer) -> str:
    return w.emit(f"stablehlo.maximum {w.operands[0]}, {w.constant(0, w.result)}", spelled(w.result))


def _cast(w: Writer) -> str:
    return w.convert(w.operands[0], w.types[0], w.result)


def _moved(text: Callable[[Writer], str]) -> Callable[[Writer], str]:
    """An operation of all operands whose types are spelled out."""

    def write(w: Writer) -> str:
        types = f"({', '.join(map(spelled, w.types))}) -> {spelled(w.result)}"
        return w.emit(text(w), types)

    return write


def _reshape(w: Writer) -> str:
    return f"stablehlo.reshape {w.operands[0]}"


def _transpose(w: Writer) -> str:
    return f"stablehlo.transpose {w.operands[0]}, dims = {list(w.attributes['permutation'])}"


def _broadcast_to(w: Writer) -> str:
    return w.broadcast(w.operands[0], w.types[0], w.result.extents)


def _slice(w: Writer) -> str:
    a, source = w.attributes, w.types[0]
    parts = zip(source.extents, a["starts"], a["ends"], a["steps"], strict=True)
    taken = [range(extent)[start:end:step] for extent, start, end, step in parts]
    turned = [axis for axis, places in enumerate(taken) if places.step < 0]
    value = w.operands[0]
    if turned:
        value = w.emit(f"stablehlo.reverse {value}, dims = {turned}", spelled(source))
    ranges = []
    for extent, places in zip(source.extents, taken, strict=True):
        first = extent - 1 - places.start if places.step < 0 else places.start
        step = abs(places.step)
        ranges.append(f"{first}:{first + (len(places) - 1) * step + 1 if places else first}:{step}")
    types = f"({spelled(source)}) -> {spelled(w.result)}"
    return w.emit(f"stablehlo.slice {value} [{', '.join(ranges)}]", types)


def _concat(w: Writer) -> str:
    return f"stablehlo.concatenate {', '.join(w.operands)}, dim = {w.attributes['axis'] % w.result.rank}"


def _pad(w: Writer) -> str:
    a, scalar = w.attributes, w.types[0].with_shape(())
    fill = w.constant(a["pad_value"].array.item(), scalar)
    text = f"stablehlo.pad {w.operands[0]}, {fill}, low = {list(a['low'])}, high = {list(a['high'])}"
    types = f"({spelled(w.types[0])}, {spelled(scalar)}) -> {spelled(w.result)}"
    return w.emit(f"{text}, interior = {list(a['interior'])}", types)


def _tile(w: Writer) -> str:
    value, type_ = w.operands[0], w.types[0]
    for axis, repeats in enumerate(w.attributes["repeats"]):
        if repeats == 0:
            return w.constant(0, w.result)
        shape = (*type_.extents[:axis], type_.extents[axis] * repeats, *type_.extents[axis + 1 :])
        types = f"({', '.join([spelled(type_)] * repeats)}) -> {spelled(type_.with_shape(shape))}"
        value = w.emit(f"stablehlo.concatenate {', '.join([value] * repeats)}, dim = {axis}", types)
        type_ = type_.with_shape(shape)
    return value


def _iota(w: Writer) -> str:
    return w.emit(f"stablehlo.iota dim = {w.attributes['axis'] % w.result.rank}", spelled(w.result))


def _starts(w: Writer, operand: int, rank: int) -> tuple[list[str], list[str]]:
    """Append the elements of a vector as scalars; return their names and types."""
    vector, scalar = w.types[operand], w.types[operand].with_shape(())
    names = []
    for axis in range(rank):
        one = vector.with_shape((1,))
        row = w.emit(
            f"stablehlo.slice {w.operands[operand]} [{axis}:{axis + 1}]",
            f"({spelled(vector)}) -> {spelled(one)}",
        )
        names.append(w.emit(f"stablehlo.reshape {row}", f"({spelled(one)}) -> {spelled(scalar)}"))
    return names, [spelled(scalar)] * rank


def _dynamic_slice(w: Writer) -> str:
    names, types = _starts(w, 1, w.types[0].rank)
    text = (
        f"stablehlo.dynamic_slice {', '.join([w.operands[0], *names])}, sizes = {list(w.attributes['sizes'])}"
    )
    return w.emit(text, f"({', '.join([spelled(w.types[0]), *types])}) -> {spelled(w.result)}")


def _dynamic_update_slice(w: Writer) -> str:
    names, types = _starts(w, 2, w.types[0].rank)
    text = f"stablehlo.dynamic_update_slice {', '.join([*w.operands[:2], *names])}"
    given = [*map(spelled, w.types[:2]), *types]
    return w.emit(text, f"({', '.join(given)}) -> {spelled(w.result)}")


def _sum(w: Writer) -> str:
    source = w.types[0]
    axes = sorted({axis % source.rank for axis in w.attributes["axes"]}) or list(range(source.rank))
    kept = tuple(extent for axis, extent in enumerate(source.extents) if axis not in axes)
    value = w.reduce(w.operands[0], source, axes, "Sum", source.with_shape(kept))
    types = f"({spelled(source.with_shape(kept))}) -> {spelled(w.result)}"
    return w.emit(f"stablehlo.reshape {value}", types)


def _reduce(w: Writer) -> str:
    a, source = w.attributes, w.types[0]
    axes = sorted(axis % source.rank for axis in a["axes"])
    wide = source.with_dtype(a["accum_dtype"])
    value = w.convert(w.operands[0], source, wide)
    kept = wide.with_shape(tuple(extent for axis, extent in enumerate(source.extents) if axis not in axes))
    reduced = w.convert(w.reduce(value, wide, axes, a["kind"], kept), kept, kept.with_dtype(w.result.dtype))
    types = f"({spelled(kept.with_dtype(w.result.dtype))}) -> {spelled(w.result)}"
    return w.emit(f"stablehlo.reshape {reduced}", types)


def _dot_general(w: Writer) -> str:
    a = w.attributes
    wide = [type_.with_dtype(a["accum_dtype"]) for type_ in w.types]
    left, right = (w.convert(*each) for each in zip(w.operands, w.types, wide, strict=True))
    batch, inner = (
        [
            [axis % type_.rank for axis in a[f"{which}_{side}"]]
            for side, type_ in zip(("lhs", "rhs"), w.types, strict=True)
        ]
        for which in ("batch", "contract")
    )
    text = f"stablehlo.dot_general {left}, {right}"
    if batch[0]:
        text += f", batching_dims = {batch[0]} x {batch[1]}"
    result = w.result.with_dtype(a["accum_dtype"])
    value = w.emit(
        f"{text}, contracting_dims = {inner[0]} x {inner[1]}",
        f"({', '.join(map(spelled, wide))}) -> {spelled(result)}",
    )
    return w.convert(value, result, w.result)


def _take(w: Writer) -> str:
    data, indices = w.types
    offsets = list(range(indices.rank, indices.rank + data.rank - 1))
    numbers = f"offset_dims = {offsets}, collapsed_slice_dims = [0], start_index_map = [0]"
    sizes = array((1, *data.extents[1:]))
    return w.emit(
        f'"stablehlo.gather"({", ".join(w.operands)}) {{dimension_numbers = #stablehlo.gather<{numbers}, '
        f"index_vector_dim = {indices.rank}>, slice_sizes = {sizes}, indices_are_sorted = false}}",
        f"({spelled(data)}, {spelled(indices)}) -> {spelled(w.result)}",
    )


def _scatter_add(w: Writer) -> str:
    a, scalar = w.attributes, w.types[0].with_shape(())
    numbers = (
        f"update_window_dims = {list(a['update_window_dims'])}, "
        f"inserted_window_dims = {list(a['inserted_window_dims'])}, "
        f"scatter_dims_to_operand_dims = {list(a['scatter_dims_to_operand_dims'])}, "
        f"index_vector_dim = {a['index_vector_dim']}"
    )
    one = spelled(scalar)
    return w.emit(
        f'"stablehlo.scatter"({", ".join(w.operands)}) ({{\n^bb0(%l: {one}, %r: {one}):\n'
        f"%s = stablehlo.add %l, %r : {one}\nstablehlo.return %s : {one}\n}}) "
        f"{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}",
        f"({', '.join(map(spelled, w.types))}) -> {spelled(w.result)}",
    )


#: How each operation is written, where StableHLO has the means.
WRITERS: dict[str, Callable[[Writer], str]] = {
    **{
        opcode: _unary(name)
        for opcode, name in {
            "Neg": "negate",
            "Abs": "abs",
            "Exp": "exponential",
            "Log": "log",
            "Tanh": "tanh",
            "Rsqrt": "rsqrt",
            "Not": "not",
        }.items()
    },
    **{
        opcode: _binary(name)
        for opcode, name in {
            "Add": "add",
            "Sub": "subtract",
            "Mul": "multiply",
            "Div": "divide",
            "Maximum": "maximum",
            "Minimum": "minimum",
            "And": "and",
            "Or": "or",
            "Xor": "xor",
        }.items()
    },
    "Reciprocal": _reciprocal,
    "Relu": _relu,
    "Compare": _compare,
    "Select": _select,
    "Clamp": _clamp,
    "Cast": _cast,
    "StopGradient": lambda w: w.operands[0],
    "Sum": _sum,
    "Reduce": _reduce,
    "DotGeneral": _dot_general,
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze"), _moved(_reshape)),
    "Transpose": _moved(_transpose),
    "BroadcastTo": _broadcast_to,
    "Slice": _slice,
    "Concat": _moved(_concat),
    "Pad": _pad,
    "Tile": _tile,
    "Iota": _iota,
    "DynamicSlice": _dynamic_slice,
    "DynamicUpdateSlice": _dynamic_update_slice,
    "Take": _take,
    "ScatterAdd": _scatter_add,
}

#: What arrays of the other dtypes go in and out as.
_STORED = {4: DType.SI8, 8: DType.UI8, 16: DType.UI16}


def stored(type_: TensorType) -> TensorType:
    """Return the type under which values of ``type_`` enter and leave a program."""
    dtype = type_.dtype
    if dtype.bits == 4:
        return type_.with_dtype(DType.UI8 if dtype is DType.UI4 else DType.SI8)
    if dtype.is_float and dtype.bits < 32:
        return type_.with_dtype(_STORED[dtype.bits])
    return type_


def program(
    opcode: str, types: tuple[TensorType, ...], attributes: Mapping[str, Any], result: TensorType
) -> str:
    """Return the module whose function main applies an operation."""
    names = [f"%a{index}" for index in range(len(types))]
    writer = Writer([], types, attributes, result)
    for name, type_ in zip(names, types, strict=True):
        writer.operands.append(_restored(writer, name, stored(type_), type_))
    value = _restored(writer, WRITERS[opcode](writer), result, stored(result))
    parameters = ", ".join(f"{n}: {spelled(stored(t))}" for n, t in zip(names, types, strict=True))
    returned = spelled(stored(result))
    body = "\n".join([*writer.lines, f"return {value} : {returned}"])
    return f"func.func @main({parameters}) -> {returned} {{\n{body}\n}}"


def _restored(w: Writer, value: str, source: TensorType, target: TensorType) -> str:
    if source == target:
        return value
    if 4 in (source.dtype.bits, target.dtype.bits):
        return w.convert(value, source, target)
    return w.emit(f"stablehlo.bitcast_convert {value}", f"({spelled(source)}) -> {spelled(target)}")
