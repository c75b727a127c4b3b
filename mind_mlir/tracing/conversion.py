"""Convert the operands that meet a traced array to values of its trace.

Operands of several dtypes take the one that `promotion` says, where the trace promotes. In a strict one they
have one dtype, and only a number is of none: one of Python, and what numpy's functions give for those, a
float64 or int64 scalar, takes the dtype of the array that it meets, as far as that holds numbers of its kind.
A truth value is an integer in this, an integer a float, a float a complex number, and none of them the other
way round.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.arguments.tensors import viewed
from mind_mlir.diagnostics import VerificationError
from mind_mlir.ir.attributes import Array, TensorLiteral
from mind_mlir.ir.types import DType, DTypeKind, TensorType, dtype_of
from mind_mlir.ops.constants import constant_form
from mind_mlir.runtime.staged_values import NUMBERS
from mind_mlir.support import argument_checks
from mind_mlir.tracing.places import broken_rule, refuse, user_location
from mind_mlir.tracing.promotion import LatticeNode, joined, node_of_number
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
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
        like: The dtype that it takes; by default its own, which for a number of Python is numpy's.

    Raises:
        TracingError: E2303, an array of a trace that has ended; E2305, ``x`` is no array.
        VerificationError: E2004, ``like`` holds no numbers of that kind; E4005, it does not hold this number.
    """
    number = None if isinstance(x, TracedValue) else weak_dtype(x)
    if number is None:
        value = trace.value(x) if isinstance(x, TracedValue) else constant(trace, as_array(x))
        if like is None or value.type.dtype is like:
            return value
        check_kind(value.type.dtype, like)
        return trace.emit("Cast", value, dtype=like).value
    if like is not None and like is not number:
        check_kind(number, like)
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

    Raises:
        TracingError: As `as_value`.
        VerificationError: As `as_value`; E2004, their dtypes do not go together.
    """
    found = [x if isinstance(x, TracedValue) or weak_dtype(x) else constant_array(x) for x in xs]
    node = common_node(trace, found)
    return [as_value(trace, each, node.dtype) for each in found], node.weak


def common_node(trace: Trace, xs: Sequence[Any]) -> LatticeNode:
    """Return the dtype that operands have together, and whether it is that of numbers.

    Raises:
        VerificationError: E2004, they have none.
    """
    nodes = [node_of(x) for x in xs]
    if not nodes[0].weak and all(node == nodes[0] for node in nodes):
        return nodes[0]
    strong = [node for node in nodes if not node.weak]
    if trace.promotes or not strong:
        node = joined(nodes)
        if node is not None:
            return _as_it_is(node, xs)
    elif all(node == strong[0] for node in strong):
        return strong[0]
    raise _no_dtype(trace, xs)


def _as_it_is(node: LatticeNode, xs: Sequence[Any]) -> LatticeNode:
    """Return a node; that of numbers alone has the width of those that are traced, where this is one."""
    dtypes = {x.value.type.dtype for x in xs if isinstance(x, TracedValue)}
    width = dtypes.pop() if len(dtypes) == 1 else None
    if node.weak and width and node_of_number(width) == node:
        return LatticeNode(width, weak=True)
    return node


def node_of(x: Any) -> LatticeNode:
    """Return what an operand brings to the dtype that all have."""
    if isinstance(x, TracedValue):
        return node_of_number(x.value.type.dtype) if x.weak else LatticeNode(x.value.type.dtype)
    number = weak_dtype(x)
    return LatticeNode(number, weak=True) if number else LatticeNode(type_of(x).dtype)


def type_of(x: Any) -> TensorType:
    """Return the type of an operand; of a number, that which it has by itself."""
    if isinstance(x, TracedValue):
        return x.value.type
    number = weak_dtype(x)
    if number is not None:
        return TensorType(number)
    array = constant_array(x)
    return TensorType(DType.from_numpy(array.dtype) or DType.F64, array.shape)


def _number_literal(x: Any, dtype: DType) -> TensorLiteral:
    return TensorLiteral.of(complex(x) if dtype.kind is DTypeKind.COMPLEX else x, dtype)


#: Programs have few numbers, many times; zeros of both signs, which are equal, are not among them.
_known_literal = functools.lru_cache(maxsize=1024, typed=True)(_number_literal)


def _no_dtype(trace: Trace, xs: Sequence[Any]) -> VerificationError:
    """Return what is wrong with two operands that have no dtype together."""
    strong = [x for x in xs if not node_of(x).weak]
    pairs = [
        (type_of(one), type_of(two)) for one, two in combinations(strong, 2) if node_of(one) != node_of(two)
    ]
    apart = [pair for pair in pairs if joined([LatticeNode(each.dtype) for each in pair]) is None]
    one, two = (apart or pairs)[0]
    left, right = one.dtype.core_name, two.dtype.core_name
    why = "no dtype holds what both do" if trace.promotes else "promotion='strict' converts none"
    return broken_rule(
        "E2004",
        f"Dtype mismatch: arrays of {left} and {right}",
        f"convert one of them, as in x.astype('{left}'); {why}",
        (f"one is {one}", f"the other is {two}"),
        {"left": left, "right": right},
    )


def weak_dtype(x: Any) -> DType | None:
    """Return the dtype that a number has by itself, or None where ``x`` is no number without a dtype."""
    found = NUMBERS.get(type(x))
    return None if found is None else found.dtype


def constant(trace: Trace, array: Array) -> Value:
    """Return an array as a constant of ``trace``."""
    return _literal(trace, TensorLiteral.from_array(array))


def constant_array(x: Any) -> Array:
    """Return ``x`` as an array whose elements have a dtype of ours (E2305: it is none)."""
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
        argument_checks.reject(parameter, "a dtype, such as 'f32' or numpy.float32", dtype)
    return found


def check_kind(number: DType, like: DType) -> None:
    """Check that an array of ``like`` holds numbers of the kind of ``number``."""
    if RANKS[number.kind] <= RANKS[like.kind]:
        return
    names = {
        "bool": "a truth value",
        "signed": "an integer",
        "unsigned": "an integer",
        "float": "a float",
        "complex": "a complex number",
    }
    raise broken_rule(
        "E2004",
        f"Dtype mismatch: {names[number.kind.value]} meets an array of {like.core_name}",
        f"convert the array: x.astype('{number.core_name}')",
        context={"left": like.core_name, "right": number.core_name},
    )


def _literal(trace: Trace, literal: TensorLiteral) -> Value:
    opcode, attributes = constant_form(literal)
    given: dict[str, Any] = attributes
    return trace.emit(opcode, **given).value


_PLAIN = frozenset(dtype.numpy for dtype in DType)
