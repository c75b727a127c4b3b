"""``--constant NAME=FILE.npy``: inputs that are the same in all calls become part of the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mind_mlir.passes.verify import verify
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.tools.cli.array_files import ArrayFileError, read_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Module


def declared(module: Module, files: Mapping[str, str]) -> Module:
    """Return ``module`` with the arrays in ``files``, by the names of inputs, in the place of these.

    Raises:
        click.UsageError: A file holds no array of numbers.
        VerificationError: The module breaks a rule.
        ArgumentError: An array fits no input (see `with_constants`).
    """
    if not files:
        return module
    arrays = {}
    for name, path in files.items():
        try:
            arrays[name] = read_array(path, lambda _: True)
        except ArrayFileError as error:
            raise click.UsageError(f"--constant {name}={path}: {error}") from error
    return with_constants(verify(module), arrays)
