"""Whole programs: modules of their functions (surface.md, "Lowering")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mind_mlir.diagnostics import Diagnostic, SourceText, VerificationError
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.ir.result_names import result_names
from mind_mlir.ir.types import SymbolicDim, TensorType
from mind_mlir.languages.mind.elaboration.body import Body
from mind_mlir.languages.mind.elaboration.declarations import declared
from mind_mlir.languages.mind.elaboration.literals import placeholder
from mind_mlir.languages.mind.elaboration.resolve import dimension_names, resolved
from mind_mlir.languages.mind.elaboration.routines import Postponed, instance_of
from mind_mlir.languages.mind.elaboration.scopes import names_in
from mind_mlir.languages.mind.elaboration.types import SurfaceType, TupleOf
from mind_mlir.languages.mind.elaboration.types import leaves as type_leaves
from mind_mlir.languages.mind.elaboration.values import BAD, Routine, key
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module
    from mind_mlir.languages.mind.elaboration.file import File
    from mind_mlir.languages.staging import Instance

_T = TypeVar("_T")


class Elaborable(Protocol):
    """The interface of a program that can be elaborated."""

    @property
    def source(self) -> SourceText:
        """Return its text."""

    @property
    def tree(self) -> nodes.SourceFile:
        """Return its syntax tree."""

    @property
    def foreign(self) -> Mapping[str, Any]:
        """Return the functions of Python that it may call, by name."""

    @property
    def findings(self) -> Sequence[Diagnostic]:
        """Return what its syntax tree lacks: findings of the reader."""


def entries(tree: nodes.SourceFile) -> list[str]:
    """Return the functions that a module of the whole program exports.

    Those that are marked `export`; where none is, ``main``; where there is no ``main``, those that no other
    function of the file mentions.
    """
    functions = [item for item in tree.items if isinstance(item, nodes.Function)]
    exported = [item.name.text for item in functions if item.exported]
    if exported:
        return list(dict.fromkeys(exported))
    names = list(dict.fromkeys(item.name.text for item in functions))
    if "main" in names:
        return ["main"]
    mentioned = {name for item in functions for name in names_in(item.body) if name != item.name.text}
    return [name for name in names if name not in mentioned] or names


def lower(
    program: Elaborable, functions: Sequence[str] | None = None, bindings: Mapping[str, int] = FrozenDict()
) -> Module:
    """Return the module of some functions, or of all `entries` of a program.

    One function without branches and loops becomes a flat Core v1 module, calls included; else the module
    has functions, and what the exported ones call is internal. Inputs are called after the parameters: ``x``,
    and ``params.w`` for a field.

    Args:
        program: A program without findings of its reader.
        functions: The functions.
        bindings: Extents of named dimensions.

    Raises:
        VerificationError: Everything that is wrong with these functions and with what they call; E2002, there
            is no such function; E4303, a dimension of its parameters is not bound.
    """
    file = declared(program.source, program.tree, program.foreign)
    names = entries(program.tree) if functions is None else list(dict.fromkeys(functions))
    exports: list[tuple[Instance, Sequence[str], str]] = []
    for name in names:
        node = function_of(file, name)
        types = parameter_types(file, node, bindings)
        made = instantiate(file, name, types, bindings)
        if made is not None and not made.results:
            _no_result(file, node)
        elif made is not None:
            labels = [
                label
                for parameter, type_ in zip(node.parameters, types, strict=True)
                for label, _ in type_leaves(type_, parameter.name.text)
            ]
            exports.append((named_results(node, made), labels, name))
    _raise(file)
    if not exports:
        help_ = "write one: fn main(...) -> ... { ... }"
        raise VerificationError(Diagnostic("E4119", "the program has no function", help=help_))
    return file.unit.exported(exports)


def named_results(node: nodes.Function, made: Instance) -> Instance:
    """Return an instance of a function with names of its results: of structs, and of variables it ends in."""
    value, returned = node.body.value, made.form
    listed = isinstance(returned, TupleOf)
    written = value.items if listed and isinstance(value, nodes.Tuple) else [] if listed else [value]
    items = []
    for place, part in enumerate(returned.items if listed else [returned]):
        variable = written[place] if place < len(written) else None
        own = variable.text if isinstance(variable, nodes.Name) else ""
        if not isinstance(part, TensorType):
            own = getattr(part, "name", "")
        items.append((own, partial(_leaf_names, part)))
    return replace(made, result_names=result_names(items))


def _leaf_names(type_: SurfaceType, prefix: str) -> list[str]:
    return [name for name, _ in type_leaves(type_, prefix)]


def _no_result(file: File, node: nodes.Function) -> None:
    message = f"{node.name.text} returns nothing, so that there is nothing to compute"
    help_ = "say what it returns: fn f(x: f32) -> f32 { ... }"
    file.report("E4122", message, node.name.span, help=help_, operation=node.name.text)


def dimensions(program: Elaborable) -> list[str]:
    """Return the names of dimensions in the parameters of a program's functions, in source order."""
    file = declared(program.source, program.tree, program.foreign)
    return dimensions_of(file, [each for node in file.functions.values() for each in node.parameters])


