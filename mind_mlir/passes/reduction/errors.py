"""Errors of smaller programs: what a bug of the compiler is told by, and the least that shows it."""

from __future__ import annotations

import re
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import InternalError
from mind_mlir.ir.profiles import CORE_FUNCTIONS
from mind_mlir.languages.core.printer import print_module
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.reduction.search import reduced

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.module import Module


def reduced_error(
    module: Module, error: InternalError, run: Callable[[Module, str], object]
) -> InternalError:
    """Return the error of a smaller module that the same stage fails on, or ``error`` where none is found.

    Args:
        module: A verified module.
        error: How it fails.
        run: Does with a verified module what failed, up to the stage that is named.
    """
    smallest = error

    def fails(candidate: Module) -> bool:
        nonlocal smallest
        try:
            run(candidate, error.stage)
        except InternalError as found:
            if mark(found) == mark(error):
                smallest = found
                return True
        return False

    try:
        module = reducible_form(module)
    except Exception:  # this may be where the bug is
        if any(len(function.blocks) > 1 for function in module.functions):
            return error
    smallest.reducible(print_module(reduced(module, fails)), lambda: smallest)
    return smallest


def reducible_form(module: Module) -> Module:
    """Return a verified module in the form that is reduced: structured, of a profile that has functions."""
    # A flat module that is structured has functions, too.
    profile = CORE_FUNCTIONS.name if module.is_flat else module.profile
    return replace(structured_form(module), profile=profile)


def mark(error: InternalError) -> tuple[str, ...]:
    """Return what tells one bug from others: the stage, what happened, and where in the compiler."""
    message = re.sub("[0-9]+", "#", error.message)
    cause = error.__cause__
    if cause is None:
        return error.stage, message
    *_, (frame, _) = traceback.walk_tb(cause.__traceback__)
    return error.stage, message, type(cause).__name__, frame.f_code.co_filename, frame.f_code.co_name
