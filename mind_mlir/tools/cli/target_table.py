"""Describe conversion targets and the operations and dtypes that they take, as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mind_mlir.conversion.legality import FORM_OPERATIONS
from mind_mlir.conversion.target import FORMS
from mind_mlir.ir.types import MAX_RANK, DType
from mind_mlir.ops.dtype_support import YES, support
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from mind_mlir.conversion import ConversionTarget
    from mind_mlir.ops.opdef import OpDef

_WIDTH = 100
_INDENT = 14


def target_table(targets: Iterable[ConversionTarget]) -> str:
    """Return a paragraph about each target: what it is, and what it takes."""
    return "\n".join(_paragraph(target) for target in targets)


def operation_table(target: ConversionTarget) -> str:
    """Return a line for each operation: the dtypes of its data that a target takes, or why it takes none."""
    rows = [(record.opcode, _taken_of(target, record)) for record in _operations()]
    width = max(len(opcode) for opcode, _ in rows)
    return "".join(f"{opcode.ljust(width)}  {taken}\n" for opcode, taken in rows)


def _paragraph(target: ConversionTarget) -> str:
    table, records = target.legality, _operations()
    left_out = [record.opcode for record in records if not taken_dtypes(target, record)]
    operations = f"all {len(records)}"
    if left_out:
        operations = f"{len(records) - len(left_out)} of {len(records)}, without {', '.join(left_out)}"
    refused = [words for form, words in FORMS.items() if not getattr(table, form)]
    if table.max_rank < MAX_RANK:
        refused.append(f"more than {table.max_rank} dimensions")
    facts = {
        "operations": operations,
        "dtypes": _dtypes(table.dtypes, tuple(DType)),
        "not taken": ", ".join(refused) or "nothing",
    }
    lines = [_fact(name, words) for name, words in facts.items()]
    return "\n".join([f"{target.name} ({target.suffix}): {target.summary}", *lines, ""])


def _fact(name: str, words: str) -> str:
    head = f"  {name}".ljust(_INDENT)
    return textwrap.fill(
        words, _WIDTH, initial_indent=head, subsequent_indent=" " * _INDENT, break_long_words=False
    )


def taken_dtypes(target: ConversionTarget, record: OpDef) -> tuple[DType, ...]:
    """Return the dtypes of an operation's data that a target takes."""
    return tuple(dtype for dtype in _known(record) if target.legality.takes(record.opcode, dtype))


def _taken_of(target: ConversionTarget, record: OpDef) -> str:
    taken, rule = taken_dtypes(target, record), target.legality.operations.get(record.opcode)
    if not taken:
        return f"not taken{f': {rule.reason}' if rule is not None and rule.reason else ''}"
    words = _dtypes(taken, _known(record))
    return f"{words}, but not always" if rule is not None and rule.unless is not None else words


def _known(record: OpDef) -> tuple[DType, ...]:
    """Return the dtypes of its data that an operation takes in the first place."""
    return tuple(dtype for dtype in DType if support(record, dtype)[0] == YES)


def _operations() -> list[OpDef]:
    """Return the operations that tables say something of: calls and inputs are forms of a program."""
    return [record for record in all_ops() if record.opcode not in FORM_OPERATIONS]


def _dtypes(taken: Sequence[DType], every: Sequence[DType]) -> str:
    names = ", ".join(str(dtype) for dtype in taken)
    return f"all {len(every)}" if len(taken) == len(every) == len(DType) else names or "none"
