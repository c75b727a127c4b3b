"""Diagnostics: what is wrong, where, and what to do about it.

A `Diagnostic` is plain data; `render` turns it into text for people, short lines or JSON lines. Everything
that a user can do wrong ends in one of the exceptions below, each of which carries one or more diagnostics
(codes: the catalogue in `codes`). No other exception type is raised on purpose.
"""

from __future__ import annotations

from mind_mlir.diagnostics.model import (
    ArgumentError,
    ArtefactError,
    AutodiffError,
    Diagnostic,
    ExecutionError,
    InternalError,
    MindError,
    NotFiniteError,
    ParseError,
    TracingError,
    UnsupportedError,
    VerificationError,
)
from mind_mlir.diagnostics.source import Location, SourceText

__all__ = [
    "ArgumentError",
    "ArtefactError",
    "AutodiffError",
    "Diagnostic",
    "ExecutionError",
    "InternalError",
    "Location",
    "MindError",
    "NotFiniteError",
    "ParseError",
    "SourceText",
    "TracingError",
    "UnsupportedError",
    "VerificationError",
]
