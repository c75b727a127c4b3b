"""Writes modules as Core IR text: flat ones in the reference encoding, others in function form.

(core-ir-text.md, spellings 1 and 3.) Printing and reading back gives an equal module, and reading canonical
text and printing it gives the same bytes. A module that was read from text is printed with the names of that
text (``%x``) as long as reading them gives its ids again; otherwise, and in canonical form, values are
numbers. The arguments of exported functions keep their names always: as those of their values where that can
be, else beside them, as in ``%0 {name="a b"}: tensor<f32[]>``.

Some things have no spelling and come back changed: the sign and payload of a NaN; a literal whose dtype is
not the one its operation declares, and a function without blocks (which no verified module holds); and the
profile, which follows from the form (the structured form of a flat module has functions).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.call_graph import CALL
from mind_mlir.ir.attributes import AttributeValue, Padding, TensorLiteral
from mind_mlir.ir.elements import format_elements, format_float
from mind_mlir.ir.module import MODULE, Block, Branch, CoreOperation, Module, Parameter, Return, Yield
from mind_mlir.ir.types import DType, DTypeKind, ValueType
from mind_mlir.languages.core.readable_names import flat_names, function_names
from mind_mlir.ops import registry
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function, Target, Terminator, ValueId
    from mind_mlir.ops.opdef import OpDef

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'}
#: What a string never shows raw: quotes, controls, separators, surrogates, and invisible or reordering marks.
_ESCAPED = re.compile(
    '["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]'
)
_SYMBOL = re.compile(r"\w+(?:\.\w+)*\Z")
_WORD = re.compile(r"[^\W\d]\w*(?:\.\w+)*\Z")


@public
def print_module(module: Module) -> str:
    """Return the text of a module, with a line feed at its end.

    Raises:
        TypeError: ``module`` is no `Module`.
    """
    argument_checks.expect(module, Module, "module", MODULE)
    return "".join([f"{line}\n" for line, _ in module_lines(module)])


def module_lines(module: Module) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """Yield the lines of the text of a module, each with what stands there: nothing where that is none.

    Args:
        module: A module.
    """
    if not module.is_flat:
        for number, function in enumerate(module.functions):
            if number:
                yield "", ()
            yield from _function_lines(function)
        return
    body, returned = module.body, module.returned
    names = flat_names(body, returned)
    yield from _lines([(0, operation) for operation in body.operations], names)
    outputs = ", ".join(f"%{names.get(value, value)}" for value in returned.operands)
    yield f"outputs: {outputs}" if outputs else "outputs:", (returned,)


def print_operation(operation: CoreOperation, names: Mapping[ValueId, str] | None = None) -> str:
    """Return the statement of one operation, with its regions, without a line feed at its end.

    Args:
        operation: The operation.
        names: What to call values; the others are numbers. By default what the operation's own text does.
    """
    if not operation.regions:
        return _statement(operation, names)
    return _text([(0, operation)], names)


def print_function(function: Function) -> str:
    """Return a function in function form, without a line feed at its end.

    That of a flat module shows the types of its outputs as those of its results.
    """
    return "\n".join([line for line, _ in _function_lines(function)])


def _function_lines(function: Function) -> Iterator[tuple[str, tuple[Part, ...]]]:
    blocks = function.blocks
    names = function_names(function) if blocks else {}
    head = "func" if function.public else "internal func"
    parameters = types = ""
    items: list[_Item] = []
    if blocks:
        parameters = ", ".join([_argument(parameter, names) for parameter in function.parameters])
        items = [(0, replace(blocks[0], parameters=())), *((0, block) for block in blocks[1:])]
        types = ", ".join(map(str, _result_types(function)))
    given = function.parameters if blocks else ()
    yield f"{head} @{_symbol(function.name)}({parameters}) -> ({types}) {{", given
    for parameter in given:
        if parameter.value_id in function.notes:
            yield f"// {_value(parameter.value_id, names)}: {function.notes[parameter.value_id]}", ()
    for line, parts in _lines(items, names):
        notes = [function.notes[each] for each in _defined(parts) if each in function.notes]
        yield (f"{line}  // {'; '.join(notes)}" if notes else line), parts
    yield "}", ()


def _defined(parts: Iterable[Part]) -> Iterator[ValueId]:
    """Yield the values that what stands in a line defines."""
    for part in parts:
        if isinstance(part, CoreOperation):
            yield from part.result_ids
        elif isinstance(part, Parameter):
            yield part.value_id


def _result_types(function: Function) -> Iterable[object]:
    if function.result_types is not None:
        return function.result_types
    types: dict[ValueId, ValueType] = {}
    for block in function.blocks:
        types |= {parameter.value_id: parameter.type for parameter in block.parameters}
        types |= {result.value_id: result.type for op in block.operations for result in op.results}
    return [types.get(value, "?") for value in function.blocks[-1].terminator.operands]


def print_block(block: Block) -> str:
    """Return a block in function form, without a line feed at its end."""
    return _text([(0, block)], None)


def print_terminator(terminator: Terminator, names: Mapping[ValueId, str] | None = None) -> str:
    """Return the statement of a terminator; for ``names`` see `print_operation`."""
    if isinstance(terminator, (Return, Yield)):
        word = "return" if isinstance(terminator, Return) else "yield"
        return f"{word} {_values(terminator.operands, _or(names, terminator.names))}".rstrip()
    targets = ", ".join([_target(target, names) for target in terminator.targets])
    if isinstance(terminator, Branch):
        return f"br {targets}"
    known = _or(names, terminator.then.names)
    return f"cond_br {_value(terminator.condition, known)}, {targets}"


#: What stands in a line.
Part: TypeAlias = "CoreOperation | Parameter | Terminator"
_Item: TypeAlias = "tuple[int, Block | CoreOperation | Terminator | str]"


def _text(items: Iterable[_Item], names: Mapping[ValueId, str] | None) -> str:
    return "\n".join([line for line, _ in _lines(items, names)])


def _lines(
    items: Iterable[_Item], names: Mapping[ValueId, str] | None
) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """Yield the lines of parts of a function, each indented by so many spaces; regions may nest deeply."""
    rest = [iter(items)]
    while rest:
        item = next(rest[-1], None)
        if item is None:
            rest.pop()
            continue
        indent, part = item
        margin = " " * indent
        if isinstance(part, str):
            yield margin + part, ()
        elif isinstance(part, Block):
            yield margin + _label(part, names), part.parameters
            rest.append(_inside(part, indent + 2))
        elif isinstance(part, CoreOperation):
            yield margin + _statement(part, names) + (" {" if part.regions else ""), (part,)
            if part.regions:
                rest.append(iter([*[(indent, region) for region in part.regions], (indent, "}")]))
        else:
            yield margin + print_terminator(part, names), (part,)


def _inside(block: Block, indent: int) -> Iterator[_Item]:
    yield from ((indent, operation) for operation in block.operations)
    yield indent, block.terminator


def _statement(operation: CoreOperation, names: Mapping[ValueId, str] | None) -> str:
    """Return what an operation says without its regions."""
    names = operation.names if names is None else names
    attributes, operands = operation.attributes, operation.operands
    callee = attributes.get("callee") if operation.opcode == CALL else None
    if isinstance(callee, str):
        attributes = {name: value for name, value in attributes.items() if name != "callee"}
        word = f"call @{_symbol(callee)} ({_values(operands, names)})"
    else:
        word = operation.opcode + (f" ({_values(operands, names)})" if operands else "")
    text = f"{_values(operation.result_ids, names)} = {word}"
    if attributes:
        record = registry.lookup(operation.opcode)
        listing = [
            f"{_name(name)}={_attribute(name, value, record)}" for name, value in sorted(attributes.items())
        ]
        text += f" {{{', '.join(listing)}}}"
    if not operation.others:
        return f"{text} : {operation.result_type}"
    return f"{text} : ({', '.join([str(result.type) for result in operation.results])})"


def _label(block: Block, names: Mapping[ValueId, str] | None) -> str:
    parameters = ", ".join([f"{_value(p.value_id, _or(names, p.names))}: {p.type}" for p in block.parameters])
    return f"^{_symbol(block.label)}({parameters}):" if parameters else f"^{_symbol(block.label)}:"


def _argument(parameter: Parameter, names: Mapping[ValueId, str]) -> str:
    value = _value(parameter.value_id, names)
    if parameter.name is not None and parameter.name != value[1:]:
        return f"{value} {{name={quote(parameter.name)}}}: {parameter.type}"
    return f"{value}: {parameter.type}"


def _target(target: Target, names: Mapping[ValueId, str] | None) -> str:
    arguments = _values(target.arguments, _or(names, target.names))
    return f"^{_symbol(target.label)}({arguments})" if arguments else f"^{_symbol(target.label)}"


def _values(values: Iterable[ValueId], names: Mapping[ValueId, str]) -> str:
    return ", ".join([f"%{names.get(value, value)}" for value in values])


def _value(value: ValueId, names: Mapping[ValueId, str]) -> str:
    return f"%{names.get(value, value)}"


def _or(names: Mapping[ValueId, str] | None, others: Mapping[ValueId, str]) -> Mapping[ValueId, str]:
    return others if names is None else names


def _symbol(name: str) -> str:
    """Return the name of a function or a block as the text spells it."""
    return name if _SYMBOL.match(name) else quote(name)


def quote(text: str) -> str:
    """Return ``text`` as a string literal of the Core IR text."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def format_value(value: AttributeValue) -> str:
    """Return an attribute value as the text spells it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return format_float(value)
        case str():
            return quote(value)
        case DType():
            return value.core_name
        case TensorLiteral():
            return format_literal(value)
        case Padding():
            return str(value)
        case tuple():
            return f"[{', '.join(map(format_value, value))}]"


def format_literal(literal: TensorLiteral) -> str:
    """Return a literal as nested lists of numbers; a complex number is a list of its two parts."""
    dtype = literal.type.dtype
    texts = format_elements(literal.array, dtype)
    shape = literal.array.shape
    if dtype.kind is DTypeKind.COMPLEX:
        shape = (*shape, 2)
    if 0 in shape:
        # Lists end at the first empty dimension: what follows it has no elements to show.
        shape = shape[: shape.index(0)]
        texts = ["[]"] * math.prod(shape)
    for extent in reversed(shape):
        texts = [f"[{', '.join(texts[i : i + extent])}]" for i in range(0, len(texts), extent)]
    return texts[0]


def _name(name: str) -> str:
    return name if _WORD.match(name) else quote(name)


def _attribute(name: str, value: AttributeValue, record: OpDef | None) -> str:
    schema = record.attribute(name) if record else None
    if schema is not None and schema.kind.bare and isinstance(value, str) and _WORD.match(value):
        return value
    return format_value(value)


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{{{ord(match[0]):x}}}"
