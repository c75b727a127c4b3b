"""How each operation is put to use in a generated program: one small recipe an opcode.

A recipe picks operands from the program so far and attributes that fit them, and appends the operation. It
always succeeds: what does not exist yet is made. `Builder` rejects whatever breaks a rule, so a recipe that
is wrong fails loudly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import contraction_recipes as contraction
import elementwise_recipes as elementwise
import indexing_recipes as indexing
import reduction_recipes as reduction
import shape_recipes as shaping
from growth import SMALL, Growth

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import ANY, BOOL, INTEGERS, NUMERIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.ir.value import Value


def _input(g: Growth) -> Value:
    return g.fresh(TensorType(g.dtype(), g.shape()))


def _constant(dtype: DType) -> Callable[[Growth], Value]:
    return lambda g: g.constant(TensorType(dtype))


def _constant_tensor(g: Growth) -> Value:
    shape = tuple(g.pick(SMALL.extents[:3]) for _ in range(g.number(1, 3)))
    return g.constant(TensorType(g.dtype(), shape))


_BITS = BOOL + INTEGERS

RECIPES: Mapping[str, Callable[[Growth], Value]] = {
    "Input": _input,
    "ConstI64": _constant(DType.SI64),
    "ConstF32": _constant(DType.F32),
    "ConstF64": _constant(DType.F64),
    "ConstTensor": _constant_tensor,
    "Add": elementwise.binary("Add"),
    "Sub": elementwise.binary("Sub"),
    "Mul": elementwise.binary("Mul"),
    "Maximum": elementwise.binary("Maximum"),
    "Minimum": elementwise.binary("Minimum"),
    "Neg": elementwise.unary("Neg"),
    "Relu": elementwise.unary("Relu"),
    "Exp": elementwise.exp,
    "Log": elementwise.log,
    "Reciprocal": elementwise.reciprocal,
    "Tanh": elementwise.inexact("Tanh"),
    "Erf": elementwise.inexact("Erf"),
    "Rsqrt": elementwise.root("Rsqrt"),
    "Sqrt": elementwise.root("Sqrt"),
    "Floor": elementwise.stepped("Floor"),
    "Ceil": elementwise.stepped("Ceil"),
    "RoundEven": elementwise.stepped("RoundEven"),
    "Round": elementwise.stepped("Round"),
    "Sign": elementwise.stepped("Sign", NUMERIC),
    "IsFinite": elementwise.stepped("IsFinite"),
    "Log1p": elementwise.root("Log1p"),
    "Expm1": elementwise.inexact("Expm1"),
    "Logistic": elementwise.inexact("Logistic"),
    "Sin": elementwise.inexact("Sin"),
    "Cos": elementwise.inexact("Cos"),
    "Tan": elementwise.inexact("Tan"),
    "Atan2": elementwise.atan2,
    "Power": elementwise.power,
    "Cbrt": elementwise.inexact("Cbrt"),
    "Remainder": elementwise.remainder,
    "Abs": elementwise.unary("Abs"),
    "Clamp": elementwise.clamp,
    "StopGradient": lambda g: g.emit("StopGradient", g.operand(ANY)),
    "Compare": elementwise.compare,
    "Select": elementwise.select,
    "And": elementwise.bits("And", _BITS),
    "Or": elementwise.bits("Or", _BITS),
    "Xor": elementwise.bits("Xor", _BITS),
    "Not": elementwise.bits_of_one("Not", _BITS),
    "ShiftLeft": elementwise.bits("ShiftLeft", INTEGERS),
    "ShiftRightLogical": elementwise.bits("ShiftRightLogical", INTEGERS),
    "ShiftRightArithmetic": elementwise.bits("ShiftRightArithmetic", INTEGERS),
    "PopulationCount": elementwise.bits_of_one("PopulationCount", INTEGERS),
    "CountLeadingZeros": elementwise.bits_of_one("CountLeadingZeros", INTEGERS),
    "Bitcast": elementwise.bitcast,
    "Cast": elementwise.cast,
    "Sum": reduction.reduction("Sum"),
    "Reduce": reduction.reduce,
    "ReduceProd": reduction.reduce_prod,
    "ReduceBits": reduction.reduce_bits,
    "Cumulate": reduction.cumulate,
    "ArgMax": reduction.argmax,
    "Mean": reduction.reduction("Mean"),
    "Reshape": shaping.reshape,
    "ExpandDims": shaping.expand_dims,
    "Squeeze": shaping.squeeze,
    "Transpose": shaping.transpose,
    "BroadcastTo": shaping.broadcast_to,
    "Index": indexing.index,
    "Gather": indexing.gather,
    "Take": indexing.take,
    "GatherElements": indexing.gather_elements,
    "ScatterReduce": indexing.scatter_reduce,
    "GatherWindows": indexing.gather_windows,
    "ScatterWindows": indexing.scatter_windows,
    "ArgSort": indexing.arg_sort,
    "Concat": shaping.concat,
    "Tile": shaping.tile,
    "Iota": shaping.iota,
    "Dequantize": elementwise.dequantize,
    "Slice": indexing.slice_,
    "DynamicSlice": indexing.dynamic_slice,
    "DynamicUpdateSlice": indexing.dynamic_update_slice,
    "Pad": shaping.pad,
    "ScatterAdd": indexing.scatter_add,
    "Dot": contraction.dot,
    "MatMul": contraction.matmul,
    "DotGeneral": contraction.dot_general,
    "LayerNorm": reduction.layer_norm,
    "ExtractPatches": reduction.extract_patches,
    "ReduceWindow": reduction.reduce_window,
    "SegmentReduce": reduction.segment_reduce,
    "Conv2d": contraction.conv2d,
    "Convolution": contraction.convolution,
}

CONSTANTS = frozenset({"Input", "ConstI64", "ConstF32", "ConstF64", "ConstTensor"})
ELEMENTWISE = frozenset(
    {
        *("Add", "Sub", "Mul", "Neg", "Maximum", "Minimum", "Relu", "Exp", "Log", "Reciprocal"),
        *("Tanh", "Erf", "Rsqrt", "Abs", "Clamp", "StopGradient"),
        *("Sqrt", "Floor", "Ceil", "RoundEven", "Round", "Sign", "IsFinite", "Remainder"),
        *("Log1p", "Expm1", "Logistic", "Sin", "Cos", "Tan", "Atan2", "Power", "Cbrt"),
        *("Compare", "Select", "And", "Or", "Xor", "Not", "Cast", "BroadcastTo"),
        *("ShiftLeft", "ShiftRightLogical", "ShiftRightArithmetic", "PopulationCount", "CountLeadingZeros"),
    }
)
#: Differentiable wherever the operands are in their domain.
SMOOTH = frozenset(RECIPES) - {
    *("Relu", "Compare", "Maximum", "Minimum", "Cast", "Abs", "Clamp", "StopGradient"),
    # Not of complex numbers, by which slopes are measured.
    *(
        "Erf",
        "Reduce",
        "Cumulate",
        "DotGeneral",
        "Conv2d",
        "Convolution",
        "LayerNorm",
        "ReduceWindow",
        "SegmentReduce",
        "ScatterReduce",
    ),
    *("ScatterWindows", "ReduceProd"),
    *("Dequantize", "ScatterAdd", "Rsqrt", "ExtractPatches", "Sqrt"),
    *("Floor", "Ceil", "RoundEven", "Round", "Sign", "IsFinite", "Remainder"),
    *("Log1p", "Expm1", "Logistic", "Sin", "Cos", "Tan", "Atan2", "Power", "Cbrt"),
}
