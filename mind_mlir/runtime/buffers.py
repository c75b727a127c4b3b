"""Checks of arrays that a call uses as they are: outputs that the caller gives, inputs that stay bound.

Compiled code writes wherever it is told to and expects that outputs overlap nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.arguments.tensors import address
from mind_mlir.diagnostics import Diagnostic
from mind_mlir.ir.nested import as_array
from mind_mlir.ir.types import format_shape
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.interface import Output, Parameter

#: What objects have whose elements lie in memory.
_ARRAY_LIKE = ("__array__", "__array_interface__", "__dlpack__")


def input_problems(parameter: Parameter, value: object, read: Array) -> Iterator[Diagnostic]:
    """Yield what keeps ``value`` from being read in place, where ``read`` is what compiled code would read.

    Numbers and nested lists have no place: they are taken as they are now.
    """
    if value is read or isinstance(value, np.generic):
        return
    if not any(hasattr(value, name) for name in _ARRAY_LIKE):
        return
    view = as_array(value)
    if view is None or not view.size or np.may_share_memory(view, read):
        return
    reason = layout_problem(view) or "has bytes other than 0 and 1"
    yield Diagnostic(
        "E6106",
        f"argument '{parameter.name}' {reason}",
        notes=(f"input '{parameter.name}' is {parameter.type}",),
        help=f"bind a copy, and write to that: numpy.ascontiguousarray({parameter.name})",
        context=MappingProxyType({"input": parameter.name, "expected": str(parameter.type)}),
    )


def as_outputs(out: object, count: int, findings: list[Diagnostic]) -> tuple[object, ...]:
    """Return what a caller gives for ``count`` outputs, one object for each, or nothing if that is wrong."""
    if isinstance(out, np.ndarray) and count == 1:
        return (out,)
    if not isinstance(out, tuple | list):
        wanted = "an array" if count == 1 else f"a tuple of {count} arrays"
        message = f"out must be {wanted}, not {argument_checks.describe(out)}"
        findings.append(Diagnostic("E6105", message))
        return ()
    if len(out) != count:
        code = "E6101" if len(out) < count else "E6102"
        findings.append(Diagnostic(code, f"out has {len(out)} arrays, but there are {count} outputs"))
        return ()
    return tuple(out)


def output_fits(value: Array, output: Output) -> bool:
    """Return whether an array that has been checked before still is what compiled code may write to."""
    flags = value.flags
    return (
        value.dtype == output.type.dtype.numpy
        and value.shape == output.type.extents
        and flags.c_contiguous
        and flags.aligned
        and flags.writeable
    )


def check_outputs(
    outputs: Sequence[Output], given: Sequence[object], inputs: Sequence[tuple[str, Array]]
) -> list[Diagnostic]:
    """Return what is wrong with the arrays ``given`` for ``outputs``.

    Args:
        outputs: What the function returns.
        given: An object for each.
        inputs: The arrays that are read, with the names of what they are for: what a caller gave, and what
            compiled code reads instead where that is a copy.

    Returns:
        E6103, E6104, E6105, and E6106 where an array cannot be written to or overlaps something.
    """
    findings: list[Diagnostic] = []
    sound: list[tuple[str, Array]] = []
    for index, (output, value) in enumerate(zip(outputs, given, strict=True)):
        name = "out" if len(given) == 1 else f"out[{index}]"
        found = list(_problems(name, output, value))
        findings += found
        if not found and isinstance(value, np.ndarray):
            sound.append((name, value))
    return findings + _overlaps(sound, [(f"argument '{name}'", array) for name, array in inputs])


def layout_problem(array: Array) -> str | None:
    """Return why compiled code cannot use the memory of ``array`` as it lies, or None."""
    if not array.flags.c_contiguous:
        return "is not C-contiguous"
    return None if array.flags.aligned else "is not aligned"


def _problems(name: str, output: Output, value: object) -> Iterator[Diagnostic]:
    dtype, shape = output.type.dtype.numpy, output.type.extents
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        yield _finding(
            "E6105", f"{name} is not a numpy array: it is {argument_checks.describe(value)}", name, output
        )
        return
    if value.dtype != dtype:
        yield _finding(
            "E6103", f"{name} has dtype {value.dtype}, expected {output.type.dtype.numpy_name}", name, output
        )
    if value.shape != shape:
        message = f"{name} has shape {format_shape(value.shape)}, expected {format_shape(shape)}"
        yield _finding("E6104", message, name, output)
    problem = layout_problem(value) if value.flags.writeable else "is read-only"
    if problem is not None:
        yield _finding("E6106", f"{name} {problem}", name, output)


def _overlaps(outputs: Sequence[tuple[str, Array]], inputs: Sequence[tuple[str, Array]]) -> list[Diagnostic]:
    """Return a finding for each output that overlaps something, about the first thing that it overlaps."""
    if not _any_overlaps(outputs, inputs):
        return []
    findings = []
    for index, (name, output) in enumerate(outputs):
        others = [*inputs, *outputs[:index]]
        other = next((other for other, array in others if np.may_share_memory(array, output)), None)
        if other is not None:
            findings.append(
                Diagnostic(
                    "E6106",
                    f"{name} overlaps {other}",
                    help="outputs are written while inputs are read: give each its own memory",
                    context=MappingProxyType({"output": name}),
                )
            )
    return findings


def _any_overlaps(outputs: Sequence[tuple[str, Array]], inputs: Sequence[tuple[str, Array]]) -> bool:
    """Return whether an output overlaps anything; found by sorting, since there can be thousands."""
    ends = {True: 0, False: 0}
    spans = [(*_span(array), True) for _, array in outputs] + [(*_span(array), False) for _, array in inputs]
    for start, end, is_output in sorted(spans):
        if end > start:
            if ends[True] > start or (is_output and ends[False] > start):
                return True
            ends[is_output] = max(ends[is_output], end)
    return False


def _span(array: Array) -> tuple[int, int]:
    """Return where the memory of ``array`` begins and ends."""
    if array.flags.c_contiguous:
        start = address(array)
        return start, start + array.nbytes
    return np.lib.array_utils.byte_bounds(array)


def _finding(code: str, message: str, name: str, output: Output) -> Diagnostic:
    context = MappingProxyType({"output": name, "expected": str(output.type)})
    return Diagnostic(code, message, notes=(f"the output is {output.type}",), context=context)
