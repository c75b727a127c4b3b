"""`debug_print`: prints arrays when the program runs, rather than when it is traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.effects import PRINT
from mind_mlir.ops.custom_attributes import custom_attributes
from mind_mlir.ops.printing import check_fields, numbered, write
from mind_mlir.runtime.staged_values import STAGE
from mind_mlir.support import argument_checks
from mind_mlir.tracing.conversion import as_value
from mind_mlir.tracing.trace import Trace
from mind_mlir.tracing.value import TracedValue


@public
def debug_print(format: str, /, *args: Any, **kwargs: Any) -> None:  # noqa: A002 -- as `str.format` calls it
    """Print arrays as ``format.format(*args, **kwargs)`` does, whenever the program comes by there.

    Prints of a program come in its order, in loops once for each step, and in gradients once, on the way
    forward. Outside of a function that is traced, it prints at once.

    Args:
        format: As of `str.format`: ``{}``, ``{0}`` and ``{x}`` are numpy's text, ``{:.3f}`` formats each
            element.
        args: Arrays, and anything else, which is printed as it is when the function is traced.
        kwargs: The same by name.

    Raises:
        TypeError: ``format`` is no string.
        ValueError: It is no format, or names an argument that is not given, or one is given that it does not
            name.
    """
    found: list[Any] = []
    text, stage = argument_checks.text(format, "format"), STAGE.get()
    try:
        line = numbered(text, args, kwargs, (TracedValue, np.ndarray), found)
    except ValueError as error:
        argument_checks.refuse(str(error))
    if not isinstance(stage, Trace):
        write(line, found)
        return
    values = [as_value(stage, each) for each in found]
    try:
        check_fields(line, [value.type.dtype for value in values])
    except ValueError as error:
        argument_checks.refuse(str(error))
    attributes = custom_attributes({"format": line})
    stage.emit("CustomCall", *values, target=PRINT, attrs=attributes)
