"""What a library says about its statuses: constant strings, one for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.packaging.c_interface import MISALIGNED_POINTER, NULL_POINTER, OK, UNSUPPORTED_PROCESSOR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.diagnostics.checks import Check
    from mind_mlir.packaging.c_interface import CLibrary

#: What is said of a number that no entry point returns.
UNKNOWN = "this is no status of this library"


def status_messages(library: CLibrary, features: Sequence[str]) -> Mapping[int, str]:
    """Return what there is to say about each status of ``library``, in order of their numbers.

    Args:
        library: The library.
        features: What the processor has to have.
    """
    needed = f": {', '.join(features)}" if features else ""
    found = {
        OK: "success",
        NULL_POINTER: "a pointer is null",
        MISALIGNED_POINTER: "a pointer is not a multiple of the alignment that the header says",
        UNSUPPORTED_PROCESSOR: f"this processor or operating system lacks what the code needs{needed}",
    }
    for function in library.functions:
        found |= {status: f"{function.name}: {check_message(check)}" for status, check in function.statuses}
    return found


def check_message(check: Check) -> str:
    """Return what there is to say where ``check`` fails: its code, the operation, where it is, and why."""
    place = "" if check.place is None else f" ({check.place[0]}:{check.place[1]}:{check.place[2]})"
    example = check.finding(check.allowed[1] + 1)
    advice = f"; {example.help}" if example.help else ""
    text = f"{example.code}: {check.opcode} {check.label}{place}: {check.failure}{advice}"
    return text.replace("\n", " ").replace("\0", " ")
