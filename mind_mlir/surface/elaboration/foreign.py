"""Calls of functions of Python: they are traced for the arguments of the call.

A struct arrives there as a dictionary, a tuple as a tuple; a dictionary that comes back is a struct without a
name, which fits any struct with its fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir import border, trees
from mind_mlir.diagnostics import MindError
from mind_mlir.ir.types import TensorType
from mind_mlir.ir.value import Value
from mind_mlir.surface.elaboration.literals import plain
from mind_mlir.surface.elaboration.routines import Use
from mind_mlir.surface.elaboration.types import StructOf, SurfaceType, TupleOf
from mind_mlir.surface.elaboration.values import StructValue, SurfaceValue, TupleValue, is_bad, leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.surface.elaboration.body import Body
    from mind_mlir.surface.elaboration.values import Foreign
    from mind_mlir.surface.syntax.nodes import Span


def use(
    body: Body, function: Foreign, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> Use | None:
    """Return the use of a function of Python; None where it cannot be traced, which is reported."""
    arguments = tuple([plain(body, value, place) for value, place in zip(given, spans, strict=True)])
    if any(map(is_bad, arguments)):
        return None
    nested = tuple([_nested(value) for value in arguments])
    tensors, form = trees.flatten((nested, {}))
    types = [tensor.type for tensor in tensors]
    try:
        instance = function.function.instance(body.file.unit, form, types)
    except MindError as error:
        body.file.extend(error.diagnostics, span)
        return None
    result = _type(instance.form.unflatten(list(instance.results)))
    operands = tuple(leaf for value in arguments for leaf in leaves(value))
    return Use(instance, operands, arguments, result)


def _nested(value: SurfaceValue) -> Any:
    if isinstance(value, StructValue):
        return {name: _nested(part) for name, part in value.fields.items()}
    if isinstance(value, TupleValue):
        return tuple([_nested(item) for item in value.items])
    assert isinstance(value, Value), "literals are constants by now"
    return value


def _type(found: Any) -> SurfaceType:
    if isinstance(found, dict):
        return StructOf("", tuple((name, _type(part)) for name, part in found.items()))
    if isinstance(found, (tuple, list)):
        return TupleOf(tuple(map(_type, found)))
    return border.expect(found, TensorType, "what a function of Python gives", "a TensorType")
