"""What can be wrong with a function that is traced (E23xx), and where it is written."""

from __future__ import annotations

from typing import NoReturn

from mind_mlir.diagnostics import Diagnostic, TracingError
from mind_mlir.tracing.places import user_location


def refuse(code: str, message: str, help: str, *notes: str) -> NoReturn:
    """Raise a `TracingError` that quotes the line of the user's that runs.

    Args:
        code: E23xx.
        message: What is wrong.
        help: What to write instead.
        notes: Further facts.
    """
    raise TracingError(Diagnostic(code, message, user_location(), notes, help))
