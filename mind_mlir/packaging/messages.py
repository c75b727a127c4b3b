"""The messages of a library about its statuses: constant strings, one for each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.wording import SUFFIX, reworded
from mind_mlir.packaging.c_interface import MISALIGNED_POINTER, NULL_POINTER, OK, UNSUPPORTED_PROCESSOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.diagnostics.checks import Check
    from mind_mlir.packaging.c_interface import CLibrary

#: What is said of a number that no entry point returns.
UNKNOWN = "this is no status of this library"


def status_messages(library: CLibrary, needs: str) -> Mapping[int, str]:
    """Return what there is to say about each status of ``library``, in order of their numbers.

    Args:
        library: The library.
        needs: What the processor has to have, in words; nothing where any has it.
    """
    needed = f": {needs}" if needs else ""
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
    """Return what there is to say where ``check`` fails: its code, where it stands, the operation, and why.

    That is in the words of the surface language where a program of that has the check.
    """
    example = check.finding(check.allowed[1] + 1)
    finding = replace(example, message=f"{check.opcode} {check.label}: {check.failure}")
    place = ""
    if check.place is not None:
        file, line, column = check.place
        place = f"{file}:{line}:{column}: "
        if file.endswith(SUFFIX):
            (finding,) = reworded([finding])
    advice = f"; {finding.help}" if finding.help else ""
    return f"{finding.code}: {place}{finding.message}{advice}".replace("\n", " ").replace("\0", " ")
