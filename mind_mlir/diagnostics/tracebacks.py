"""Tracebacks that show the frames of users: those of this package tell nothing about a mistake of theirs.

All frames are kept where the variable ``MIND_MLIR_TRACEBACK`` is ``full``, and of an exception that is a bug
of ours; else a note on the exception says that some are missing.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.model import Diagnostic, MindError
from mind_mlir.diagnostics.source import SourceText

P = ParamSpec("P")
R = TypeVar("R")

VARIABLE = "MIND_MLIR_TRACEBACK"
_FULL = "full"
#: What an exception says of frames that are missing.
HIDDEN = f"(frames of mind_mlir are left out; {VARIABLE}={_FULL} shows them)"
#: What the names of this package's files begin with.
PACKAGE = str(Path(__file__).parents[1]) + os.sep
#: The file that code is of which is written while a program runs.
WRITTEN = f"{PACKAGE}<written>"
#: Packages whose frames lead to what a user has written in a cell.
_SHELLS = frozenset(("IPython", "ipykernel"))
#: Whose exceptions are about arguments of a wrong type.
_BORDER = str(Path(PACKAGE, "support", "argument_checks.py"))


def trim(error: Exception) -> None:
    """Take the frames of this package out of an exception's traceback, to be raised again by ``raise`` alone.

    That does not add the frame that caught it: where the exception has been raised by this package, its
    traceback begins and ends with the caller's.
    """
    trace = error.__traceback__
    if trace is None or os.environ.get(VARIABLE) == _FULL or not _is_of_the_user(error, trace):
        return
    error.__traceback__ = _of_the_user(trace)
    behind = error.__context__
    if behind is not None and error.__cause__ is None and behind.__traceback__ is not None:
        # How this package came to find the mistake is not a second one.
        error.__suppress_context__ |= _of_the_user(behind.__traceback__) is None
    if HIDDEN not in getattr(error, "__notes__", ()):
        error.add_note(HIDDEN)


def _of_the_user(trace: TracebackType) -> TracebackType | None:
    """Return a traceback without the frames of this package; None where there are no others."""
    kept: list[TracebackType] = []
    each: TracebackType | None = trace
    while each is not None:
        name = each.tb_frame.f_code.co_filename
        # The library's file calls what is decorated by a context.
        if not name.startswith(PACKAGE) and name != contextlib.__file__:
            kept.append(each)
        each = each.tb_next
    following: TracebackType | None = None
    for frame in reversed(kept):
        frame.tb_next, following = following, frame
    return following


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose exceptions are without the frames below it."""

    @functools.wraps(function)
    def trimming(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return trimming


def notebook_lines(error: MindError) -> list[str]:
    """Return an error that nothing catches as IPython shows it: the lines that led to it, the diagnostics."""
    import traceback  # noqa: PLC0415 -- only what is shown needs it

    from mind_mlir.diagnostics.render import BOLD, RESET, traceback_text  # noqa: PLC0415 -- as above

    if os.environ.get(VARIABLE) == _FULL:
        return [line.rstrip("\n") for line in traceback.format_exception(error)]
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    colored = str(getattr(shell, "colors", "nocolor")).lower() != "nocolor" and not os.environ.get("NO_COLOR")
    name = type(error).__name__
    lines = [f"{BOLD}{name}{RESET}" if colored else name]
    for frame, number in traceback.walk_tb(error.__traceback__):
        module, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
        if module.partition(".")[0] in _SHELLS or file.startswith(PACKAGE):
            continue
        text = traceback.FrameSummary(file, number, "").line
        lines.append(brief(f"  {_called(file, shell)}, line {number}{f': {text}' if text else ''}"))
    found = [_in_cell(diagnostic, shell) for diagnostic in error.diagnostics]
    return [*lines, *traceback_text(found, color=colored).split("\n")]


def _in_cell(diagnostic: Diagnostic, shell: Any) -> Diagnostic:
    """Return a diagnostic whose place is named as a reader of a notebook names it."""
    place = diagnostic.location
    if place is None or (name := _called(place.source.name, shell)) == place.source.name:
        return diagnostic
    return replace(diagnostic, location=replace(place, source=SourceText(name, place.source.text)))


def _called(file: str, shell: Any) -> str:
    """Return what a reader of a notebook calls a file: its cells have names."""
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return file if named is None else " ".join(named)


def _is_of_the_user(error: Exception, trace: TracebackType) -> bool:
    """Return whether an exception is about what a user has written: none that is a bug of ours."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    raised_by = trace.tb_frame.f_code.co_filename
    return isinstance(error, MindError) or raised_by == _BORDER or not raised_by.startswith(PACKAGE)
