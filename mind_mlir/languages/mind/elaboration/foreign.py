"""Calls of functions of Python: they are traced for the arguments of the call.

A struct arrives there as a dictionary, a tuple as a tuple. What comes back with names, a dictionary or an
object of a named tuple or dataclass, is a struct of the program with these fields: that of the class's name,
else one that was among the arguments, else the first that is declared. Where there is none, it is a struct
without a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import MindError
from mind_mlir.ir.value import Value
from mind_mlir.languages.mind.elaboration.literals import plain
from mind_mlir.languages.mind.elaboration.resolve import fits
from mind_mlir.languages.mind.elaboration.routines import InstanceUse
from mind_mlir.languages.mind.elaboration.types import StructOf, SurfaceType, TupleOf, parts
from mind_mlir.languages.mind.elaboration.values import StructValue, SurfaceValue, TupleValue, is_bad, type_of
from mind_mlir.support import pytrees
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function
    from mind_mlir.ir.types import TensorType
    from mind_mlir.languages.mind.elaboration.body import Body
    from mind_mlir.languages.mind.elaboration.file import File
    from mind_mlir.languages.mind.elaboration.values import Foreign
    from mind_mlir.languages.mind.syntax.nodes import Span
    from mind_mlir.languages.staging import Instance, Unit
    from mind_mlir.support.pytrees import Form


def use(
    body: Body, function: Foreign, given: Sequence[SurfaceValue], spans: Sequence[Span], span: Span
) -> InstanceUse | None:
    """Return the use of a function of Python; None where it cannot be traced, which is reported."""
    arguments = tuple([plain(body, value, place) for value, place in zip(given, spans, strict=True)])
    if any(map(is_bad, arguments)):
        return None
    nested = tuple([_nested(value) for value in arguments])
    try:
        function.function.__signature__.bind(*nested)
    except TypeError as error:
        message = f"{function.name} of Python cannot be called so: {error}"
        help_ = "give it what its definition takes, by position"
        body.report("E2007", message, span, help=help_, function=function.name)
        return None
    held, form = pytrees.flatten((nested, {}))
    tensors = [each.value for each in held]
    types = [tensor.type for tensor in tensors]
    try:
        instance = function.function.instance(body.file.unit, form, types)
    except MindError as error:
        body.file.extend(error.diagnostics, span)
        return None
    given_structs = [name for value in arguments for name in _structs(type_of(value))]
    naming = _Naming(body.file, tuple(dict.fromkeys((*given_structs, *body.file.structs))))
    type_, places = naming.of(instance.form, enumerate(instance.results))
    made = _arranged(body.file.unit, instance, tuple(places))
    return InstanceUse(replace(made, form=type_), tuple(tensors), arguments, type_)


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


def _structs(type_: SurfaceType | None) -> Iterator[str]:
    """Yield the names of the structs that a type is made of."""
    if isinstance(type_, StructOf):
        yield type_.name
    for _, part in parts(type_) if type_ is not None else ():
        yield from _structs(part)


@dataclass(frozen=True, slots=True)
class _Naming:
    """A search for the surface types of results of Python functions: tuples, or structs by their fields.

    Attributes:
        file: What declares the structs.
        names: Those that may be meant, the likeliest first.
    """

    file: File
    names: tuple[str, ...]

    def of(self, form: Form, results: Iterator[tuple[int, TensorType]]) -> tuple[SurfaceType, list[int]]:
        """Return the type of what ``form`` puts together, and the places of its tensors among ``results``."""
        if form.container is None:
            place, type_ = next(results)
            return type_, [place]
        found = [self.of(part, results) for part in form.parts]
        if not form.keys:
            return TupleOf(tuple([type_ for type_, _ in found])), [at for _, places in found for at in places]
        fields = dict(zip(form.keys, found, strict=True))
        name, order = self._struct(form, {key: type_ for key, (type_, _) in fields.items()})
        struct = StructOf(name, tuple([(key, fields[key][0]) for key in order]))
        return struct, [at for key in order for at in fields[key][1]]

    def _struct(self, form: Form, fields: Mapping[str, SurfaceType]) -> tuple[str, Sequence[str]]:
        """Return the struct with these fields, and their order in it."""
        class_name = getattr(getattr(form.container, "cls", None), "__name__", "")
        for name in (class_name, *self.names):
            struct = self.file.structs.get(name)
            declared = {each.name.text: each.type for each in struct.fields} if struct else {}
            extents: dict[str, int] = {}
            if declared.keys() == fields.keys() and all(
                fits(self.file, type_, fields[key], extents) for key, type_ in declared.items()
            ):
                return name, list(declared)
        return "", list(fields)


def _arranged(unit: Unit, instance: Instance, places: tuple[int, ...]) -> Instance:
    """Return ``instance`` with its results in the order of ``places``."""
    if places == tuple(range(len(places))):
        return instance

    def build(name: str) -> Function:
        builder = unit.builder()
        results = unit.call(builder, instance, [builder.parameter(type_) for type_ in instance.parameters])
        return builder.function(name, [results[place] for place in places], public=False)

    return unit.instance(("arranged", instance.name, places), lambda: unit.define(instance.name, build))
