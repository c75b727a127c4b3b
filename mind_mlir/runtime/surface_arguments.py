"""Arguments of functions of the surface language: containers of Python as structs and tuples (surface.md).

A struct is given as a dict with its fields, or as an object of a named tuple or dataclass that has them, and
comes back as what came in for it, else as a dict. A tuple is given as a tuple or list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.diagnostics.display import brief
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.mind.elaboration.resolve import fits, shown
from mind_mlir.languages.mind.elaboration.types import DTYPES, StructOf, SurfaceType, TupleOf, spell
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support import pytrees
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.file import File
    from mind_mlir.support.pytrees import Form


@dataclass(slots=True)
class Arrangement:
    """The arrangement of the leaves of a call's arguments as the parameters of the function.

    Attributes:
        file: What declares the structs.
        order: The place among the leaves of each tensor, in the order in which the function takes them.
        dtypes: The dtype that each leaf is to have, by its place.
        forms: For each struct that came in, how it is put together.
    """

    file: File
    order: list[int] = field(default_factory=list)
    dtypes: dict[int, DType] = field(default_factory=dict)
    forms: dict[str, Form] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)

    def take(self, node: nodes.Type, form: Form, first: int, path: str) -> None:
        """Take the argument, or the part of it, called ``path``, whose leaves begin at ``first``."""
        node = self._plain(node)
        if isinstance(node, nodes.NamedType) and node.name.text in self.file.structs:
            self._struct(self.file.structs[node.name.text], form, first, path)
        elif isinstance(node, nodes.TupleType):
            self._tuple(node, form, first, path)
        elif form.container is not None:
            cls = form.container.cls
            found = "None" if cls is type(None) else f"a {brief(cls.__name__)}"
            hint = "make an array of it: np.array(x)" if cls in (list, tuple) else None
            self._wrong(path, f"is {found}, where a {shown(node)} is wanted", hint)
        else:
            name = node.dtype.text if isinstance(node, nodes.Tensor) else getattr(node, "name", None)
            dtype = DTYPES.get(name if isinstance(name, str) else name.text if name else "")
            if dtype is not None:
                self.dtypes[first] = dtype
            self.order.append(first)

    def _plain(self, node: nodes.Type) -> nodes.Type:
        while isinstance(node, nodes.NamedType) and node.name.text in self.file.aliases:
            node = self.file.aliases[node.name.text].type
        return node

    def _struct(self, struct: nodes.Struct, form: Form, first: int, path: str) -> None:
        name = struct.name.text
        declared = {each.name.text: each.type for each in struct.fields}
        if form.container is None or (not form.keys and form.parts):
            self._wrong(
                path, f"is no struct {name}", f"pass a dict, or an object, with {', '.join(declared)}"
            )
            return
        for key in form.keys:
            if key not in declared:
                self._wrong(f"{path}.{key}", f"is no field of {name}{did_you_mean(key, declared)}")
        self.forms.setdefault(name, form)
        parts = dict(zip(form.keys, zip(form.parts, form.slices(), strict=True), strict=True))
        for key, type_ in declared.items():
            if key not in parts:
                self._wrong(f"{path}.{key}", "is missing", code="E6101")
                continue
            part, place = parts[key]
            self.take(type_, part, first + place.start, f"{path}.{key}")

    def _tuple(self, node: nodes.TupleType, form: Form, first: int, path: str) -> None:
        if form.container is None or len(form.parts) != len(node.items):
            self._wrong(path, f"is no tuple of {len(node.items)}")
            return
        for index, (item, part, place) in enumerate(zip(node.items, form.parts, form.slices(), strict=True)):
            self.take(item, part, first + place.start, f"{path}.{index}")

    def _wrong(self, path: str, what: str, help_: str | None = None, code: str = "E6105") -> None:
        self.findings.append(
            Diagnostic(code, f"argument '{path}' {what}", help=help_, context={"input": path})
        )


def arranged(file: File, function: nodes.Function, form: Form) -> Arrangement:
    """Return how arguments of a form make up the parameters of ``function``.

    Raises:
        ArgumentError: E6101, E6105, a container is not what the parameter declares.
    """
    found = Arrangement(file)
    positional, _ = form.parts
    for parameter, part, place in zip(
        function.parameters, positional.parts, positional.slices(), strict=True
    ):
        assert parameter.type is not None, "the reader reports parameters without types"
        found.take(parameter.type, part, place.start, parameter.name.text)
    if found.findings:
        raise ArgumentError(found.findings)
    return found


def bound_types(
    file: File, function: nodes.Function, types: Sequence[TensorType], extents: Mapping[str, int]
) -> tuple[list[SurfaceType], dict[str, int]]:
    """Return the types of the parameters for tensors of ``types``, and what dimensions are.

    Raises:
        ArgumentError: E6103, E6104, E6107, a tensor is not what the parameter declares.
    """
    tensors = iter(types)
    bound = dict(extents)
    found: list[SurfaceType] = []
    findings: list[Diagnostic] = []
    for parameter in function.parameters:
        assert parameter.type is not None, "the reader reports parameters without types"
        found.append(_typed(file, parameter.type, tensors, bound, parameter.name.text, findings))
    if findings:
        raise ArgumentError(findings)
    return found, bound


def _typed(
    file: File,
    node: nodes.Type,
    tensors: object,
    extents: dict[str, int],
    path: str,
    findings: list[Diagnostic],
) -> SurfaceType:
    if isinstance(node, nodes.NamedType) and node.name.text in file.aliases:
        return _typed(file, file.aliases[node.name.text].type, tensors, extents, path, findings)
    if isinstance(node, nodes.NamedType) and node.name.text in file.structs:
        fields = [
            (each.name.text, _typed(file, each.type, tensors, extents, f"{path}.{each.name.text}", findings))
            for each in file.structs[node.name.text].fields
        ]
        return StructOf(node.name.text, tuple(fields))
    if isinstance(node, nodes.TupleType):
        items = [
            _typed(file, item, tensors, extents, f"{path}.{index}", findings)
            for index, item in enumerate(node.items)
        ]
        return TupleOf(tuple(items))
    found: TensorType = next(tensors)  # type: ignore[call-overload]  # an iterator of types
    found = TensorType(found.dtype, found.shape)
    before = dict(extents)
    if not fits(file, node, found, extents):
        findings.append(_mismatch(node, found, before, path))
    return found


def _mismatch(node: nodes.Type, found: TensorType, extents: Mapping[str, int], path: str) -> Diagnostic:
    wanted = shown(node)
    dtype = node.dtype.text if isinstance(node, nodes.Tensor) else wanted
    code = "E6104" if DTYPES.get(dtype) is found.dtype else "E6103"
    named = (
        [each.text for each in node.dimensions if isinstance(each, nodes.Ident)]
        if isinstance(node, nodes.Tensor)
        else []
    )
    known = [f"{name} is {extents[name]}" for name in dict.fromkeys(named) if name in extents]
    if code == "E6104" and known and isinstance(node, nodes.Tensor) and len(node.dimensions) == found.rank:
        code = "E6107"
    return Diagnostic(
        code,
        f"argument '{path}' is a {spell(found)}, where a {wanted} is wanted",
        notes=(", ".join(known),) if known else (),
        help=f"convert it: x.astype('{DTYPES[dtype].numpy_name}')"
        if code == "E6103" and dtype in DTYPES
        else None,
        context={"input": path, "expected": wanted, "found": spell(found)},
    )


def result_form(type_: SurfaceType, forms: Mapping[str, Form]) -> tuple[Form, list[int]]:
    """Return how results of ``type_`` are put together, and the place of each leaf among the tensors."""
    count = 0

    def template(part: SurfaceType) -> object:
        nonlocal count
        if isinstance(part, TensorType):
            count += 1
            return _Place(count - 1)
        if isinstance(part, TupleOf):
            return tuple([template(item) for item in part.items])
        values = {name: template(inner) for name, inner in part.fields}
        form = forms.get(part.name)
        if form is None or form.container is None or form.container.cls is dict:
            return values
        shape = pytrees.Form(
            form.container, form.keys, tuple([pytrees.LEAF for _ in form.keys]), form.fixed, form.order
        )
        return shape.unflatten([values[key] for key in form.keys])

    leaves, form = pytrees.flatten(template(type_), "the result")
    return form, [leaf.number for leaf in leaves]


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    number: int

    __array__ = None  # a leaf of a tree, not a container of fields