def dimensions_of(file: File, parameters: Sequence[nodes.Parameter]) -> list[str]:
    """Return the names of dimensions in the types of parameters, in source order."""
    return list(dict.fromkeys(name for each in parameters for name in dimension_names(file, each.type)))


def open_types(program: Elaborable, function: str | None = None) -> dict[str, TensorType]:
    """Return the tensors that a function takes, by name, with symbols for dimensions.

    By default, it is the only function that a module of the program exports; of several, nothing.

    Raises:
        VerificationError: E2002, there is no such function.
    """
    file = declared(program.source, program.tree, program.foreign)
    names = entries(program.tree) if function is None else [function]
    if len(names) != 1:
        return {}
    found: dict[str, TensorType] = {}
    symbols: Any = {name: SymbolicDim(name) for name in dimensions(program)}
    for parameter in function_of(file, names[0]).parameters:
        type_ = resolved(file, parameter.type, symbols) if parameter.type is not None else None
        if type_ is not None:
            found |= dict(type_leaves(type_, parameter.name.text))
    return found


def _raise(file: File) -> None:
    if file.findings:
        findings = Findings()
        findings.extend(file.findings)
        raise VerificationError(findings.in_source_order())


def function_of(file: File, name: str) -> nodes.Function:
    """Return the function called ``name``.

    Raises:
        VerificationError: E2002, there is none.
    """
    if name in file.functions:
        return file.functions[name]
    message = f"there is no function {name}{did_you_mean(name, file.functions)}"
    help_ = f"the functions are {', '.join(file.functions)}" if file.functions else None
    raise VerificationError(Diagnostic("E2002", message, help=help_, context=FrozenDict({"name": name})))


def parameter_types(
    file: File, node: nodes.Function, bindings: Mapping[str, int] = FrozenDict()
) -> list[SurfaceType]:
    """Return the types of the parameters of ``node``, whose dimensions are bound.

    Raises:
        VerificationError: E4303, a dimension is not bound; or a type is not well-formed.
    """
    open_ = next((name for name in dimensions_of(file, node.parameters) if name not in bindings), None)
    if open_ is not None:
        message = f"dimension {open_} of {node.name.text} is not bound"
        help_ = f"say what it is: --bind {open_}=4, or bindings={{{open_!r}: 4}}"
        facts, where = FrozenDict({"symbol": open_}), file.locate(node.name.span)
        raise VerificationError(Diagnostic("E4303", message, where, help=help_, context=facts))
    types = types_of(file, node, bindings)
    known = [type_ for type_ in types if type_ is not None]
    if len(known) == len(types):
        return known
    _raise(file)
    message = f"a parameter of {node.name.text} has no type"
    help_ = "write the type of every parameter: x: Tensor<f32, [2]>"
    raise VerificationError(Diagnostic("E2003", message, file.locate(node.name.span), help=help_))


def types_of(file: File, node: nodes.Function, extents: Mapping[str, int]) -> list[SurfaceType | None]:
    """Return the types of the parameters of ``node`` for some extents; None of one that has been reported."""
    return [
        resolved(file, parameter.type, extents) if parameter.type is not None else None
        for parameter in node.parameters
    ]


def instantiate(
    file: File, name: str, types: Sequence[SurfaceType | None], extents: Mapping[str, int]
) -> Instance | None:
    """Return the instance of a function of the file for arguments of ``types``; None where it is wrong.

    An argument without a type is one that has been reported.
    """
    node = file.functions[name]
    function = Routine(node)
    maker = Body(file, file.unit.builder())
    arguments = [BAD if type_ is None else placeholder(maker, type_) for type_ in types]
    identity = (key(function), tuple(map(key, arguments)))
    bound = dict(extents)
    return completed(
        file, identity, lambda: instance_of(file, identity, function, arguments, bound, node.name.span)
    )


def completed(file: File, name: object, make: Callable[[], _T]) -> _T:
    """Return what ``make`` makes, after whatever it needs that lies too deep to be made on the way."""
    waiting: list[tuple[Any, Callable[[], Any]]] = [(name, make)]
    while True:
        file.depth = file.nesting = 0
        file.notes = ()
        file.pending = [each for each, _ in waiting]
        try:
            found: Any = waiting[-1][1]()
        except Postponed as postponed:
            waiting.append((postponed.name, postponed.make))
            continue
        waiting.pop()
        if not waiting:
            result: _T = found
            return result
