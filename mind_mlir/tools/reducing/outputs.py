"""The outputs of compiled code beside those of the interpreter, as far as rounding lets them be alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.interpreter import interpret
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.ops.numbers import dtype_of, widened
from mind_mlir.tools.comparison import control_tolerance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module


def differing_output(module: Module, arguments: Mapping[str, Array], outputs: Sequence[Array]) -> str | None:
    """Return what is said of the first output of compiled code that is not the interpreter's; None for none.

    Rounding adds up from operation to operation: floats may differ by as much as results of control flow may,
    and what is made of floats and is none, such as the place of the greatest, may be anything.
    """
    interface = interface_of(entry_function(module))
    rounds = any(_rounds(each.dtype) for each in arguments.values())
    expected = interpret(module, arguments)
    for output, compiled, interpreted in zip(interface.outputs, outputs, expected, strict=True):
        if not _rounds(interpreted.dtype):
            agrees = np.asarray(compiled == interpreted) | rounds
        else:
            agrees = _near(compiled, interpreted)
        if not agrees.all():
            index = tuple(int(i) for i in np.argwhere(~agrees)[0])
            found = f"compiled {compiled[index]}, interpreted {interpreted[index]}"
            return f"output {output.label} differs at {list(index)}: {found}"
    return None


def _rounds(dtype: np.dtype[np.generic]) -> bool:
    known = dtype_of(np.empty(0, dtype))
    return known.is_float or known.is_complex


def _near(compiled: Array, interpreted: Array) -> Array:
    dtype = dtype_of(interpreted)
    relative = control_tolerance(dtype.part if dtype.is_complex else dtype)
    left, right = (each if dtype.is_complex else widened(each) for each in (compiled, interpreted))
    with np.errstate(all="ignore"):
        allowed = relative * np.max(np.abs(right), initial=0, where=np.isfinite(right))
        both_nan = np.isnan(left) & np.isnan(right)
        return np.asarray((left == right) | both_nan | (np.abs(left - right) <= allowed))
