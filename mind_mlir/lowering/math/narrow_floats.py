"""Conversions of floats narrower than f32 as arithmetic on integers, the same for scalars and for vectors.

LLVM makes calls of a run-time library of them, one for each lane, or uses instructions that flush subnormal
numbers. What is left to it here are the conversions between f16 and f32 where the target has instructions
for exactly these. All round to nearest even, once.

A format is a sign, exponent bits and ``mantissa`` bits. Its numbers are those of f32 whose exponent is offset
by the difference of the two biases, shifted by the difference of the two mantissas; but for subnormal ones,
which the sum with a suitable power of two brings into place, and rounds. f8E4M3FN has no infinities: what is
out of its range becomes NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.dtypes import DType
from mind_mlir.lowering.math import bits as emit
from mind_mlir.lowering.math.short_floats import SHORT, ShortFloats
from mind_mlir.mlir.bindings import arith, func, ir
from mind_mlir.mlir.passes import find_all, run_passes

if TYPE_CHECKING:
    from collections.abc import Container

    from mind_mlir.ir.dtypes import FloatFormat
    from mind_mlir.mlir.bindings import Module, Operation, Type, Value
    from mind_mlir.target import Target

_MANTISSA, _BIAS = DType.F32.format.mantissa, DType.F32.format.bias
_SIGN, _INFINITY = 0x8000_0000, 0x7F80_0000
_OF_INTEGERS = ("arith.sitofp", "arith.uitofp")
#: Integers of so many bits are numbers of f64.
_LARGEST_EXACT = 32


#: The layouts of floats narrower than f32, by what MLIR calls these.
_FORMATS = {dtype.mlir: dtype.format for dtype in DType if dtype.is_narrow}
#: The pass that has arithmetic on narrow floats done in f32, which rules of linalg do by themselves.
_IN_F32 = f"arith-emulate-unsupported-floats{{source-types={','.join(_FORMATS)} target-type=f32}}"


def expand_narrow_floats(
    module: Module, names: Container[str], target: Target, *, verify: bool = False
) -> None:
    """Make narrow floats the integers of their bits, and conversions of them arithmetic, in place.

    Code generators that know a narrow type only in part convert it even where it is only moved: they are to
    see it where they are asked to convert it, and nowhere else.

    Args:
        module: A module on its way to the LLVM dialect; conversions are of scalars or vectors of any shape.
        names: What its operations are called.
        target: Says whether f16 and f32 convert into each other in one instruction.
        verify: Run MLIR's verifier after the pass that is run.
    """
    if not _may_have_narrow_floats(module, names):
        return
    _widen_integers(module)
    run_passes(module, _IN_F32, verify=verify)
    conversions: list[tuple[Operation, str, str]] = []
    literals: set[Operation] = set()

    def visit(op: Operation) -> object:
        if op.name in ("arith.extf", "arith.truncf"):
            source, result = (_name(value) for value in (op.operands[0], op.results[0]))
            if source in _FORMATS or result in _FORMATS:
                conversions.append((op, source, result))
        elif op.name in ("arith.constant", "memref.get_global") and _name(op.results[0]) in _FORMATS:
            literals.add(op)
        return ir.WalkResult.ADVANCE

    def retype(op: Operation) -> object:
        if op not in literals:
            _retype(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    module.operation.walk(retype)
    for op in literals:
        with ir.InsertionPoint.after(op), op.location:
            _as_integers(op)
    short = ShortFloats(target)
    for conversion in conversions:
        _expand(*conversion, short, native=target.half)


def _expand(op: Operation, source: str, result: str, short: ShortFloats, *, native: bool) -> None:
    """Replace a conversion between formats; narrow ones are bits by now."""
    number = op.operands[0]
    with ir.InsertionPoint(op), op.location:
        if (source, result) == (SHORT, "f32"):
            number = short.widened(number)
        elif (source, result) == ("f32", SHORT):
            number = short.narrowed(number, op.results[0].type)
        else:
            if source in _FORMATS:
                number = short.widened(number) if source == SHORT else _widened(number, source, native=native)
            number = _converted(number, source, result, op.results[0].type, short, native=native)
    op.results[0].replace_all_uses_with(number)
    op.erase()


def _may_have_narrow_floats(module: Module, names: Container[str]) -> bool:
    """Return whether operations of ``module`` may convert narrow floats, or functions are given some."""
    if any(name in names for name in ("arith.extf", "arith.truncf", *_OF_INTEGERS)):
        return True
    functions = (op for op in module.body.operations if isinstance(op, func.FuncOp))
    types = (type_ for op in functions for type_ in op.type.inputs)
    return any(isinstance(each, ir.MemRefType) and str(each.element_type) in _FORMATS for each in types)


def _widen_integers(module: Module) -> None:
    """Let integers become narrow floats by way of floats that hold them, so that they are rounded once."""
    for op in find_all(module, arith.SIToFPOp, arith.UIToFPOp):
        type_ = op.results[0].type
        if _name(op.results[0]) not in _FORMATS:
            continue
        with ir.InsertionPoint(op), op.location:
            integer, width = op.operands[0], emit.element_of(op.operands[0].type).width
            if width > _LARGEST_EXACT:
                integer = _short(integer, signed=op.name == _OF_INTEGERS[0])
            exact = emit.like(type_, ir.F32Type.get() if width <= _MANTISSA else ir.F64Type.get())
            wide = ir.Operation.create(op.name, [exact], [integer]).result
            op.results[0].replace_all_uses_with(arith.TruncFOp(type_, wide).result)
        op.erase()


def _short(integer: Value, *, signed: bool) -> Value:
    """Emit a 64-bit integer that f64 holds: where bits are left out, the last one that is kept says so."""
    type_ = integer.type

    def number(value: int) -> Value:
        return emit.splat(type_, ir.IntegerAttr.get(emit.element_of(type_), value))

    rest = arith.AndIOp(integer, number(0x7FF)).result
    is_rest = arith.CmpIOp(arith.CmpIPredicate.ne, rest, number(0)).result
    mark = arith.SelectOp(is_rest, number(0x800), number(0)).result
    marked = arith.OrIOp(arith.SubIOp(integer, rest).result, mark).result
    # From -2**53 up to 2**53, or from 0: one comparison of unsigned numbers.
    first = arith.AddIOp(integer, number(2**53)).result if signed else integer
    last = number(2**54 if signed else 2**53)
    is_exact = arith.CmpIOp(arith.CmpIPredicate.ule, first, last).result
    return arith.SelectOp(is_exact, integer, marked).result


def _name(value: Value) -> str:
    """Return what the type of the elements of ``value`` is called."""
    type_ = value.type
    return str(type_.element_type if isinstance(type_, ir.ShapedType) else type_)


def _as_integers(op: Operation) -> None:
    """Have the users of a constant, or of a global buffer, read integers."""
    value = op.results[0]
    type_ = _without_narrow(value.type)
    cast = "arith.bitcast" if op.name == "arith.constant" else "builtin.unrealized_conversion_cast"
    bits = ir.Operation.create(cast, [type_], [value])
    value.replace_all_uses_except(bits.results[0], bits)


def _retype(op: Operation) -> None:
    """Have results, arguments of blocks and signature of ``op`` be integers in the place of narrow floats."""
    arguments = (argument for region in op.regions for block in region.blocks for argument in block.arguments)
    for value in (*op.results, *arguments):
        if _name(value) in _FORMATS:
            value.set_type(_without_narrow(value.type))
    if op.name == "func.func":
        type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        inputs, results = (
            [_without_narrow(each) for each in types] for types in (type_.inputs, type_.results)
        )
        op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _without_narrow(type_: Any) -> Type:
    """Return ``type_`` with the integers of their bits in the place of narrow floats."""
    format_ = _FORMATS.get(str(type_.element_type if isinstance(type_, ir.ShapedType) else type_))
    if format_ is None:
        return type_
    bits = emit.integer(format_.bits)
    if isinstance(type_, ir.MemRefType):
        return ir.MemRefType.get(type_.shape, bits, layout=type_.layout, memory_space=type_.memory_space)
    return emit.like(type_, bits)


def _converted(
    number: Value, source: str, result: str, type_: Type, short: ShortFloats, *, native: bool
) -> Value:
    """Emit a float as one called ``result``: the bits, of ``type_``, of a narrow one.

    ``number`` is called ``source``, or the f32 that a narrow one is.
    """
    if result == "f32":
        return number
    if result == "f64":
        return arith.ExtFOp(type_, number).result
    if source == "f64":
        number = _odd(number)
    if result == SHORT:
        return short.narrowed(number, type_)
    if result == "f16" and native:
        return emit.bitcast(type_, arith.TruncFOp(emit.like(type_, ir.F16Type.get()), number).result)
    return _narrowed(number, _FORMATS[result], type_)


def _widened(bits: Value, name: str, *, native: bool) -> Value:
    """Emit the f32 that the bits of a narrow float are; a NaN keeps its payload."""
    format_ = _FORMATS[name]
    single, word = (emit.like(bits.type, each) for each in (ir.F32Type.get(), emit.integer(32)))
    if name == "f16" and native:
        return arith.ExtFOp(single, emit.bitcast(emit.like(single, ir.F16Type.get()), bits)).result
    wide, shift = arith.ExtUIOp(word, bits).result, _MANTISSA - format_.mantissa
    sign = emit.shift_left(emit.masked(wide, format_.magnitude + 1), 32 - format_.bits)
    shifted = emit.shift_left(emit.masked(wide, format_.magnitude), shift)
    offset = (_BIAS - format_.bias) << _MANTISSA
    number = emit.plus(shifted, offset)
    # Infinity and NaN have the greatest exponent; without infinities, NaN is the one greatest number.
    special = emit.joined(number, _INFINITY)
    number = emit.select("sge", shifted, format_.limit << shift, special, number)
    # A subnormal number has the exponent of the least normal one, but no leading one.
    least = emit.number_of(single, format_.smallest_normal)
    raised = emit.bitcast(single, emit.plus(shifted, offset + (1 << _MANTISSA)))
    small = emit.bitcast(word, arith.SubFOp(raised, least).result)
    number = emit.select("slt", shifted, 1 << _MANTISSA, small, number)
    return emit.bitcast(single, emit.joined(number, sign))


def _narrowed(source: Value, format_: FloatFormat, type_: Type) -> Value:
    """Emit the bits, of ``type_``, of the narrow float nearest to an f32; NaNs become quiet."""
    single, word = source.type, emit.like(source.type, emit.integer(32))
    bits = emit.bitcast(word, source)
    magnitude = emit.masked(bits, _SIGN - 1)
    offset, shift = (_BIAS - format_.bias) << _MANTISSA, _MANTISSA - format_.mantissa
    normal = emit.shift_right(emit.rounded_up(emit.plus(magnitude, -offset), shift), shift)
    limit = emit.word(word, format_.limit)
    normal = arith.MinSIOp(normal, limit).result
    # In the sum with this power of two the last place is that of subnormal numbers: it rounds to these.
    large = 2.0 ** (1 - format_.bias + shift)
    total = arith.AddFOp(emit.bitcast(single, magnitude), emit.number_of(single, large)).result
    small = arith.SubIOp(emit.bitcast(word, total), emit.bitcast(word, emit.number_of(single, large))).result
    number = emit.select("slt", magnitude, offset + (1 << _MANTISSA), small, normal)
    if format_.infinite:
        payload = emit.masked(emit.shift_right(magnitude, shift), (1 << format_.mantissa) - 1)
        quiet = emit.joined(payload, format_.limit | 1 << (format_.mantissa - 1))
        number = emit.select("sgt", magnitude, _INFINITY, quiet, number)
    sign = emit.masked(emit.shift_right(bits, 32 - format_.bits), format_.magnitude + 1)
    return arith.TruncIOp(type_, emit.joined(number, sign)).result


def _odd(source: Value) -> Value:
    """Emit an f64 as the f32 that it is or, of the two that it lies between, as the one with an odd last bit.

    That one is never halfway between two narrower numbers: rounding it rounds the f64, once.
    """
    single, word = emit.like(source.type, ir.F32Type.get()), emit.like(source.type, emit.integer(32))
    nearest = arith.TruncFOp(single, source).result
    back = arith.ExtFOp(source.type, nearest).result
    bits = emit.bitcast(word, nearest)
    # A step away from zero adds one to the bits, and one towards zero takes one off.
    grown = arith.CmpFOp(arith.CmpFPredicate.OGT, emit.magnitude_of(back), emit.magnitude_of(source)).result
    moved = arith.SelectOp(grown, emit.plus(bits, -1), emit.plus(bits, 1)).result
    inexact = arith.CmpFOp(arith.CmpFPredicate.ONE, source, back).result
    even = arith.CmpIOp(arith.CmpIPredicate.eq, emit.masked(bits, 1), emit.word(word, 0)).result
    return emit.bitcast(single, arith.SelectOp(arith.AndIOp(inexact, even).result, moved, bits).result)
