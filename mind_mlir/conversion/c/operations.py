"""Scalar operations of arith and math as C expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mind_mlir.conversion.c.helpers import HELPERS
from mind_mlir.conversion.c.nodes import Conditional, Expr, FunctionCall, Infix, Prefix, Text
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.mlir.bindings import Operation, Type, ir
from mind_mlir.target.abi import LIBM

#: The C type of each element type.
C_TYPES = {
    "f32": "float",
    "f64": "double",
    "i64": "int64_t",
    "i32": "int32_t",
    "i16": "int16_t",
    "i8": "int8_t",
    "i1": "bool",
    "index": "int64_t",
}
_INFIX = {
    "addf": "+",
    "subf": "-",
    "mulf": "*",
    "divf": "/",
    "andi": "&",
    "ori": "|",
    "xori": "^",
}
_HELPED = {
    "addi": "add",
    "subi": "sub",
    "muli": "mul",
    "divsi": "div",
    "divui": "udiv",
    "remsi": "rem",
    "remui": "urem",
    "shli": "shl",
    "shrsi": "shrs",
    "shrui": "shru",
    "floordivsi": "floordiv",
    "ceildivsi": "ceildiv",
    "minsi": "min",
    "maxsi": "max",
    "minui": "umin",
    "maxui": "umax",
    "maximumf": "maximum",
    "minimumf": "minimum",
    "absi": "abs",
    "ctpop": "popcount",
    "ctlz": "clz",
    "cttz": "ctz",
    "rsqrt": "rsqrt",
}
#: Functions of libm that are called otherwise than in MLIR; all others have one name.
_LIBM = {
    "absf": "fabs",
    "roundeven": "nearbyint",
    "powf": "pow",
    "maxnumf": "fmax",
    "minnumf": "fmin",
    "remf": "fmod",
    "fpowi": "pow",
}
_TESTS = ("==", "!=", "<", "<=", ">", ">=")
#: The predicates of cmpf in order, as a comparison, or what is true where that is false.
_ORDERED = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<="}
_UNORDERED = {9: "<=", 10: "<", 11: ">=", 12: ">"}


def kind_of(type_: Type) -> str:
    """Return the element type of ``type_`` as helpers spell it.

    Raises:
        UnsupportedError: E7002, C has no such type.
    """
    element = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
    name = str(element)
    if name not in C_TYPES:
        raise unsupported(f"a value of {name}")
    return "i64" if name == "index" else name


def unsupported(what: str) -> UnsupportedError:
    """Return the error for what C code is not written for."""
    return UnsupportedError(
        Diagnostic(
            "E7002", f"cannot write {what} as C", help="C code computes with f32, f64, i32, i64 and i1 only"
        )
    )


def literal(value: float, kind: str) -> Text:
    """Return a constant, exactly; short decimals as they are."""
    if kind == "i1":
        return Text("true" if value else "false")
    if kind not in ("f32", "f64"):
        number = int(value)
        if number == -(2**63):
            return Text("INT64_MIN")
        if number == -(2**31):
            return Text("INT32_MIN")
        return Text(f"INT64_C({number})" if abs(number) >= 2**31 else str(number))
    suffix = "f" if kind == "f32" else ""
    if math.isnan(value):
        return Text("NAN")
    if math.isinf(value):
        return Text("INFINITY" if value > 0 else "-INFINITY")
    decimal = f"{value:.6g}"
    if float(decimal) == value and "e" not in decimal:
        return Text((decimal if "." in decimal else f"{decimal}.0") + suffix)
    mantissa, exponent = value.hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return Text(f"{mantissa}p{exponent}{suffix}")


def scalar_expression(  # noqa: C901  one list of cases
    op: Operation, operands: Sequence[Expr], used: set[str]
) -> Expr:
    """Return what the scalar operation ``op`` computes; names of helpers go to ``used``."""
    dialect, _, name = op.name.partition(".")
    result = kind_of(op.results[0].type)
    source = kind_of(op.operands[0].type)
    if dialect not in ("arith", "math"):
        raise unsupported(f"'{op.name}'")

    def helper(named: str) -> Expr:
        if named not in HELPERS:
            raise unsupported(f"'{op.name}' of {source}")
        used.add(named)
        return FunctionCall(named, tuple(operands))

    if name == "select":
        return Conditional(operands[0], operands[1], operands[2])
    if name == "cmpf":
        return _compared_floats(ir.IntegerAttr(op.attributes["predicate"]).value, *operands)
    if name == "cmpi":
        return _compared_integers(ir.IntegerAttr(op.attributes["predicate"]).value, source, *operands)
    if name == "negf":
        return Prefix("-", operands[0])
    if source == "i1" and name in _HELPED:
        return _truth(name, operands)
    if name in ("andi", "ori", "xori") and source in ("i8", "i16"):
        return Prefix(f"({C_TYPES[source]})", Infix(_INFIX[name], operands[0], operands[1]))
    if name == "xori" and source == "i1":
        if operands[1] == Text("true"):
            return Prefix("!", operands[0])
        return Infix("!=", operands[0], operands[1])
    if name in _INFIX:
        return Infix(_INFIX[name], operands[0], operands[1])
    if name in _HELPED:
        return helper(f"{_HELPED[name]}_{source}")
    converted = _converted(name, source, result, operands[0], used)
    if converted is not None:
        return converted
    function = _LIBM.get(name, name if name in LIBM else None)
    if function is None:
        raise unsupported(f"'{op.name}'")
    return FunctionCall(function + ("f" if result == "f32" else ""), tuple(operands))


def _truth(name: str, operands: Sequence[Expr]) -> Expr:
    """Return arithmetic modulo two: of truth values as unsigned, or as signed, where true is -1."""
    if name in ("muli", "minui", "maxsi"):
        return Infix("&", operands[0], operands[1])
    if name in ("maxui", "minsi"):
        return Infix("|", operands[0], operands[1])
    if name in ("addi", "subi"):
        return Infix("!=", operands[0], operands[1])
    raise unsupported(f"'{name}' of i1")


def _converted(name: str, source: str, result: str, operand: Expr, used: set[str]) -> Expr | None:
    type_ = C_TYPES[result]
    match name:
        case "extf" | "truncf" | "sitofp" | "extsi" | "index_cast" | "trunci":
            if source == "i1":
                return Conditional(operand, Text("-1"), Text("0"))
            if result == "i1":
                return Infix("!=", Infix("&", operand, Text("1")), Text("0"))
            return operand if source == result else Prefix(f"({type_})", operand)
        case "extui" | "uitofp" | "index_castui":
            if source == result:
                return operand
            unsigned = operand if source == "i1" else Prefix(f"(u{C_TYPES[source]})", operand)
            return Prefix(f"({type_})", unsigned)
        case "fptosi" | "fptoui":
            if result == "i1":
                return Infix("!=", operand, Text("0"))
            named = f"{'u' if name == 'fptoui' else ''}{result}_of_{source}"
        case "bitcast":
            if source == result:
                return operand
            named = f"{result}_bits_of_{source}" if source[0] == "f" else f"{result}_of_bits_{source}"
        case _:
            return None
    used.add(named)
    return FunctionCall(named, (operand,))


def _compared_floats(predicate: int, left: Expr, right: Expr) -> Expr:
    if predicate in _ORDERED:
        return Infix(_ORDERED[predicate], left, right)
    if predicate in _UNORDERED:  # ugt is not (left <= right)
        return Prefix("!", Infix(_UNORDERED[predicate], left, right))
    if predicate == 13:  # une
        return Infix("!=", left, right)
    if predicate == 8:  # ueq
        return Prefix("!", FunctionCall("islessgreater", (left, right)))
    if predicate == 6:  # one
        return FunctionCall("islessgreater", (left, right))
    if predicate in (7, 14):
        unordered = FunctionCall("isunordered", (left, right))
        return unordered if predicate == 14 else Prefix("!", unordered)
    return Text("true" if predicate else "false")


def _compared_integers(predicate: int, kind: str, left: Expr, right: Expr) -> Expr:
    if predicate < 6:
        if kind == "i1" and predicate > 1:  # true is -1
            left, right = right, left
        return Infix(_TESTS[predicate], left, right)
    if kind != "i1":
        left, right = (Prefix(f"(u{C_TYPES[kind]})", each) for each in (left, right))
    return Infix(_TESTS[predicate - 4], left, right)
