"""Functions of numpy that are called with traced arrays: those of ours that do the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from mind_mlir.support import argument_checks
from mind_mlir.tracing import operators
from mind_mlir.tracing.conversion import as_values
from mind_mlir.tracing.places import refuse
from mind_mlir.tracing.reductions import axes_of, counted
from mind_mlir.tracing.trace import current_trace

#: What numpy's functions are called whose operators Python has.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: operators.binary("Add", x, y),
    "subtract": lambda x, y: operators.binary("Sub", x, y),
    "multiply": lambda x, y: operators.binary("Mul", x, y),
    "divide": operators.divide,
    "true_divide": operators.divide,
    "floor_divide": operators.floor_divide,
    "remainder": operators.remainder,
    "mod": operators.remainder,
    "power": operators.power,
    "matmul": operators.matmul,
    "bitwise_and": lambda x, y: operators.binary("And", x, y),
    "bitwise_or": lambda x, y: operators.binary("Or", x, y),
    "bitwise_xor": lambda x, y: operators.binary("Xor", x, y),
    "invert": lambda x: operators.unary("Not", x),
    "left_shift": lambda x, y: operators.binary("ShiftLeft", x, y),
    "right_shift": operators.shift_right,
    "negative": lambda x: operators.unary("Neg", x),
    "absolute": operators.absolute,
    "less": lambda x, y: operators.compare("Less", x, y),
    "less_equal": lambda x, y: operators.compare("LessEqual", x, y),
    "greater": lambda x, y: operators.compare("Greater", x, y),
    "greater_equal": lambda x, y: operators.compare("GreaterEqual", x, y),
    "equal": lambda x, y: operators.compare("Equal", x, y),
    "not_equal": lambda x, y: operators.compare("NotEqual", x, y),
}

#: What `Cumulate` computes where a universal function accumulates.
_ACCUMULATED = {"add": "Sum", "multiply": "Prod", "maximum": "Max", "minimum": "Min"}


def universal(ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what a universal function of numpy is called for, also by operators of numpy's arrays.

    Raises:
        TracingError: E2306, it would write to an array; E2307, it is not known, or not as it is called.
    """
    if kwargs.get("out") is not None:
        refuse(
            "E2306",
            "an array of numpy cannot be written to with what is known when the program runs",
            "write x = x + y rather than x += y, and leave out=... out",
        )
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if method == "accumulate" and ufunc.__name__ in _ACCUMULATED and kwargs.keys() <= {"axis"}:
        return _accumulated(_ACCUMULATED[ufunc.__name__], *inputs, **kwargs)
    if kwargs:
        _unknown(f"numpy.{name} with {', '.join(f'{key}=' for key in kwargs)}")
    return named(name)(*inputs)


def _accumulated(kind: str, array: Any, axis: Any = 0) -> Any:
    trace = current_trace()
    (value,), weak = as_values(trace, array)
    whole = counted(trace.wrap(value, weak=weak)) if kind in ("Sum", "Prod") else trace.wrap(value, weak=weak)
    (place,) = axes_of(argument_checks.integer(axis, "axis"), whole.ndim)
    return trace.emit("Cumulate", trace.value(whole), kind=kind, axis=place, weak=weak)


def function_of(function: Any) -> Callable[..., Any]:
    """Return what does on traced arrays what a function of numpy, or of a module of it, does on arrays.

    Raises:
        TracingError: E2307, there is none.
    """
    return named(function.__name__, getattr(function, "__module__", None) or "numpy")


def named(name: str, module: str = "numpy") -> Callable[..., Any]:
    """Return what does on traced arrays what the function ``name`` of numpy does on arrays.

    Raises:
        TracingError: E2307, there is none.
    """
    if name in _OPERATORS:
        return _OPERATORS[name]
    from mind_mlir import numpy as ours  # noqa: PLC0415 -- its functions are made of these

    part = getattr(ours, module.partition(".")[2], ours)
    found: Callable[..., Any] | None = getattr(part, name, getattr(ours, name, None))
    if found is None or not callable(found):
        _unknown(f"{module}.{name}")
    return found


def _unknown(name: str) -> NoReturn:
    refuse(
        "E2307",
        f"{name} is not known for traced arrays",
        "use the operators of Python and the functions of mind_mlir.numpy; numpy's own take plain "
        "arrays alone",
    )
