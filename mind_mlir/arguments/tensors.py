"""Checks the arguments of a call and brings them into the form compiled code reads.

Compiled code checks nothing, so everything is checked here, before it runs: that every input is given once,
and that each array has the input's dtype and shape. Layout is not the caller's problem: an array that is not
C-contiguous or not aligned is copied; one that is passed through is only ever read. Nor are the bytes of
truth values: numpy takes every byte but 0 for true, compiled code reads one bit.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.ir.allocation import allocation_failed
from mind_mlir.ir.elements import ElementProblem, limits, plain_booleans
from mind_mlir.ir.nested import as_array, flattened, is_masked
from mind_mlir.ir.types import DType, format_shape
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.interface import Parameter


_SMALL = 1024


def bind(
    parameters: Sequence[Parameter], positional: Sequence[object], named: Mapping[Any, object]
) -> list[Array]:
    """Return one C-contiguous, aligned array for each parameter, in order.

    Raises:
        ArgumentError: E6101 missing, E6102 unexpected or given twice, E6103 wrong dtype, E6104 wrong shape,
            E6105 not an array; all that is wrong with the call at once.
        ExecutionError: E6004, there is no memory for a contiguous copy.
    """
    values: Sequence[Any]
    if len(positional) == len(parameters) and not named:
        values = positional
    elif not positional and len(named) == len(parameters):
        values = [named.get(parameter.name) for parameter in parameters]
    else:
        return _bind_with_care(parameters, positional, named)
    if all(map(fits, values, parameters)):
        return list(values)
    return _bind_with_care(parameters, positional, named)


def fits(value: object, parameter: Parameter) -> TypeGuard[Array]:
    """Return whether an argument can be passed as it is; most can, and calls of small functions are short."""
    return (
        type(value) is np.ndarray
        and (value.dtype is parameter.dtype or value.dtype == parameter.dtype)
        and value.shape == parameter.shape
        and (flags := value.flags).c_contiguous
        and flags.aligned
        and not (parameter.is_bool and _has_odd_bytes(value))
    )


def _has_odd_bytes(array: Array) -> bool:
    """Return whether a boolean array has bytes other than 0 and 1, as a view of other data can."""
    if array.size <= _SMALL:  # numpy takes longer to begin than Python to end
        return bool(array.tobytes().translate(None, b"\0\1"))
    return bool(array.view(np.uint8).max() > 1)


def address(array: Array) -> int:
    """Return where the data of a C-contiguous array begins.

    The buffer protocol answers in a fifth of the time of ``array.ctypes``, but only for arrays that can be
    written and are not empty.
    """
    try:
        buffer: Any = array  # numpy's stubs call arrays buffers from Python 3.12 on
        return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    except (TypeError, ValueError):
        return int(array.ctypes.data)


def _bind_with_care(
    parameters: Sequence[Parameter], positional: Sequence[object], named: Mapping[Any, object]
) -> list[Array]:
    findings: list[Diagnostic] = []
    given = by_name([parameter.name for parameter in parameters], positional, named, findings)
    arrays = [
        _array(parameter, given[parameter.name], findings)
        for parameter in parameters
        if parameter.name in given
    ]
    findings += [
        _finding(
            "E6101", f"argument '{parameter.name}' is missing", parameter, f"pass {parameter.name}=<array>"
        )
        for parameter in parameters
        if parameter.name not in given
    ]
    if findings:
        raise ArgumentError(findings)
    return arrays


def by_name(
    names: Sequence[str],
    positional: Sequence[object],
    named: Mapping[Any, object],
    findings: list[Diagnostic],
) -> dict[str, object]:
    """Return the arguments of a call by name; what fits no name, or is given twice, goes to ``findings``."""
    listing = ", ".join(names) or "none"
    if len(positional) > len(names):
        message = f"{len(positional)} positional arguments given, but there are {len(names)} inputs"
        findings.append(Diagnostic("E6102", message, help=f"the inputs are: {listing}"))
    given: dict[str, object] = dict(zip(names, positional, strict=False))
    for name, value in named.items():
        if name not in names:
            findings.append(
                Diagnostic("E6102", f"there is no input '{name}'", help=f"the inputs are: {listing}")
            )
        elif name in given:
            findings.append(Diagnostic("E6102", f"argument '{name}' is given both by position and by name"))
        else:
            given[name] = value
    return given


def _array(parameter: Parameter, value: object, findings: list[Diagnostic]) -> Array:
    array = _to_numpy(parameter, value, findings)
    if array is None:
        return np.empty(0)
    if array.dtype == np.bool_ and _has_odd_bytes(array):
        array = plain_booleans(array)
    found = mismatches(parameter, array.dtype, array.shape)
    findings += found
    if found:
        return array
    try:
        return np.require(array, requirements=("C", "A"))
    except MemoryError as error:
        what = f"the memory to bring argument '{parameter.name}' into row-major order"
        raise allocation_failed(what, [parameter.type]) from error


def mismatches(parameter: Parameter, dtype: np.dtype[Any], shape: tuple[int, ...]) -> list[Diagnostic]:
    """Return what is wrong with an argument of ``dtype`` and ``shape``: E6103, E6104, both or nothing."""
    found: list[Diagnostic] = []
    expected = parameter.type
    if dtype != expected.dtype.numpy:
        wanted = expected.dtype.numpy_name
        argument = wanted if wanted.startswith("ml_dtypes.") else f"'{wanted}'"
        found.append(
            _finding(
                "E6103",
                f"argument '{parameter.name}' has dtype {dtype}, expected {wanted}",
                parameter,
                f"convert it: {parameter.name}.astype({argument})",
            )
        )
    if shape != expected.shape:
        found.append(
            _finding(
                "E6104",
                f"argument '{parameter.name}' has shape {format_shape(shape)}, "
                f"expected {format_shape(expected.shape)}",
                parameter,
                "pass an array of exactly that shape; calls do not broadcast",
            )
        )
    return found


def _to_numpy(parameter: Parameter, value: object, findings: list[Diagnostic]) -> Array | None:
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        value = _from_python_scalar(parameter.type.dtype, value)
    array, reason = viewed(value)
    if array is None:
        findings.append(
            _finding("E6105", f"argument '{parameter.name}' is not an array: {reason}", parameter, None)
        )
        return None
    if array.dtype.hasobject or (array.dtype.kind in "USmMV" and DType.from_numpy(array.dtype) is None):
        findings.append(
            _finding(
                "E6105",
                f"argument '{parameter.name}' is not an array of numbers, but {type(value).__name__} "
                f"with dtype {array.dtype}",
                parameter,
                "pass a numpy array",
            )
        )
        return None
    return array


def viewed(value: object) -> tuple[Array | None, str]:
    """Return ``value`` as numpy sees it, or None and why it cannot."""
    if is_masked(value):
        return None, "elements of it are masked"
    try:
        array = as_array(value)
    except ElementProblem as problem:
        return None, problem.message
    if array is not None:
        return array, ""
    try:
        shape, elements = flattened(value)
        return np.asarray(elements).reshape(shape), ""
    except ElementProblem as problem:
        return None, problem.message
    except (TypeError, ValueError):  # numpy sees no common type, or parts of what is one element here
        return None, f"it is {argument_checks.describe(value)}"


def _from_python_scalar(dtype: DType, value: Any) -> object:
    """Return a Python number as an array of ``dtype`` where that is what it says, else unchanged."""
    if isinstance(value, bool):
        return np.asarray(value)
    if dtype.is_float and isinstance(value, (int, float)):
        try:
            number = float(value)
            with np.errstate(over="ignore"):
                array = np.asarray(number, dtype.numpy)
        except OverflowError:
            return value
        return value if np.isinf(array) and not np.isinf(number) else array
    if dtype.is_integer and isinstance(value, int):
        least, greatest = limits(dtype)
        return np.asarray(value, dtype.numpy) if least <= value <= greatest else value
    return value


def _finding(code: str, message: str, parameter: Parameter, help_: str | None) -> Diagnostic:
    return Diagnostic(
        code,
        message,
        notes=(f"input '{parameter.name}' is {parameter.type}",),
        help=help_,
        context=MappingProxyType({"input": parameter.name, "expected": str(parameter.type)}),
    )
