"""The opcodes, in the order of the reference, for completion; the records themselves load numpy.

Written by `mind-mlir ops --opcodes` from the operation records; do not edit.
"""

from __future__ import annotations

_NAMES = """
Input ConstI64 ConstF32 ConstF64 ConstTensor RngUniform RngNormal Add Sub Mul Neg Div Maximum
Minimum Relu Exp Log Reciprocal Tanh Erf Rsqrt Sqrt Floor Ceil RoundEven Round Sign IsFinite Log1p
Expm1 Logistic Sin Cos Tan Atan2 Power Cbrt Remainder Abs Clamp StopGradient Compare Select And Or
Xor Not ShiftLeft ShiftRightLogical ShiftRightArithmetic PopulationCount CountLeadingZeros Cast
Bitcast Sum Mean Reduce ReduceProd ReduceBits ArgMax TopK ArgSort Reshape ExpandDims Squeeze
Transpose BroadcastTo Concat Tile Iota Index Gather Take GatherElements Slice DynamicSlice
DynamicUpdateSlice Pad ScatterAdd ScatterReduce GatherWindows ScatterWindows SegmentReduce Quantize
Dequantize Requantize Dot MatMul DotGeneral LayerNorm ReduceWindow ExtractPatches Conv2d CustomCall
Cond While Call Scan
"""
OPCODES = tuple(_NAMES.split())
