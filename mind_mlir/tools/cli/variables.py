"""The variables of the environment, and options in their place, that say what programs are compiled for."""

from __future__ import annotations

import click

from mind_mlir.cache.directory import store_for
from mind_mlir.runtime.threads import get_num_threads
from mind_mlir.target import named_target, runnable_target


def check_variables() -> None:
    """Make sure that the variables of the environment say what they may.

    Raises:
        click.UsageError: One does not.
    """
    try:
        get_num_threads()
        named_target()
        store_for()
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def check_runnable(target: str | None) -> None:
    """Make sure that this machine runs code for ``target``, or for the environment's where that is None.

    Raises:
        click.UsageError: It does not, or the variable names no target.
    """
    try:
        runnable_target(target)
    except ValueError as error:
        raise click.UsageError(f"{error}" if target is None else f"--{error}") from None
