"""Writes flat modules as Core IR text, in the reference encoding (core-ir-text.md, spelling 1).

Printing and reading back gives an equal module, and reading canonical text and printing it gives the same
bytes. A module that was read from text is printed with the names of that text (``%x``) as long as reading
them gives its ids again; otherwise, and in canonical form, values are numbers. Two things have no spelling
and come back changed: the sign and payload of a NaN, and a literal whose dtype is not the one its operation
declares (which no verified module holds).

Functions and blocks are written in function form (spelling 3), for people to look at.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir import border
from mind_mlir.ir.attributes import Padding, TensorLiteral
from mind_mlir.ir.module import MODULE, Module
from mind_mlir.ir.numbers import format_elements, format_float
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops import registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import Block, CoreOperation, Function, Return, ValueId
    from mind_mlir.ir.types import ValueType
    from mind_mlir.ops.opdef import OpDef

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'}
#: What a string never shows raw: quotes, controls, separators, surrogates, and invisible or reordering marks.
_ESCAPED = re.compile(
    '["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]'
)
_WORD = re.compile(r"[^\W\d]\w*(?:\.\w+)*\Z")


def print_module(module: Module) -> str:
    """Return the text of a flat module, with a line feed at its end.

    Raises:
        TypeError: ``module`` is no `Module`.
        ValueError: It is not flat.
    """
    body, returned = border.expect(module, Module, "module", MODULE).body, module.returned
    names = _names(body, returned)
    lines = [print_operation(operation, names) for operation in body.operations]
    outputs = ", ".join(f"%{names.get(value, value)}" for value in returned.operands)
    lines.append(f"outputs: {outputs}" if outputs else "outputs:")
    return "\n".join(lines) + "\n"


def print_operation(operation: CoreOperation, names: Mapping[ValueId, str] | None = None) -> str:
    """Return the statement of one operation, without a line feed.

    Args:
        operation: The operation.
        names: What to call values; the others are numbers. By default what the operation's own text does.
    """
    names = operation.names if names is None else names
    text = f"%{names.get(operation.value_id, operation.value_id)} = {operation.opcode}"
    if operation.operands:
        text += f" ({', '.join([f'%{names.get(value, value)}' for value in operation.operands])})"
    if operation.attributes:
        record = registry.lookup(operation.opcode)
        attributes = [
            f"{_name(name)}={_attribute(name, value, record)}"
            for name, value in sorted(operation.attributes.items())
        ]
        text += f" {{{', '.join(attributes)}}}"
    return f"{text} : {operation.result_type}"


def print_function(function: Function) -> str:
    """Return a function in function form, without a line feed at its end."""
    blocks = function.blocks
    entry = blocks[0].parameters if blocks else ()
    types = {value: type_ for block in blocks for value, type_ in _types(block)}
    results = blocks[-1].terminator.operands if blocks else ()
    head = "func" if function.public else "internal func"
    parameters = ", ".join(map(str, entry))
    listing = ", ".join(str(types.get(value, "?")) for value in results)
    body = "\n".join(print_block(replace(b, parameters=()) if b is blocks[0] else b) for b in blocks)
    return f"{head} @{function.name}({parameters}) -> ({listing}) {{\n{body}\n}}"


def print_block(block: Block) -> str:
    """Return a block in function form, without a line feed at its end."""
    parameters = f"({', '.join(map(str, block.parameters))})" if block.parameters else ""
    statements = [*map(print_operation, block.operations), str(block.terminator)]
    return "\n".join([f"^{block.label}{parameters}:", *(f"  {statement}" for statement in statements)])


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


def _types(block: Block) -> Iterator[tuple[ValueId, ValueType]]:
    yield from ((parameter.value_id, parameter.type) for parameter in block.parameters)
    yield from ((operation.value_id, operation.result_type) for operation in block.operations)


def _names(block: Block, returned: Return) -> dict[ValueId, str]:
    """Return the names of a block's values, if reading them gives the values' ids again; else none.

    The reader numbers names from the greatest number of the text on, in the order in which it meets them.
    """
    names: dict[ValueId, str] = {}
    numbers: set[ValueId] = set()
    for operation in block.operations:
        _collect((operation.value_id, *operation.operands), operation.names, names, numbers)
    _collect(returned.operands, returned.names, names, numbers)
    if not names:
        return {}
    first = max(numbers, default=-1) + 1
    readable = (
        list(names) == list(range(first, first + len(names)))
        and len(set(names.values())) == len(names)
        and all(map(_WORD.match, names.values()))
    )
    return names if readable else {}


def _collect(
    values: Iterable[ValueId],
    table: Mapping[ValueId, str],
    names: dict[ValueId, str],
    numbers: set[ValueId],
) -> None:
    for value in values:
        if value in table:
            names.setdefault(value, table[value])
        else:
            numbers.add(value)


def _name(name: str) -> str:
    return name if _WORD.match(name) else quote(name)


def _attribute(name: str, value: AttributeValue, record: OpDef | None) -> str:
    schema = record.attribute(name) if record else None
    if schema is not None and schema.kind.bare and isinstance(value, str) and _WORD.match(value):
        return value
    return format_value(value)


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{{{ord(match[0]):x}}}"
