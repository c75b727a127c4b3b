"""Arithmetic on the elements of each dtype, for the bodies of linalg operations.

One table: what a rule asks for by its meaning (`add`, `maximum`, `less`) becomes the operations that a dtype
needs. Floats narrower than f32 are computed in f32 and rounded once; their tensors hold them as they are.
Integers of 4 bits lie in bytes, whose upper half follows from the lower one. Complex numbers are pairs
of floats (`mlir.complex_numbers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.mlir import complex_functions, complex_numbers
from mind_mlir.mlir.bindings import arith, complex_, ir, math
from mind_mlir.mlir.types import element_type
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.mlir.bindings import Type, Value

#: Comparisons by keyword: the predicates of integers, without their signedness, and of floats. Ordered float
#: predicates are false on NaN, the unordered UNE is true on it.
_PREDICATES = {
    "Less": ("lt", "OLT"),
    "LessEqual": ("le", "OLE"),
    "Equal": ("eq", "OEQ"),
    "GreaterEqual": ("ge", "OGE"),
    "Greater": ("gt", "OGT"),
    "NotEqual": ("ne", "UNE"),
}


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic on scalars of one dtype, as tensors of it hold them; everything is emitted where it stands.

    Truth values are numbers for comparison, `maximum` and `minimum` only.
    """

    dtype: DType

    @property
    def element(self) -> Type:
        """Return the type of an element of a tensor."""
        return element_type(self.dtype, signed=False)

    @property
    def is_native(self) -> bool:
        """Return whether MLIR's operations on the element type are this arithmetic, but for signedness."""
        return not self.dtype.is_complex and not self.is_narrow and self.dtype.bits != 4

    @property
    def is_narrow(self) -> bool:
        """Return whether this is a float that is computed in f32."""
        return self.dtype.is_narrow

    @property
    def is_unsigned(self) -> bool:
        """Return whether numbers are compared as unsigned ones; truth values are."""
        return self.dtype.kind in (DTypeKind.UNSIGNED, DTypeKind.BOOL)

    def constant(self, value: complex) -> Value:
        """Emit a number of the dtype: for floats the nearest one, for integers one that it holds."""
        type_ = self.element
        match self.dtype.kind:
            case DTypeKind.FLOAT:
                return arith.ConstantOp(type_, ir.FloatAttr.get(type_, float(value.real))).result
            case DTypeKind.COMPLEX:
                part = ir.FloatAttr.get
                parts = [part(type_.element_type, each) for each in (value.real, value.imag)]
                return complex_.ConstantOp(type_, ir.ArrayAttr.get(parts)).result
            case _:
                # Of an unsigned number, the signless type has the bits.
                number = value if isinstance(value, int) else int(value.real)
                signed = number - (1 << type_.width) if number >= 1 << (type_.width - 1) > 1 else number
                return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, signed)).result

    def widened(self, value: Value) -> Value:
        """Emit ``value`` in the type that it is computed in: f32 for a narrow float."""
        return arith.ExtFOp(ir.F32Type.get(), value).result if self.is_narrow else value

    def rounded(self, value: Value) -> Value:
        """Emit what was computed, in the type of `widened`, as an element: rounded, or wrapped around."""
        if self.is_narrow:
            return arith.TruncFOp(self.element, value).result
        if self.dtype.bits == 4:
            four = arith.ConstantOp(value.type, ir.IntegerAttr.get(value.type, 4)).result
            shift = arith.ShRUIOp if self.is_unsigned else arith.ShRSIOp
            return shift(arith.ShLIOp(value, four).result, four).result
        return value

    def apply(self, body: Callable[..., Value], *values: Value) -> Value:
        """Emit ``body`` of ``values`` in the type that they are computed in, and round what it gives once."""
        return self.rounded(body(*map(self.widened, values)))

    def add(self, left: Value, right: Value) -> Value:
        """Emit a sum; integers wrap around."""
        return self._binary("Add", left, right)

    def subtract(self, left: Value, right: Value) -> Value:
        """Emit a difference; integers wrap around."""
        return self._binary("Sub", left, right)

    def multiply(self, left: Value, right: Value) -> Value:
        """Emit a product; integers wrap around."""
        return self._binary("Mul", left, right)

    def divide(self, left: Value, right: Value) -> Value:
        """Emit a quotient of floats or of complex numbers."""
        return self._binary("Div", left, right)

    def negate(self, value: Value) -> Value:
        """Emit ``-value``: for floats with the other sign bit, for integers wrapped around."""
        match self.dtype.kind:
            case DTypeKind.FLOAT:
                return self.apply(lambda x: arith.NegFOp(x).result, value)
            case DTypeKind.COMPLEX:
                return complex_numbers.by_parts(arith.NegFOp, value)
            case _:
                return self.subtract(self.constant(0), value)

    def reciprocal(self, value: Value) -> Value:
        """Emit one divided by a float or a complex number."""
        if self.dtype.is_complex:
            return complex_numbers.reciprocal(value)
        one = ir.FloatAttr.get(self.widened(value).type, 1.0)
        return self.apply(lambda x: arith.DivFOp(arith.ConstantOp(x.type, one).result, x).result, value)

    def function(self, name: str, value: Value) -> Value:
        """Emit a function of floats, as the `math` dialect calls it, or the same of complex numbers."""
        if self.dtype.is_complex:
            return getattr(complex_functions, name)(value)
        return self.apply(getattr(math, name), value)

    def maximum(self, left: Value, right: Value) -> Value:
        """Emit the greater number; NaN if either is, and +0.0 of two zeros of which one is."""
        return self._extreme("Max", left, right)

    def minimum(self, left: Value, right: Value) -> Value:
        """Emit the lesser number; NaN if either is, and -0.0 of two zeros of which one is."""
        return self._extreme("Min", left, right)

    def compare(self, op: str, left: Value, right: Value) -> Value:
        """Emit an i1: whether ``left <op> right``, with ``op`` as `Compare` has it; complex for equality."""
        integer, floating = _PREDICATES[op]
        match self.dtype.kind:
            case DTypeKind.FLOAT:
                predicate = getattr(arith.CmpFPredicate, floating)
                return arith.CmpFOp(predicate, self.widened(left), self.widened(right)).result
            case DTypeKind.COMPLEX:
                return complex_numbers.equal(left, right, negated=op == "NotEqual")
            case _:
                prefix = "" if integer in ("eq", "ne") else "u" if self.is_unsigned else "s"
                return arith.CmpIOp(getattr(arith.CmpIPredicate, prefix + integer), left, right).result

    def _binary(self, name: str, left: Value, right: Value) -> Value:
        emit: Any
        match self.dtype.kind:
            case DTypeKind.COMPLEX if name in ("Add", "Sub"):
                return complex_numbers.by_parts(getattr(arith, f"{name}FOp"), left, right)
            case DTypeKind.COMPLEX:
                emit = {"Mul": complex_numbers.multiply, "Div": complex_numbers.divide}[name]
                return emit(left, right)
            case DTypeKind.FLOAT:
                emit = getattr(arith, f"{name}FOp")
            case _:
                emit = getattr(arith, f"{name}IOp")
        return self.apply(lambda x, y: emit(x, y).result, left, right)

    def _extreme(self, name: str, left: Value, right: Value) -> Value:
        if self.dtype.is_float:
            emit: Any = getattr(arith, f"{name}imumFOp")
            return self.apply(lambda x, y: emit(x, y).result, left, right)
        return getattr(arith, f"{name}{'U' if self.is_unsigned else 'S'}IOp")(left, right).result
