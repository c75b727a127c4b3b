"""The variables of the environment that say how programs are compiled and run."""

from __future__ import annotations

import click

from mind_mlir.runtime.threads import get_num_threads
from mind_mlir.target import named_target


def check_variables() -> None:
    """Make sure that the variables of the environment say what they may.

    Raises:
        click.UsageError: One does not.
    """
    try:
        get_num_threads()
        named_target()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
