"""Compiles random programs, and counts what becomes of them: see ``--hypothesis-show-statistics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import currently_in_test_context, event

import mind_mlir

if TYPE_CHECKING:
    from mind_mlir import Executable, Module


def compile_counted(module: Module, **options: Any) -> Executable:
    """Compile ``module``: refused with a diagnostic, or compiled, or a bug, which comes with a small program.

    Raises:
        MindError: It is refused.
        AssertionError: The compiler fails on it.
    """
    try:
        executable: Executable = mind_mlir.compile(module, **options)
    except mind_mlir.MindError as error:
        _count(f"refused: {error.code}")
        raise
    except mind_mlir.InternalError as error:
        _count(f"internal error: {error.stage}")
        small = error.reduced()
        raise AssertionError(f"{small}, in the program\n{small.program}") from small
    _count("compiled")
    return executable


def _count(what: str) -> None:
    if currently_in_test_context():
        event(what)
