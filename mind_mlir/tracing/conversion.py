"""What meets a traced array as a value of its trace.

There is no implicit promotion: operands have one dtype. Only a number is of none: one of Python, and what
numpy's functions give for those, a float64 or int64 scalar, takes the dtype of the array that it meets, as
far as that holds numbers of its kind. A truth value is an integer in this, an integer a float, a float a
complex number, and none of them the other way round.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir import border
from mind_mlir.arguments import viewed
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, DTypeKind, dtype_of
from mind_mlir.ops.constants import constant_form
from mind_mlir.runtime.staged_values import NUMBERS
from mind_mlir.tracing.errors import refuse
from mind_mlir.tracing.places import user_location
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.trace import Trace

#: From the numbers that are among all others to those that hold them.
_ORDER = (DTypeKind.BOOL, DTypeKind.UNSIGNED, DTypeKind.SIGNED, DTypeKind.FLOAT, DTypeKind.COMPLEX)
RANKS = {kind: (place if kind is not DTypeKind.UNSIGNED else 2) for place, kind in enumerate(_ORDER)}


def as_value(trace: Trace, x: Any, like: DType | None = None) -> Value:
    """Return ``x`` as a value of ``trace``.

    Args:
        trace: The trace that runs.
        x: A traced array, a number, or what numpy sees as an array, which becomes a constant.
        like: The dtype that a number of Python takes; by default numpy's.

    Raises:
        TracingError: E2303, an array of a trace that has ended; E2305, ``x`` is no array.
        VerificationError: E2004, ``like`` holds no numbers of that kind; E4005, it does not hold this number.
    """
    if isinstance(x, TracedValue):
        value = trace.value(x)
        if not x.weak or like is None or value.type.dtype is like:
            return value
        _check_kind(value.type.dtype, like)
        return trace.emit("Cast", value, dtype=like).value
    number = weak_dtype(x)
    if number is None:
        return constant(trace, as_array(x))
    if like is not None and like is not number:
        _check_kind(number, like)
    dtype = like or number
    if isinstance(x, np.generic):
        x = x.item()
    try:
        literal = _known_literal(x, dtype) if x else _number_literal(x, dtype)
    except VerificationError as error:  # E4005, which knows no place
        located = [replace(finding, location=user_location()) for finding in error.diagnostics]
        raise VerificationError(located) from None
    return _literal(trace, literal)


def as_values(trace: Trace, *xs: Any) -> tuple[list[Value], bool]:
    """Return operands of one operation as values of ``trace``, and whether its result is weak.

    Numbers of Python take the dtype of the first array; among themselves, the one that holds them all.

    Raises:
        TracingError: As `as_value`.
        VerificationError: As `as_value`.
    """
    found = [x if isinstance(x, TracedValue) or weak_dtype(x) else constant_array(x) for x in xs]
    weak = []
    for x in found:
        number = _weak_dtype_of(x)
        if number is None:
            like = x.value.type.dtype if isinstance(x, TracedValue) else DType.from_numpy(x.dtype)
            values = [as_value(trace, each, like) for each in found]
            _check_same(values)
            return values, False
        weak.append(number)
    widest = max(weak, key=lambda dtype: RANKS[dtype.kind])
    return [as_value(trace, each, widest) for each in found], True


def _number_literal(x: Any, dtype: DType) -> TensorLiteral:
    return TensorLiteral.of(complex(x) if dtype.kind is DTypeKind.COMPLEX else x, dtype)


#: Programs have few numbers, many times; zeros of both signs, which are equal, are not among them.
_known_literal = functools.lru_cache(maxsize=1024, typed=True)(_number_literal)


def _check_same(values: Sequence[Value]) -> None:
    first = values[0].type
    for value in values[1:]:
        if value.type.dtype is first.dtype:
            continue
        left, right = first.dtype.core_name, value.type.dtype.core_name
        raise VerificationError(
            Diagnostic(
                "E2004",
                f"Dtype mismatch: arrays of {left} and {right}",
                user_location(),
                (f"one is {first}", f"the other is {value.type}"),
                f"convert one of them, as in x.astype('{left}'); there is no implicit promotion",
                context={"left": left, "right": right},
            )
        )


def weak_dtype(x: Any) -> DType | None:
    """Return the dtype that a number has by itself, or None where ``x`` is no number without a dtype."""
    found = NUMBERS.get(type(x))
    return None if found is None else found.dtype


def constant(trace: Trace, array: Array) -> Value:
    """Return an array as a constant of ``trace``."""
    return _literal(trace, TensorLiteral.from_array(array))


def constant_array(x: Any) -> Array:
    """Return ``x`` as an array whose elements have a dtype of ours.

    Raises:
        TracingError: E2305, it is none.
    """
    return x if type(x) is np.ndarray and x.dtype in _PLAIN else as_array(x)


def as_array(x: Any) -> Array:
    """Return what numpy makes of ``x``, with a dtype of ours; as `constant_array`."""
    array, reason = viewed(x)
    if array is None:
        refuse("E2305", f"an operand is no array: {reason}", "pass a traced array, a numpy array or a number")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if DType.from_numpy(array.dtype) is None:
        refuse(
            "E2305",
            f"an operand is an array of {array.dtype}, which is no dtype of a tensor",
            "pass an array of numbers, such as float32",
        )
    return array


def as_dtype(dtype: Any, parameter: str = "dtype") -> DType:
    """Return the dtype that Python means by ``dtype``: one of ours, its name, or numpy's.

    Raises:
        TypeError: It is none.
    """
    found = dtype_of(dtype)
    if found is None and isinstance(dtype, (str, type)):
        try:
            found = DType.from_numpy(np.dtype(dtype))
        except TypeError:
            found = None
    if found is None:
        border.reject(parameter, "a dtype, such as 'f32' or numpy.float32", dtype)
    return found


def _weak_dtype_of(x: Any) -> DType | None:
    if isinstance(x, TracedValue):
        return x.value.type.dtype if x.weak else None
    return weak_dtype(x)


def _check_kind(number: DType, like: DType) -> None:
    """Check that an array of ``like`` holds numbers of the kind of ``number``."""
    if RANKS[number.kind] <= RANKS[like.kind]:
        return
    names = {
        "bool": "a truth value",
        "signed": "an integer",
        "float": "a float",
        "complex": "a complex number",
    }
    named = names[number.kind.value]
    raise VerificationError(
        Diagnostic(
            "E2004",
            f"Dtype mismatch: {named} meets an array of {like.core_name}",
            user_location(),
            help=f"convert the array: x.astype('{number.core_name}'); there is no implicit promotion",
            context={"left": like.core_name, "right": number.core_name},
        )
    )


def _literal(trace: Trace, literal: TensorLiteral) -> Value:
    opcode, attributes = constant_form(literal)
    given: dict[str, Any] = attributes
    return trace.emit(opcode, **given).value


_PLAIN = frozenset(dtype.numpy for dtype in DType)
