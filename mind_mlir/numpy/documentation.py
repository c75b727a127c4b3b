"""Docstrings of the functions, written from the operation records."""

from __future__ import annotations

import re
import textwrap

from mind_mlir.ops.opdef import AttributeDef, NotDifferentiable, OpDef, OperandDef

_WIDTH = 100


def docstring(record: OpDef) -> str:
    """Return the documentation of a function that is one operation."""
    lines = [*_arguments(record), *map(_attribute, record.attributes)]
    parts = [record.summary, _wrapped(record.description)]
    if lines:
        parts.append("\n".join(["Args:", *lines]))
    if len(record.results) > 1:
        parts.append(f"Returns:\n    A tuple: {', '.join(record.results)}.")
    if record.choices:
        parts.append("\n".join(["Notes:", *(_wrapped(f"- {choice}", 4, "  ") for choice in record.choices)]))
    return "\n\n".join([*parts, origin(record)]) + "\n"


def origin(record: OpDef) -> str:
    """Return which operation it is, whether gradients flow through it, and what defines it."""
    derivative = record.derivative
    gradient = "differentiable"
    if isinstance(derivative, NotDifferentiable):
        gradient = f"no gradient flows through it ({derivative.reason})"
    return _wrapped(f"Operation `{record.opcode}`; {gradient}. Specification: {record.spec}.")


def described(record: OpDef, text: str | None) -> str:
    """Return the docstring of a function that is written by hand, with what its operation is behind it."""
    return f"{(text or '').rstrip()}\n\n{_wrapped(record.description)}\n\n{origin(record)}\n"


def _arguments(record: OpDef) -> list[str]:
    return [
        _wrapped(f"{'*' * operand.variadic}{operand.name}: Of {_dtypes(operand)}.", 4, "    ")
        for operand in record.operands
    ]


def _dtypes(operand: OperandDef) -> str:
    return re.sub(r", (\w+)$", r" or \1", ", ".join(dtype.core_name for dtype in operand.dtypes))


def _attribute(attribute: AttributeDef) -> str:
    kind = " or ".join(attribute.choices) or attribute.kind.phrase
    return _wrapped(f"{attribute.name} ({kind}): {attribute.doc}.", 4, "    ")


def _wrapped(text: str, indent: int = 0, more: str = "") -> str:
    first = " " * indent
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=first + more,
        break_long_words=False,
        break_on_hyphens=False,
    )
