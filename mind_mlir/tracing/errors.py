"""Raise the errors of functions that are traced (E23xx), at the user's line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from mind_mlir.diagnostics import Diagnostic, TracingError
from mind_mlir.tracing.places import user_location

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location


def refuse(code: str, message: str, help: str, *, location: Location | None = None) -> NoReturn:
    """Raise a `TracingError` that quotes the line of the user's that runs.

    Args:
        code: E23xx.
        message: What is wrong.
        help: What to write instead.
        location: Where it is, where that is no line that runs.
    """
    raise TracingError(Diagnostic(code, message, location or user_location(), help=help))
