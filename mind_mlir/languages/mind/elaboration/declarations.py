"""Read the top-level declarations of a file: structs, type names, constants, functions and imports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.mind.elaboration.body import Body
from mind_mlir.languages.mind.elaboration.builtins import modules
from mind_mlir.languages.mind.elaboration.control import declared as declared_type
from mind_mlir.languages.mind.elaboration.file import File
from mind_mlir.languages.mind.elaboration.literals import settled
from mind_mlir.languages.mind.elaboration.resolve import check_type, distinct, hint
from mind_mlir.languages.mind.elaboration.static import UNKNOWN, known
from mind_mlir.languages.mind.elaboration.types import DTYPES, MAX_LEAVES, MAX_LEVELS, TOO_LARGE, too_large
from mind_mlir.languages.mind.elaboration.values import Bad, LiteralValue, is_bad
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText


def declared(source: SourceText, tree: nodes.SourceFile, foreign: Mapping[str, Any]) -> File:
    """Return the file that ``tree`` is, with its declarations and what is wrong with them."""
    file = File(source, foreign=foreign)
    taken: dict[str, nodes.Ident] = {}
    for item in tree.items:
        if isinstance(item, nodes.Import):
            _import(file, item)
            continue
        name = item.pattern if isinstance(item, nodes.Let) else item.name
        if not isinstance(name, nodes.Ident):
            file.report("E2205", "a constant has one name", item.span, help="write one let for each")
            continue
        if name.text in taken:
            _twice(file, name, taken[name.text])
            continue
        taken[name.text] = name
        if name.text in (*DTYPES, "unit", "Tensor"):
            message = f"{name.text} is a type of the language"
            file.report("E2201", message, name.span, help="choose another name")
        _add(file, name.text, item)
    _check(file)
    return file


def _add(file: File, name: str, item: nodes.Item) -> None:
    if isinstance(item, nodes.Struct):
        file.structs[name] = item
    elif isinstance(item, nodes.Alias):
        file.aliases[name] = item
    elif isinstance(item, nodes.Function):
        file.functions[name] = item
    elif isinstance(item, nodes.Let):
        _constant(file, name, item)


def _constant(file: File, name: str, item: nodes.Let) -> None:
    """Add a constant, which is a literal: what is known before anything runs."""
    body = Body(file, file.unit.builder())
    check_type(file, item.type)
    wanted = hint(file, item.type, {})
    data = known(body, item.value)
    value = body.expression(item.value, wanted)
    file.wrong_constants.add(name)
    if isinstance(value, Bad):
        return
    if data is UNKNOWN:
        help_ = "a constant of a file is written out; compute others within a function"
        file.report("E2205", f"{name} is no literal", item.value.span, help=help_, name=name)
        return
    if not isinstance(value, LiteralValue):  # a sum of integers
        value = LiteralValue(data, "int")
    if item.type is not None:
        settled_ = settled(body, value, item.value.span, wanted)
        if is_bad(declared_type(body, settled_, item.type, item.value.span)):
            return
        value = settled_
    if isinstance(value, LiteralValue):
        file.constants[name] = replace(value, value=None)
        file.wrong_constants.discard(name)


def _twice(file: File, name: nodes.Ident, first: nodes.Ident) -> None:
    where = file.locate(first.span)
    notes = (f"declared before in line {where.line}",) if where else ()
    message, help_ = f"{name.text} is declared twice", "give one of them another name"
    file.report("E2201", message, name.span, notes=notes, help=help_, name=name.text)


def _import(file: File, item: nodes.Import) -> None:
    module, *names = item.path
    known = modules().get(module.text)
    if known is None:
        help_ = f"the modules are {', '.join(modules())}"
        file.unknown("E2002", f"there is no module {module.text}", module, modules(), help_)
    elif names and (len(names) > 1 or names[0].text not in known):
        wrong = names[0] if names[0].text not in known else names[1]
        said = f"module {module.text} has no {wrong.text}"
        file.unknown("E2002", said, wrong, known, "leave the import out for a function of this file")


def _check(file: File) -> None:
    """Report what is wrong with declarations, and drop types that contain themselves."""
    _drop_cycles(file)
    _drop_large(file)
    for struct in file.structs.values():
        distinct(file, [each.name for each in struct.fields], f"a field of {struct.name.text}")
        for each in struct.fields:
            check_type(file, each.type)
    for alias in file.aliases.values():
        check_type(file, alias.type)
    for function in file.functions.values():
        check_function(file, function)


def check_function(file: File, function: nodes.Function) -> None:
    """Report what is wrong with the head of a function."""
    distinct(file, [each.name for each in function.parameters], f"a parameter of {function.name.text}")
    for parameter in function.parameters:
        check_type(file, parameter.type)
    check_type(file, function.result)


def _drop_cycles(file: File) -> None:
    """Report types that contain themselves, and let them be unknown without another word."""
    state: dict[str, bool] = {}  # whether all below a name has been looked at
    for root in [*file.structs, *file.aliases]:
        stack = [(root, iter(_mentioned(file, root)))] if root not in state else []
        state.setdefault(root, False)
        while stack:
            name, below = stack[-1]
            found = next(below, None)
            if found is None:
                state[name] = True
                stack.pop()
            elif found.text not in state:
                state[found.text] = False
                stack.append((found.text, iter(_mentioned(file, found.text))))
            elif not state[found.text]:
                message = f"{found.text} contains itself"
                help_ = "a value has a size that is known: use a tensor with one dimension more"
                file.report("E2207", message, found.span, help=help_, name=found.text)
                _invalidate(file, name, found)


def _drop_large(file: File) -> None:
    """Report types that hold more values, or nest deeper, than anybody means; let them be unknown then."""
    sizes: dict[str, tuple[int, int] | None] = {}  # None of what is, or is made of, one that is reported
    for root in [*file.structs, *file.aliases]:
        stack = [root]
        while stack:
            name = stack[-1]
            below = _mentioned(file, name)
            waiting = [each.text for each in below if each.text not in sizes]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            if name not in sizes:
                sizes[name] = _size(file, name, [sizes[each.text] for each in below])


def _size(file: File, name: str, parts: list[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Return how many values a type holds, and how many levels it has; None where that is too much."""
    held = [part for part in parts if part is not None]
    if len(held) == len(parts):
        count = _direct(file, name) + sum(part[0] for part in held)
        levels = 1 + max((part[1] for part in held), default=0)
        if count <= MAX_LEAVES and levels <= MAX_LEVELS:
            return count, levels
        span = (file.structs.get(name) or file.aliases[name]).name.span
        file.report("E7001", too_large(name, count), span, help=TOO_LARGE, name=name)
    _invalidate(file, name)
    return None


