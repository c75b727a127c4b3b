"""Tracebacks that show the frames of users: those of this package tell nothing about a mistake of theirs.

A public function keeps one frame. All are kept where the variable ``MIND_MLIR_TRACEBACK`` is ``full``, and of
an exception that is a bug of ours.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from mind_mlir.diagnostics.model import MindError

P = ParamSpec("P")
R = TypeVar("R")

VARIABLE = "MIND_MLIR_TRACEBACK"
_FULL = "full"
#: What the names of this package's files begin with.
PACKAGE = str(Path(__file__).parents[1]) + os.sep
#: The file that code is of which is written while a program runs.
WRITTEN = f"{PACKAGE}<written>"
#: Whose exceptions are about arguments of a wrong type.
_BORDER = str(Path(PACKAGE, "support", "argument_checks.py"))


def trim(error: Exception) -> None:
    """Take the frames of this package out of an exception's traceback, but for the one that caught it."""
    trace = error.__traceback__
    if trace is None or os.environ.get(VARIABLE) == _FULL or not _is_of_the_user(error, trace):
        return
    kept = trace
    while kept.tb_next is not None:
        name = kept.tb_next.tb_frame.f_code.co_filename
        # The library's file calls what is decorated by a context.
        if name.startswith(PACKAGE) or name == contextlib.__file__:
            kept.tb_next = kept.tb_next.tb_next
        else:
            kept = kept.tb_next


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


def _is_of_the_user(error: Exception, trace: TracebackType) -> bool:
    """Return whether an exception is about what a user has written: none that is a bug of ours."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    raised_by = trace.tb_frame.f_code.co_filename
    return isinstance(error, MindError) or raised_by == _BORDER or not raised_by.startswith(PACKAGE)
