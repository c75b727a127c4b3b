"""Random numbers: uniform and normal, as functions of a seed (ptir-v0.4.md, "Randomness"; docs/random.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops import stablehlo_random as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.normal_quantile import QuantileEmitter, tail_quantile
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    ALL_INTEGERS,
    BOOL,
    COMPLEX,
    NO_FLOATS,
    NO_NUMBERS,
    AttributeDef,
    DTypeSet,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.philox import BlockEmitter, words
from mind_mlir.ops.reassociation import reshape

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext

_NO_PLANE = (
    COMPLEX,
    "no distribution over the plane is meant: draw the parts, and add them up as `Cast(x) + Cast(y) * i`",
)
NORMAL: DTypeSet = ALL_FLOATS
UNIFORM: DTypeSet = BOOL + ALL_INTEGERS + ALL_FLOATS


def _type_rule(dtypes: DTypeSet) -> Callable[[TypeContext], TensorType]:
    def rule(context: TypeContext) -> TensorType:
        dtype: DType = context.attributes["dtype"]
        shape: tuple[int, ...] = context.attributes["shape"]
        context.allows_dtype("dtype", dtypes, notes=(_NO_PLANE[1],) if dtype.is_complex else ())
        (seed,) = context.operands
        if seed.rank:
            context.report(
                "E3002",
                f"{context.opcode} needs one number as its seed, found {seed}",
                operand=0,
                help="give a seed of rank 0",
                expected=0,
                found=seed.rank,
            )
        for index, extent in enumerate(shape):
            if extent < 0:
                context.report(
                    "E3006",
                    f"{context.opcode} has extent {extent} in dimension {index}",
                    attribute="shape",
                    help="extents must not be negative",
                    shape=shape,
                    index=index,
                    value=extent,
                )
        context.stop_if_reported()
        return TensorType(dtype, shape)

    return rule


# numpy


def _random_bits(context: EvalContext) -> Array:
    """Return the random bits of each element, as ui64: 64 of them for dtypes of 64 bits, else 32."""
    (seed,) = context.operands
    type_ = context.result_type
    count, stream = type_.element_count, context.attributes["stream"]
    if type_.dtype.bits < 64:
        return words(int(seed), stream, count).reshape(type_.extents)
    pairs = words(int(seed), stream, 2 * count).reshape(-1, 2)
    return np.asarray(pairs[:, 0] | pairs[:, 1] << np.uint64(32)).reshape(type_.extents)


def _evaluate_uniform(context: EvalContext) -> Array:
    bits, dtype = _random_bits(context), context.result_type.dtype
    taken = dtype.format.precision if dtype.is_float else dtype.bits
    top = bits >> np.uint64(max(dtype.bits, 32) - taken)
    if dtype.is_float:
        return np.asarray(top.astype(np.float64) * 2.0**-taken).astype(dtype.numpy)
    if dtype.kind is DTypeKind.SIGNED:
        unused = np.int64(64 - dtype.bits)
        return np.asarray((top.view(np.int64) << unused) >> unused).astype(dtype.numpy)
    return np.asarray(top.astype(dtype.numpy))


def _evaluate_normal(context: EvalContext) -> Array:
    bits, dtype = _random_bits(context), context.result_type.dtype
    width = 64 if dtype is DType.F64 else 32
    magnitude = (bits & np.uint64(2 ** (width - 1) - 1)).astype(np.float64)
    number = tail_quantile((magnitude + 0.5) * 2.0**-width)
    number = np.where(bits >> np.uint64(width - 1), -number, number)
    return number if dtype is DType.F64 else number.astype(np.float32).astype(dtype.numpy)


# linalg


def _lower(context: LoweringContext, number: Callable[[LoweringContext, Any], Any]) -> Any:
    """Append the loop over all elements as they lie in memory; ``number`` makes one of its random bits."""
    mlir, result = context.mlir, context.result_type
    if result.element_count == 0:
        return context.empty(result)
    flat = result.with_shape((result.element_count,) if result.rank else ())
    i64 = mlir.ir.IntegerType.get_signless(64)
    stream, is_wide = context.attributes["stream"], result.dtype.bits == 64

    def body(seed: Any, _: Any) -> Any:
        emitter = BlockEmitter(mlir)
        position = mlir.arith.index_cast(i64, context.iteration(0)) if flat.rank else emitter.constant(0)
        of_element = _two_words if is_wide else _one_word
        return number(context, of_element(emitter, position, stream, seed))

    identity = mlir.ir.AffineMap.get_identity(flat.rank)
    same = mlir.ir.AffineMap.get(flat.rank, 0, [])
    (made,) = context.generic(
        context.operands, [same, identity], [context.empty(flat)], ["parallel"] * flat.rank, body
    )
    return reshape(context, made, flat, result.extents)


def _one_word(emitter: BlockEmitter, position: Any, stream: int, seed: Any) -> Any:
    """Emit word ``position`` of a stream, an i32."""
    arith, ir = emitter.mlir.arith, emitter.mlir.ir
    first, second, third, fourth = emitter.block(arith.shrui(position, emitter.constant(2)), stream, seed)
    bit, word = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(32)
    is_odd = arith.trunci(bit, position)
    is_upper = arith.trunci(bit, arith.shrui(position, emitter.constant(1)))
    chosen = arith.select(is_upper, arith.select(is_odd, fourth, third), arith.select(is_odd, second, first))
    return arith.trunci(word, chosen)


def _two_words(emitter: BlockEmitter, position: Any, stream: int, seed: Any) -> Any:
    """Emit words ``2 * position`` and the next one of a stream, as an i64."""
    arith, ir = emitter.mlir.arith, emitter.mlir.ir
    first, second, third, fourth = emitter.block(arith.shrui(position, emitter.constant(1)), stream, seed)
    is_odd = arith.trunci(ir.IntegerType.get_signless(1), position)
    low, high = arith.select(is_odd, third, first), arith.select(is_odd, fourth, second)
    return arith.ori(emitter.lower(low), arith.shli(high, emitter.constant(32)))


def _uniform_number(context: LoweringContext, bits: Any) -> Any:
    arith, dtype = context.mlir.arith, context.result_type.dtype
    width = max(dtype.bits, 32)
    taken = dtype.format.precision if dtype.is_float else dtype.bits
    type_, arithmetic = bits.type, context.arithmetic(dtype)
    shift = arith.shrsi if dtype.kind is DTypeKind.SIGNED else arith.shrui
    top = bits if taken == width else shift(bits, arith.constant(type_, width - taken))
    if not dtype.is_float:
        return top if arithmetic.element == type_ else arith.trunci(arithmetic.element, top)
    computed = context.element(DType.F64 if dtype is DType.F64 else DType.F32)
    scale = arith.constant(computed, 2.0**-taken)
    return arithmetic.rounded(arith.mulf(arith.sitofp(computed, top), scale))


def _normal_number(context: LoweringContext, bits: Any) -> Any:
    arith, dtype = context.mlir.arith, context.result_type.dtype
    width, type_, f64 = max(dtype.bits, 32), bits.type, context.element(DType.F64)
    magnitude = arith.andi(bits, arith.constant(type_, 2 ** (width - 1) - 1))
    half, unit = (arith.constant(f64, value) for value in (0.5, 2.0**-width))
    share = arith.mulf(arith.addf(arith.sitofp(f64, magnitude), half), unit)
    number = QuantileEmitter(context.mlir, far=dtype is DType.F64).quantile(share)
    is_negative = arith.cmpi(arith.CmpIPredicate.slt, bits, arith.constant(type_, 0))
    number = arith.select(is_negative, arith.negf(number), number)
    if dtype is DType.F64:
        return number
    return context.arithmetic(dtype).rounded(arith.truncf(context.element(DType.F32), number))


_CONSTANT = NotDifferentiable("random numbers do not depend on differentiable values", constant=True)


def _read(fields: Mapping[str, Any], operands: Sequence[TensorType]) -> Mapping[str, AttributeValue]:
    """Take shape and dtype; which stream it is, the conversion of the program says."""
    return {"shape": fields["shape"], "dtype": fields["dtype"], "stream": 0}


def _write(attributes: Mapping[str, AttributeValue], operands: Sequence[TensorType]) -> Mapping[str, Any]:
    return {"shape": attributes["shape"], "dtype": attributes["dtype"]}


_FIELDS = (Field("shape", FieldKind.SHAPE), Field("dtype", FieldKind.DTYPE))
_SPEC = "ptir-v0.4.md, Randomness, top-k, segments, quantization"
_SEED = (OperandDef("seed", (DType.UI64,)),)
_ATTRIBUTES = (
    AttributeDef("shape", AttrKind.I64_LIST, "the shape of the result"),
    AttributeDef("dtype", AttrKind.DTYPE, "the dtype of the result"),
    AttributeDef("stream", AttrKind.I64, "which random operation of the program this is"),
)
_CHOICES = (
    "The generator is Philox 4x32-10. Its key is the seed; block `b` of stream `s` has the counter "
    "`b + 2^64 s`, and word `j` of the stream is word `j % 4` of block `j // 4`. So numbers depend on "
    "the seed, the stream and the place in the tensor alone: they are the same on every machine "
    "and for every number of threads.",
    "Element `i`, in row-major order, is made of word `i`; one of a dtype of 64 bits is made of words `2 i`, "
    "its lower half, and `2 i + 1`.",
    "The operation is a function of its seed and stream: in a loop it gives the same numbers in each "
    "iteration, unless the seed changes.",
    "In a PTIR program, where it has no operands, its stream is its number among the random operations of "
    "the function, and the seed is given when the program is compiled or called.",
)


def _examples(dtypes: DTypeSet) -> tuple[Example, ...]:
    attributes: list[dict[str, Any]] = [
        *({"shape": (37,), "dtype": dtype, "stream": 0} for dtype in dtypes),
        *({"shape": (3, 5, 7), "dtype": dtype, "stream": 2**40 + 3} for dtype in (DType.F32, DType.F64)),
        {"shape": (), "dtype": DType.F32, "stream": 1},
        {"shape": (1, 1), "dtype": DType.F64, "stream": 1},
        {"shape": (4, 0), "dtype": DType.F32, "stream": -1},
    ]
    return tuple(Example(("ui64[]",), each) for each in attributes)


#: What the records have alike.
_random = partial(
    OpDef,
    spec=_SPEC,
    operands=_SEED,
    attributes=_ATTRIBUTES,
    derivative=_CONSTANT,
    extension=True,
    refused=(_NO_PLANE,),
)

OPERATIONS = (
    _random(
        opcode="RngUniform",
        depends_on_width=True,
        summary="Draws uniformly distributed numbers.",
        description="Floats are multiples of `2^-p` in `[0, 1)`, all equally likely, where `p` is the number "
        "of bits of the dtype's significand: 24 for f32, 53 for f64. Integers are all equally likely, over "
        "the whole range of the dtype; so are truth values. Complex dtypes are refused (E2005), and negative "
        "extents (E3006).",
        type_rule=_type_rule(UNIFORM),
        evaluate=_evaluate_uniform,
        lower=lambda context: _lower(context, _uniform_number),
        stablehlo=hlo.uniform,
        choices=(
            *_CHOICES,
            "The number is the upper bits of its word (or two): `p` of them for floats, times `2^-p`, which "
            "is exact; as many as the dtype has for integers, in two's complement; one for truth values.",
        ),
        contract=Contract("RngUniform", fields=_FIELDS, read=_read, write=_write, seeded=True),
        examples=_examples(UNIFORM),
    ),
    _random(
        opcode="RngNormal",
        depends_on_width=True,
        summary="Draws numbers of the standard normal distribution.",
        description="The numbers have mean 0 and variance 1. The result is a float: other dtypes are refused "
        "(E2005), and negative extents (E3006).",
        type_rule=_type_rule(NORMAL),
        evaluate=_evaluate_normal,
        lower=lambda context: _lower(context, _normal_number),
        stablehlo=hlo.normal,
        choices=(
            *_CHOICES,
            "The upper bit of a word is the sign, the other 31 (f64: 63) are `m`; the magnitude is the "
            "number that a normal variable exceeds with probability `(m + 0.5) * 2^-32` (f64: `2^-64`), "
            "computed in f64 by Wichura's algorithm AS241 and rounded to f32; narrower floats round that "
            "once more. No number is beyond 6.34 (f64: 9.16).",
        ),
        never=(NO_NUMBERS, NO_FLOATS),
        contract=Contract("RngNormal", fields=_FIELDS, read=_read, write=_write, seeded=True),
        examples=_examples(NORMAL),
    ),
)
