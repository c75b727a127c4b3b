"""Reword the findings of type rules and checks of Core IR in the words of a `.mind` program.

The records' rules word what is wrong with an operation: ``operand 0 has type tensor<f32[2]>``, ``use Slice``.
Whoever wrote ``a + b`` knows of no operand 0, but of what stands left and right of ``+``. The facts stay as
they are; only what the words of Core IR stand for is named as the surface language names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.ops import registry
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic

ARITHMETIC: Mapping[str, str] = MappingProxyType({"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"})
LOGICAL: Mapping[str, str] = MappingProxyType({"&&": "And", "||": "Or"})
#: Opcodes that are written as something else than the mnemonic of their record.
_SPELLED: Mapping[str, str] = MappingProxyType(
    {
        **{opcode: operator for operator, opcode in {**ARITHMETIC, **LOGICAL}.items()},
        "Not": "!",
        "Compare": "comparison",
        "Index": "indexing",
        "Slice": "slicing",
        "Cond": "if",
        "ArgSort": "argsort",
        "TopK": "topk",
        **dict.fromkeys(("ConstTensor", "ConstI64", "ConstF32", "ConstF64"), "literal"),
    }
)
#: What the names of files of the surface language end with.
SUFFIX = ".mind"
#: A type; an operand by its number; an attribute of an operation; an operation with the number of its value;
#: a word that may be an opcode; the dtype of truth values; the names of the sides of an operator.
_IR_WORDS = re.compile(
    r"tensor<(?P<dtype>\w+)(?P<shape>\[[^\]]*\])>"
    r"|\boperand (?P<operand>\d+)\b"
    r"|\battribute '(?P<attribute>\w+)'"
    r"|\b(?P<labelled>[A-Z]\w+) %\w+"
    r"|\b(?P<opcode>[A-Z]\w+)\b"
    r"|\b(?P<truth>i1)\b"
    r"|\b(?P<side>lhs|rhs)\b"
    r"|\bno attributes\b"
)
_SIDES: Mapping[str, str] = MappingProxyType({"lhs": "left operand", "rhs": "right operand"})


@dataclass(frozen=True, slots=True)
class SurfaceSpelling:
    """The spelling of an operation in a program.

    Attributes:
        opcode: The operation.
        name: What stands in the program: ``+``, ``matmul``.
        operands: What messages call its operands, in order: ``the left side``, or names of parameters.
        arguments: Names of arguments by the attributes that they are given as, where these differ.
    """

    opcode: str
    name: str
    operands: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=FrozenDict)

    @classmethod
    def operator(cls, opcode: str, symbol: str, count: int = 2) -> SurfaceSpelling:
        """Return how an operator of ``count`` operands is written."""
        names = ("the left side", "the right side") if count == 2 else ("the operand",)
        return cls(opcode, symbol, names)


def reworded(findings: Iterable[Diagnostic], written: SurfaceSpelling | None = None) -> list[Diagnostic]:
    """Return ``findings`` of Core IR in the words of the surface language.

    Args:
        findings: What a type rule, or a check at run time, has reported.
        written: How the program writes the operation in question; by default as `spelling` says.
    """
    seen: set[object] = set()
    kept: list[Diagnostic] = []
    for finding in findings:
        same = finding.code == "E2005" and finding.context.get("found")
        if not same or same not in seen:  # operands of one wrong dtype are one mistake
            kept.append(_reworded(finding, written))
        seen.add(same)
    return kept


def as_written(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return ``findings`` of a run, reworded where they quote a file of the surface language."""
    return [
        reworded([finding])[0]
        if finding.location is not None and finding.location.source.name.endswith(SUFFIX)
        else finding
        for finding in findings
    ]


def spelling(opcode: str) -> str:
    """Return what a program writes for an operation, where nothing more is known."""
    record = registry.by_opcode().get(opcode)
    return _SPELLED.get(opcode) or (record.mnemonic if record else opcode.lower())


def _reworded(finding: Diagnostic, written: SurfaceSpelling | None) -> Diagnostic:
    def said(text: str) -> str:
        return _IR_WORDS.sub(lambda match: _word(match, written), text)

    return replace(
        finding,
        message=said(finding.message),
        notes=tuple([said(note) for note in finding.notes]),
        help=finding.help and said(finding.help),
        context={key: _fact(key, value, said) for key, value in finding.context.items()},
    )


def _fact(key: str, value: Any, said: Callable[[str], str]) -> Any:
    if not isinstance(value, str):
        return value
    return said(value).strip("'") if key in ("operation", "function") else said(value)


def _word(match: re.Match[str], written: SurfaceSpelling | None) -> str:
    """Return what the surface language says for a word of Core IR."""
    kind, text = match.lastgroup, match[0]
    if kind is None:
        return "no arguments"
    if match["dtype"] is not None:
        return _type("bool" if match["dtype"] == "i1" else match["dtype"], match["shape"])
    if kind == "operand":
        index = int(match["operand"])
        known = written is not None and index < len(written.operands)
        return written.operands[index] if written and known else f"argument {index + 1}"
    if kind == "attribute":
        name = match["attribute"]
        return f"argument '{written.arguments.get(name, name) if written else name}'"
    if kind == "truth":
        return "bool"
    if kind == "side":
        return _SIDES[text]
    opcode = match["labelled"] or text
    if opcode not in registry.by_opcode():
        return text
    name = written.name if written and written.opcode == opcode else spelling(opcode)
    return name if name.isidentifier() else f"'{name}'"


def _type(dtype: str, shape: str) -> str:
    return dtype if shape == "[]" else f"Tensor<{dtype}, {shape}>"