def _direct(file: File, name: str) -> int:
    """Return how many fields or items a type has, those of other named types apart."""
    count, stack = 0, _types(file, name)
    while stack:
        found = stack.pop()
        count += 1
        if isinstance(found, nodes.TupleType):
            stack.extend(found.items)
    return count


def _types(file: File, name: str) -> list[nodes.Type]:
    """Return the types that the declaration of a struct or an alias is made of."""
    if name in file.structs:
        return [each.type for each in file.structs[name].fields]
    return [file.aliases[name].type]


def _mentioned(file: File, name: str) -> list[nodes.Ident]:
    """Return the names of structs and aliases that the declaration of ``name`` mentions."""
    named = [each.name for type_ in _types(file, name) for each in _named(type_)]
    return [each for each in named if each.text in file.structs or each.text in file.aliases]


def _named(type_: nodes.Type) -> Iterator[nodes.NamedType]:
    stack = [type_]
    while stack:
        found = stack.pop()
        if isinstance(found, nodes.NamedType):
            yield found
        elif isinstance(found, nodes.TupleType):
            stack.extend(reversed(found.items))


def _invalidate(file: File, name: str, wrong: nodes.Ident | None = None) -> None:
    """Let the types in the declaration of ``name`` that mention ``wrong``, or all of them, be unknown."""

    def replaced(type_: nodes.Type) -> nodes.Type:
        is_wrong = wrong is None or any(each.name is wrong for each in _named(type_))
        return nodes.Invalid(type_.span) if is_wrong else type_

    if name in file.structs:
        old = file.structs[name]
        fields = [nodes.FieldType(each.name, replaced(each.type)) for each in old.fields]
        file.structs[name] = nodes.Struct(old.name, fields, old.exported, old.span)
    else:
        alias = file.aliases[name]
        file.aliases[name] = nodes.Alias(alias.name, replaced(alias.type), alias.exported, alias.span)
