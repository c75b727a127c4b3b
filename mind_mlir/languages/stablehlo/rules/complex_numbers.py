"""Complex numbers: their parts, and functions of them that are no operations of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions import complex_numbers as functions
from mind_mlir.languages.stablehlo.rules.use import Emit, Rule, Use

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value


def _real(use: Use) -> Value:
    (value,) = use.operands
    return use.parts(value)[0] if value.type.dtype.is_complex else value


def _imag(use: Use) -> Value:
    (value,) = use.operands
    return use.parts(value)[1] if value.type.dtype.is_complex else use.like(0, value)


#: Functions of complex numbers, by what those of real ones are called.
FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "stablehlo.abs": functions.magnitude,
    "stablehlo.cosine": functions.cosine,
    "stablehlo.exponential_minus_one": functions.exponential_minus_one,
    "stablehlo.log_plus_one": functions.log_plus_one,
    "stablehlo.logistic": functions.logistic,
    "stablehlo.power": functions.power,
    "stablehlo.sign": functions.sign,
    "stablehlo.sine": functions.sine,
    "stablehlo.sqrt": functions.square_root,
    "stablehlo.tan": functions.tangent,
}


def or_complex(name: str, emit: Emit) -> Emit:
    """Return ``emit``, a rule of real numbers, or what does the same with complex ones if there is such."""
    function = FUNCTIONS.get(name)
    if function is None:
        return emit
    return lambda use: function(use, *use.operands) if use.operands[0].type.dtype.is_complex else emit(use)


RULES: Mapping[str, Rule] = {
    "stablehlo.complex": Rule(lambda use: use.complex_of(*use.operands), lifts=True),
    "stablehlo.imag": Rule(_imag, lifts=True),
    "stablehlo.real": Rule(_real, lifts=True),
}
