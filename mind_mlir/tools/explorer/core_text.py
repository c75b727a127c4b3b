"""Forms of Core IR as lines with marks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import Attributes, TensorLiteral
from mind_mlir.ir.module import CoreOperation, Functions
from mind_mlir.languages.core.printer import module_lines

if TYPE_CHECKING:
    from mind_mlir.ir.module import Block, Function, Module
    from mind_mlir.ir.numbered import NumberedText

#: Literals of more elements are left out.
_LARGE = 64
_LEFT_OUT = "..."


def core_lines(module: Module, text: NumberedText) -> tuple[list[str], list[frozenset[int]]]:
    """Return the text of a module whose operations are located in ``text``, and what each line is for."""
    lines: list[str] = []
    marks: list[frozenset[int]] = []
    shown = replace(module, functions=Functions(map(_function, module.functions)))
    for line, parts in module_lines(shown):
        lines.append(line)
        marks.append(frozenset().union(*(text.numbers(part.location) for part in parts)))
    return lines, marks


def _function(function: Function) -> Function:
    return replace(function, blocks=tuple(map(_block, function.blocks)))


def _block(block: Block) -> Block:
    return replace(block, operations=tuple(map(_operation, block.operations)))


def _operation(operation: CoreOperation) -> CoreOperation:
    """Return an operation without the elements of what is large."""
    values = operation.attributes.values()
    is_large = any(isinstance(each, TensorLiteral) and each.type.element_count > _LARGE for each in values)
    if not is_large and not operation.regions:
        return operation
    attributes = {
        name: _LEFT_OUT if isinstance(each, TensorLiteral) and each.type.element_count > _LARGE else each
        for name, each in operation.attributes.items()
    }
    return replace(
        operation, attributes=Attributes.of(attributes), regions=tuple(map(_block, operation.regions))
    )
