"""Records of elementwise operations, and the rules and examples that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mind_mlir.ops import numbers
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    NO_FLOATS,
    NO_NUMBERS,
    Alias,
    Domain,
    Example,
    OpDef,
    OperandDef,
    Rounding,
    mnemonic_of,
)
from mind_mlir.ops.shapes import broadcast, require_equal_shapes

if TYPE_CHECKING:
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.opdef import DTypeSet
    from mind_mlir.ops.rules import LinalgRule, StablehloRule
    from mind_mlir.ops.vjp import VjpContext

UNARY_EXAMPLES = (
    Example(("T[7, 3]",)),
    Example(("T[2, 3, 37]",), note="the last extent is no multiple of a vector"),
    Example(("T[1]",)),
    Example(("T[]",)),
)

#: What records say of two operands.
ON_BROADCAST = (
    "on the right-aligned broadcast of the two shapes (E3001 where they do not fit). Both operands have one "
    "dtype (E2004), which is the result's."
)
_NO_CHANGE = (
    "Compiled, it is the same at every place, shape and optimisation level, but may differ between "
    "processors with and without fused multiply-add, and where {} let{} MLIR compute it."
)
#: What records say of compiled functions of one operand, and of several.
SAME_EVERYWHERE = _NO_CHANGE.format("a constant operand", "s")
SAME_FOR_ALL = _NO_CHANGE.format("constant operands", "")

#: What records say of functions of complex numbers.
COMPLEX_ACCURACY = (
    "The error is within four units in the last place of the magnitude; infinities and NaN give what ISO C's "
    "annex G says."
)

#: Functions of the `math` dialect that linalg has an operation for.
_NAMED = frozenset({"exp", "log", "tanh", "erf", "rsqrt", "sqrt", "floor", "ceil", "round"})

BROADCAST_EXAMPLES = (
    Example(("T[7, 3]", "T[7, 3]")),
    Example(("T[2, 3, 37]", "T[2, 3, 37]"), note="the last extent is no multiple of a vector"),
    Example(("T[5, 37]", "T[37]"), note="a row is repeated"),
    Example(("T[5, 37]", "T[5, 1]"), note="a column is repeated"),
    Example(("T[2, 1, 5]", "T[3, 1]"), note="both operands stretch"),
    Example(("T[]", "T[13]"), note="a scalar stretches to any shape"),
    Example(("T[1, 1]", "T[1]"), note="extents of 1 on both sides"),
    Example(("T[]", "T[]")),
)


def elementwise(
    opcode: str,
    operands: tuple[OperandDef, ...],
    *,
    function: Callable[..., Any] | None = None,
    computed: Callable[..., Any] = numbers.apply,
    slope: Callable[[VjpContext], Value] | None = None,
    lower: str | tuple[str, str] | LinalgRule,
    stablehlo: str | StablehloRule,
    **facts: Any,
) -> OpDef:
    """Return the record of an operation that computes each element from one of each operand.

    Args:
        opcode: Its opcode.
        operands: One, or two whose shapes are broadcast.
        function: What it computes, where there is no rule `evaluate`.
        computed: How the numpy rule applies that: in which dtype, and rounded when.
        slope: Appends what the cotangent is multiplied with, where there is no rule `derivative`.
        lower: The linalg rule; for `lower_function` and `lower_binary`, the names that these take.
        stablehlo: The StableHLO rule; of what is one operation of StableHLO for all dtypes, its name.
        facts: Other fields of the record, in the place of those that nearly all of them have alike; `spec` is
            the section of StableHLO unless it is given.
    """
    is_unary = len(operands) == 1
    if function is not None:
        facts["evaluate"] = lambda context: computed(function, *context.operands)
    if slope is not None:
        facts["derivative"] = lambda context: (context.emit("Mul", context.cotangent, slope(context)),)
    if isinstance(lower, str):
        facts["scalar_op"] = f"math.{lower}"
        facts["lower"] = lambda context: lower_function(context, lower)
    elif isinstance(lower, tuple):
        facts["lower"] = lambda context: lower_binary(context, *lower)
    else:
        facts["lower"] = lower
    if isinstance(stablehlo, str):
        facts["stablehlo_name"] = f"stablehlo.{stablehlo}"
        facts["stablehlo"] = (
            (lambda context: context.unary(stablehlo, *context.operands))
            if is_unary
            else (lambda context: context.binary(stablehlo, *context.operands))
        )
    else:
        facts["stablehlo"] = stablehlo
    shared: dict[str, Any] = {
        "spec": f"StableHLO specification, {facts.get('stablehlo_name', '').removeprefix('stablehlo.')}",
        "type_rule": same_type if is_unary else broadcast_type,
        "extension": True,
        "aliases": (Alias("core-functions", f"tensor.{mnemonic_of(opcode)}"),),
        "never": (NO_NUMBERS,),
        "examples": UNARY_EXAMPLES if is_unary else BROADCAST_EXAMPLES,
    }
    return OpDef(opcode=opcode, operands=operands, **{**shared, **facts})


def float_function(
    opcode: str,
    function: Callable[..., Any],
    *,
    dtypes: DTypeSet = ALL_FLOATS,
    domain: Domain = Domain.ANY,
    computed: Callable[..., Any] = numbers.in_f64,
    **facts: Any,
) -> OpDef:
    """Return the record of a function of one float that numpy has and that is not correctly rounded.

    Args:
        opcode: Its opcode.
        function: numpy's.
        dtypes: Those of its operand.
        domain: The values of its operand.
        computed: As `elementwise` takes it.
        facts: What else `elementwise` takes; also in the place of what is said here.
    """
    shared: dict[str, Any] = {"rounding": Rounding.APPROXIMATE, "never": (NO_NUMBERS, NO_FLOATS)}
    operands = (OperandDef("input", dtypes, domain=domain),)
    return elementwise(opcode, operands, function=function, computed=computed, **{**shared, **facts})


def within(units: str) -> str:
    """Return what records say of the accuracy of functions of one operand."""
    return (
        f"The result is within {units} in the last place of the exact value, not correctly rounded. "
        + SAME_EVERYWHERE
    )


def broadcast_type(context: TypeContext) -> TensorType:
    """Type rule: the result has the broadcast of the two operands' shapes."""
    left, right = context.operands
    return left.with_shape(broadcast(context, left.shape, right.shape))


