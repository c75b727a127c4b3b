"""Functions whose steps, as StableHLO has them, have slopes out of range where the function has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.stablehlo.rules.use import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use
    from mind_mlir.mlir.bindings import Operation

#: From here on erfc is zero, or two, in every dtype.
_ERFC_ENDS = 28


def logistic_argument(use: Use) -> Value | None:
    """Return x where a quotient is ``1 / (1 + exp(-x))``, as jax writes the logistic function; else None.

    The exponential overflows, and then its slope times that of the quotient, zero, would be NaN.
    """
    if use.known(use.operands[0]) != 1 or not use.operands[0].type.dtype.is_float:
        return None
    total = _maker(use.operation.operands[1], "stablehlo.add")
    if total is None:
        return None
    for one, power in ((0, 1), (1, 0)):
        exponential = _maker(total.operands[power], "stablehlo.exponential")
        negation = exponential and _maker(exponential.operands[0], "stablehlo.negate")
        if negation and use.known(use.imports.value(total.operands[one], use.lift)) == 1:
            return use.imports.value(negation.operands[0], use.lift)
    return None


def _maker(value: object, name: str) -> Operation | None:
    """Return the operation that has ``value`` as its result, where it is of that name."""
    owner = getattr(value, "owner", None)
    return owner if getattr(owner, "name", None) == name else None


def _erfc(use: Use) -> Value:
    """Emit CHLO's decomposition of erfc, with the operand clamped to where its square is in range."""
    (x,) = use.operands
    within = use.emit("Clamp", x, use.like(-_ERFC_ENDS, x), use.like(_ERFC_ENDS, x))
    (found,) = use.imports.decomposed(use.operation, (within,))
    return found


def _odd(slope: float) -> Rule:
    """Return a rule: what CHLO's passes make by way of the sign, which has no slope; at 0 it is ``slope``."""

    def emit(use: Use) -> Value:
        (x,) = use.operands
        is_zero = use.emit("Compare", x, use.like(0, x), op="Equal")
        (elsewhere,) = use.imports.decomposed(use.operation, (x,))
        linear = x if slope == 1 else use.emit("Mul", x, use.like(slope, x))
        return use.emit("Select", is_zero, linear, elsewhere)

    return Rule(emit)


RULES: Mapping[str, Rule] = {
    "chlo.asinh": _odd(1),
    "chlo.bessel_i1e": _odd(0.5),
    "chlo.erfc": Rule(_erfc),
}
