"""Show or save the results of `mind-mlir run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from mind_mlir.outputs.files import replace_file
from mind_mlir.tools.cli.array_files import ADDED
from mind_mlir.tools.cli.output import write_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.interface import Output

#: Arrays with more elements are printed shortened.
SHOWN_ELEMENTS = 200


def check_output_name(output: str, count: int) -> None:
    """Make sure that ``count`` arrays can be written to a file of this name.

    Raises:
        click.UsageError: They cannot.
    """
    suffix = Path(output).suffix
    if suffix == ".npy" and count != 1:
        raise click.UsageError(f"-o {output}: the program has {count} outputs; write them to a .npz file")
    if suffix not in (".npy", ".npz"):
        raise click.UsageError(f"-o {output}: the name must end in .npz or .npy")


def deliver(outputs: Sequence[Output], arrays: Sequence[Array], path: str | None) -> None:
    """Write the arrays of ``outputs`` to the file at ``path``, or show them where that is None.

    The types that ml_dtypes adds are written as bytes without a type, `V2` or `V1`: numpy has no name for
    them, and what it makes up for float8_e5m2 it does not read.
    """
    if path is None:
        for output, array in zip(outputs, arrays, strict=True):
            write_output(_show(output, array), None)
    elif path.endswith(".npy"):
        replace_file(path, lambda file: np.save(file, _storable(arrays[0])))
    else:
        named = {f"output_{index}": _storable(array) for index, array in enumerate(arrays)}
        replace_file(path, lambda file: np.savez(file, allow_pickle=False, **named))


def _storable(array: Array) -> Array:
    return array.view(f"V{array.itemsize}") if array.dtype.isbuiltin == ADDED else array


def _show(output: Output, array: Array) -> str:
    text = np.array2string(array, threshold=SHOWN_ELEMENTS, separator=", ", floatmode="unique")
    return f"{output.label} : {output.type}\n{text}"
