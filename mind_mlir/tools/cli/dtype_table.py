"""The table of which PTIR operation takes which dtype, as the records say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.ops.dtype_support import YES, support
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ops.opdef import OpDef


def dtype_table() -> str:
    """Return the page with the table, and the reasons below it."""
    dtypes, numbers = list(DType), dict[str, int]()
    rows = []
    for record, name in _contract_operations():
        cells = []
        for dtype in dtypes:
            mark, reason = support(record, dtype)
            number = f" ({numbers.setdefault(reason, len(numbers) + 1)})" if mark != YES else ""
            cells.append(f"{mark}{number}")
        rows.append((f"`{name}`", *cells))
    head = ("operation", *(dtype.value for dtype in dtypes))
    lines = [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]
    return "\n".join(
        [
            "# PTIR operations and dtypes",
            "",
            "<!-- Written by `mind-mlir ops --dtypes` from the operation records; do not edit. -->",
            "",
            "What each operation of the contract takes as the dtype of its data. `yes`: compiled code is "
            "tested against the operation's numpy rule, on awkward values too. `never`: the contract "
            "excludes it, or it makes no sense. A code: the diagnostic that is given. The number in "
            "parentheses is that of the reason below. An operation with kinds is said to take what one of "
            "them takes: complex numbers have no Max and no Min, truth values no sum among themselves.",
            "",
            *lines,
            "",
            "Why not:",
            "",
            *(f"{number}. {reason}" for reason, number in numbers.items()),
            "",
        ]
    )


def _contract_operations() -> Iterator[tuple[OpDef, str]]:
    for record in all_ops():
        if record.contract is not None:
            yield record, record.contract.variant or record.contract.name