def same_type(context: TypeContext) -> TensorType:
    """Type rule: the result has the type of the first operand."""
    return context.operands[0]


def equal_type(context: TypeContext) -> TensorType:
    """Type rule: all operands have one shape, and the result has the type of the first."""
    require_equal_shapes(context)
    return context.operands[0]


def lower_named(context: LoweringContext, name: str) -> Any:
    """Append ``linalg.<name>`` of the operands, whose shapes are the result's."""
    result = context.result_type
    return context.named(name, context.operands, context.empty(result), result)


def lower_binary(context: LoweringContext, named: str, method: str) -> Any:
    """Append ``linalg.<named>``, or a `linalg.generic` where shapes broadcast or it is of other numbers.

    Args:
        context: The operation.
        named: The linalg operation on signed integers and on floats that need not be converted.
        method: What `Arithmetic` calls the same on elements.
    """
    result = context.result_type
    arithmetic = context.arithmetic(result.dtype)
    equal = all(type_.shape == result.shape for type_ in context.operand_types)
    if equal and arithmetic.is_native and not arithmetic.is_unsigned:
        return lower_named(context, named)
    return context.elementwise(getattr(arithmetic, method))


def lower_function(context: LoweringContext, name: str) -> Any:
    """Append ``linalg.<name>`` where linalg has that, and a `linalg.generic` else and for what is not native.

    Args:
        context: An operation of one operand, or of several that linalg has no operation for.
        name: What the `math` dialect calls it.
    """
    arithmetic = context.arithmetic(context.result_type.dtype)
    if arithmetic.is_native and name in _NAMED:
        return lower_named(context, name)
    if len(context.operands) > 1:
        return context.elementwise(lambda *xs: arithmetic.apply(getattr(context.mlir.math, name), *xs))
    return context.elementwise(lambda x: arithmetic.function(name, x))


def full_like(context: VjpContext, number: float, value: Value) -> Value:
    """Append a tensor of the result's dtype and of ``value``'s shape, each element of it ``number``."""
    scalar = context.scalar(number)
    return context.emit("BroadcastTo", scalar, result_shape=value.shape) if value.shape else scalar


def zeros_like(context: VjpContext, value: Value) -> Value:
    """Append zeros of the result's dtype and of ``value``'s shape."""
    return full_like(context, 0, value)


def stretched(context: VjpContext, value: Value) -> Value:
    """Append ``value`` in the shape of the result, which it broadcasts to."""
    shape = context.result.shape
    return value if value.shape == shape else context.emit("BroadcastTo", value, result_shape=shape)
