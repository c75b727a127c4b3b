"""``zeros``, ``ones``, ``full`` and ``eye``: constants of a shape that is known beforehand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics import MindError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.mind.elaboration.arguments import bound_arguments, evaluated_in_vain, wrong_count
from mind_mlir.languages.mind.elaboration.literals import MAX_ELEMENTS, made, tensor
from mind_mlir.languages.mind.elaboration.static import keyword
from mind_mlir.languages.mind.elaboration.types import DTYPES
from mind_mlir.languages.mind.elaboration.values import BAD, Bad, LiteralValue, SurfaceValue

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.body import Body
    from mind_mlir.languages.mind.elaboration.resolve import Expected
    from mind_mlir.languages.mind.syntax import nodes

_PARAMETERS = {
    "zeros": ("shape", "dtype"),
    "ones": ("shape", "dtype"),
    "full": ("shape", "value", "dtype"),
    "eye": ("n", "m", "dtype"),
}


def made_by(body: Body, node: nodes.Call, name: str, expected: Expected) -> SurfaceValue:
    """Return the constant that a call of one of these functions stands for."""
    parameters = _PARAMETERS[name]
    bound = bound_arguments(body, node, name, parameters)
    if bound is None:
        return evaluated_in_vain(body, node)
    required = parameters[:2] if name == "full" else parameters[:1]
    if any(each not in bound for each in required):
        wrong_count(body, node, name, len(required))
        return evaluated_in_vain(body, node)
    dtype = _dtype(body, bound.get("dtype"), expected)
    shape = _eye(body, bound) if name == "eye" else _extents(body, bound["shape"])
    if dtype is None or shape is None:
        return BAD
    if name == "full":
        return _full(body, node, bound["value"], shape, dtype, given="dtype" in bound)
    with np.errstate(all="ignore"):
        element = dtype.numpy.type(0 if name == "zeros" else 1)
    data = np.eye(*shape, dtype=dtype.numpy) if name == "eye" else np.full(shape, element, dtype.numpy)
    return made(body, TensorLiteral.of(data, dtype), node.span) or BAD


def _full(
    body: Body, node: nodes.Call, written: nodes.Expression, shape: list[int], dtype: DType, *, given: bool
) -> SurfaceValue:
    value = body.expression(written, dtype)
    if isinstance(value, Bad):
        return BAD
    if isinstance(value, LiteralValue) and value.is_scalar:
        if not given and value.kind != "float" and value.dtype is None and dtype is DType.F32:
            dtype = value.default_dtype  # full([2], 1) is of integers, as the literal is
        try:
            one = TensorLiteral.of(value.data, value.dtype or dtype)
        except MindError as error:
            body.file.extend(error.diagnostics, written.span)
            return BAD
        data = np.full(shape, one.array, one.type.dtype.numpy)
        return made(body, TensorLiteral.of(data, one.type.dtype), node.span) or BAD
    found = tensor(body, value, written.span, dtype)
    if found is None:
        return BAD
    attributes = {"result_shape": shape}
    return body.emit_one("BroadcastTo", [found], node.span, attributes=attributes) or BAD


def _dtype(body: Body, written: nodes.Expression | None, expected: Expected) -> DType | None:
    if written is None:
        found = expected.dtype if isinstance(expected, TensorType) else expected
        return found if isinstance(found, DType) else DType.F32
    chosen = keyword(body, written)
    if isinstance(chosen, DType):
        return chosen
    help_ = f"write one of {', '.join(DTYPES)}"
    body.report("E2205", "a dtype is one of the language's", written.span, help=help_)
    return None


def _eye(body: Body, bound: dict[str, nodes.Expression]) -> list[int] | None:
    rows = _extents(body, bound["n"])
    columns = _extents(body, bound["m"]) if "m" in bound else rows
    return None if rows is None or columns is None else _small(body, [*rows[:1], *columns[:1]], bound["n"])


def _extents(body: Body, node: nodes.Expression) -> list[int] | None:
    """Return a shape, or a single extent, that is known; None where it is not, which is reported."""
    found: Any = keyword(body, node)
    shape = found if isinstance(found, list) else [found]
    if any(type(extent) is not int for extent in shape):
        if not isinstance(body.expression(node), Bad):
            message = "a shape must be known when the program is compiled"
            help_ = "write a list of numbers, or of names of dimensions: [2, n]"
            body.report("E2205", message, node.span, help=help_)
        return None
    for index, extent in enumerate(shape):
        if extent < 1:
            message = f"dimension {index} is {extent}, and must be 1 or more"
            help_ = "a constant has one element at least"
            body.report("E3006", message, node.span, help=help_, shape=shape, index=index, value=extent)
            return None
    return _small(body, shape, node)


def _small(body: Body, shape: list[int], node: nodes.Expression) -> list[int] | None:
    if math.prod(shape) <= MAX_ELEMENTS:
        return shape
    message = f"a constant of shape {shape} has more than {MAX_ELEMENTS:,} elements"
    help_ = "pass it as an argument, or broadcast a smaller one: broadcast_to(x, result_shape=[...])"
    body.report("E7001", message, node.span, help=help_)
    return None
