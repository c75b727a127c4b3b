"""What goes wrong between ranks and processes, as diagnostics (E62xx)."""

from __future__ import annotations

from collections.abc import Sequence

from mind_mlir.diagnostics import Diagnostic, ExecutionError

#: How a note about a process that will never come ends.
ENDED = "has ended"


def failed(code: str, message: str, help: str, notes: Sequence[str] = ()) -> ExecutionError:
    """Return an error of running, which has no place of its own: its notes name places."""
    return ExecutionError([Diagnostic(code, message, None, tuple(notes), help)])


def disagreement(whose: Sequence[str], calls: Sequence[str]) -> ExecutionError:
    """Return what ranks are told that meet in different collectives."""
    return failed(
        "E6202",
        "ranks that must do the same collective do different ones",
        "all ranks of a group must come to the same collectives in the same order: a branch or loop around "
        "one must go the same way in all of them",
        [f"{who} is at {call}" for who, call in zip(whose, calls, strict=True)],
    )


def deadlock(waiting: Sequence[str]) -> ExecutionError:
    """Return what ranks are told that wait for ranks that will never come."""
    ended = any(each.endswith(ENDED) for each in waiting)
    what = "for a process that has ended" if ended else "for one another"
    return failed(
        "E6203",
        f"ranks wait {what}, and none can go on",
        "all ranks of a group must come to the same collectives in the same order: a branch or loop around "
        "one must go the same way in all of them",
        waiting,
    )
