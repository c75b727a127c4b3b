"""Calls of functions of Python: they are traced for the arguments of the call.

A struct arrives there as a dictionary, a tuple as a tuple; a dictionary that comes back is a struct without a
name, which fits any struct with its fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir import trees
from mind_mlir.diagnostics import MindError
from mind_mlir.ir.value import Value
from mind_mlir.surface.elaboration.literals import plain
from mind_mlir.surface.elaboration.routines import Use
from mind_mlir.surface.elaboration.types import StructOf, TupleOf
from mind_mlir.surface.elaboration.values import StructValue, SurfaceValue, TupleValue, is_bad

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.ir.types import TensorType
    from mind_mlir.surface.elaboration.body import Body
    from mind_mlir.surface.elaboration.types import SurfaceType
    from mind_mlir.surface.elaboration.values import Foreign
    from mind_mlir.surface.syntax.nodes import Span
    from mind_mlir.trees import Form


def use(
    body: Body, function: Foreign, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> Use | None:
    """Return the use of a function of Python; None where it cannot be traced, which is reported."""
    arguments = tuple([plain(body, value, place) for value, place in zip(given, spans, strict=True)])
    if any(map(is_bad, arguments)):
        return None
    nested = tuple([_nested(value) for value in arguments])
    held, form = trees.flatten((nested, {}))
    tensors = [each.value for each in held]
    types = [tensor.type for tensor in tensors]
    try:
        instance = function.function.instance(body.file.unit, form, types)
    except MindError as error:
        body.file.extend(error.diagnostics, span)
        return None
    return Use(instance, tuple(tensors), arguments, _type(instance.form, iter(instance.results)))


def _nested(value: SurfaceValue) -> Any:
    if isinstance(value, StructValue):
        return {name: _nested(part) for name, part in value.fields.items()}
    if isinstance(value, TupleValue):
        return tuple([_nested(item) for item in value.items])
    assert isinstance(value, Value), "literals are constants by now"
    return _Leaf(value)


class _Leaf:
    """A value as a leaf: it is no container of its fields."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _type(form: Form, results: Iterator[TensorType]) -> SurfaceType:
    """Return the type of what ``form`` puts together; a struct's fields are in the order of its leaves."""
    if form.container is None:
        return next(results)
    parts = [_type(part, results) for part in form.parts]
    return StructOf("", tuple(zip(form.keys, parts, strict=True))) if form.keys else TupleOf(tuple(parts))
