"""The custom call that prints arrays while a program runs: `mind_mlir.debug_print`.

    %4 = CustomCall (%3) {target="mind.debug_print.v1", attrs="{...}"} : tensor<i64[]>

Its attribute is a format of `str.format`, whose fields are the numbers of operands: ``x = {0:.3f}``. It is a
C function, which is Python's: so it takes the interpreter lock while it prints. Its result is 0.
"""

from __future__ import annotations

import ctypes
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.analysis.effects import COPY, PRINT
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.custom_targets import CustomAttribute, CustomTarget
from mind_mlir.support.callbacks import guarded
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

_SILENT: ContextVar[bool] = ContextVar("mind_mlir_silent", default=False)
_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_FUNCTION = ctypes.CFUNCTYPE(None, _POINTERS, _POINTERS, ctypes.POINTER(ctypes.c_int64), ctypes.c_char_p)
_DTYPES = {str(dtype): dtype for dtype in DType}


@contextmanager
def silently() -> Iterator[None]:
    """Print nothing: what runs has run before."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


def shown(array: Array, conversion: str | None, spec: str) -> str:
    """Return an array as a field of a format shows it: numpy's text, or each element as ``spec`` has it.

    Raises:
        ValueError: ``spec`` is none for the elements.
    """
    if conversion in ("r", "a"):
        return repr(array)
    if not spec or conversion == "s":
        return format(str(array), spec)
    if not array.ndim:
        return format(array.item(), spec)
    return np.array2string(array, formatter={"all": lambda each: format(each.item(), spec)})  # type: ignore[arg-type]  # numpy's stub has no "all" for any element


def fields_of(text: str) -> Iterator[tuple[str, str | None, str, str | None]]:
    """Yield the literal texts of a format, each with the name, the format and the conversion behind it.

    Raises:
        ValueError: It is no format.
    """
    for literal, name, spec, conversion in Formatter().parse(text):
        yield literal, name, spec or "", conversion


def check_fields(text: str, dtypes: Sequence[DType]) -> None:
    """Check that a format shows operands of some dtypes (ValueError: it does not)."""
    for _, name, spec, conversion in fields_of(text):
        if name is None:
            continue
        if not name.isdecimal() or int(name) >= len(dtypes):
            raise ValueError(f"a field of the format is the number of an operand, and not '{name}'")
        dtype = dtypes[int(name)]
        try:
            shown(np.zeros(1, dtype.numpy), conversion, spec)
        except (TypeError, ValueError, OverflowError, MemoryError) as error:
            reason = str(error) or "that takes more memory than there is"
            raise ValueError(f"'{spec}' shows no {dtype.core_name}: {reason}") from None


def numbered(
    text: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    arrays: type | tuple[type, ...],
    operands: list[Any],
) -> str:
    """Return a format whose fields are the numbers of operands; what is no array is text in it.

    Args:
        text: The format, as `str.format` takes it.
        args: What it names by position.
        kwargs: What it names by name.
        arrays: The types of what becomes an operand.
        operands: Takes the operands.

    Raises:
        ValueError: It is no format, or names what is not given, or not all that is.
    """
    parts, used, count = [], set[int | str](), 0
    given: dict[int | str, Any] = dict(enumerate(args))
    given.update(kwargs.items())
    for literal, name, spec, conversion in fields_of(text):
        parts.append(_escaped(literal))
        if name is None:
            continue
        ending = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
        if "{" in spec:
            raise ValueError(f"format must not have fields within fields, as {{{name}{ending}}} has")
        key: int | str = int(name) if name.isdecimal() else name
        if not name:
            key, count = count, count + 1
        if key not in given:
            raise ValueError(f"format must name what is given, and nothing is for {{{name or key}}}")
        used.add(key)
        if isinstance(given[key], arrays):
            parts.append(f"{{{len(operands)}{ending}}}")
            operands.append(given[key])
        else:
            parts.append(_escaped(f"{{0{ending}}}".format(given[key])))
    unused = [key for key in given if key not in used]
    if unused:
        where = "write {} or {name} where it is to stand"
        raise ValueError(
            f"format must name all that is given, and has no field for {_named(unused[0])}: {where}"
        )
    return "".join(parts)


def _named(key: int | str) -> str:
    return f"argument {key} behind it" if isinstance(key, int) else repr(key)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def write(text: str, arrays: Sequence[Array]) -> None:
    """Print ``arrays`` as a format of the custom call says."""
    if _SILENT.get():
        return
    parts = []
    for literal, name, spec, conversion in fields_of(text):
        parts.append(literal)
        if name is not None:
            array = arrays[int(name)]
            try:
                parts.append(shown(array, conversion, spec))
            except (OverflowError, ValueError):  # of some numbers alone, as {:c} shows no -1
                parts.append(str(array))
    line = "".join(parts)
    try:
        print(line, flush=True)
    except UnicodeEncodeError:  # a terminal that has not all characters is no mistake of the program
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        print(line.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def print_target(name: str) -> CustomTarget | None:
    """Return the target called ``name`` where it is one of those for prints, or None."""
    if name == COPY:
        return _copy_target()
    return _target() if name == PRINT else None


def _types(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    check_fields(attributes["format"], [operand.dtype for operand in operands])
    return TensorType(DType.SI64)


def _evaluate(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    write(attributes["format"], operands)
    return np.zeros((), np.int64)


@cache
def _target() -> CustomTarget:
    function = _FUNCTION(guarded(_run))
    return CustomTarget(
        name=PRINT,
        doc="prints its operands as a format says",
        attributes=FrozenDict({"format": CustomAttribute("String", "what is printed, as in 'x = {0:.3f}'")}),
        types=_types,
        evaluate=_evaluate,
        address=ctypes.cast(function, ctypes.c_void_p).value,
        keep=function,
        typed=True,
    )


@cache
def _copy_target() -> CustomTarget:
    function = _FUNCTION(guarded(_copy))
    return CustomTarget(
        name=COPY,
        doc="gives a copy of its operand",
        attributes=FrozenDict({}),
        types=lambda operands, _: operands[0],
        evaluate=lambda operands, _: operands[0],
        address=ctypes.cast(function, ctypes.c_void_p).value,
        keep=function,
        typed=True,
    )


def _copy(inputs: Any, outputs: Any, extents: Any, attrs: bytes) -> None:
    (type_,) = json.loads(attrs)["types"]["value"]
    dtype, rank = type_.split()
    ctypes.memmove(outputs[0], inputs[0], _size(dtype, tuple(extents[: int(rank)])))


def _size(dtype: str, shape: tuple[int, ...]) -> int:
    return _DTYPES[dtype].numpy.itemsize * math.prod(shape)


def _run(inputs: Any, outputs: Any, extents: Any, attrs: bytes) -> None:
    """Print what compiled code hands over."""
    given = {name: item["value"] for name, item in json.loads(attrs).items()}
    arrays, first = [], 0
    for place, (dtype, rank) in enumerate(map(str.split, given["types"])):
        shape = tuple(extents[first : first + int(rank)])
        first += int(rank)
        size = _size(dtype, shape)
        memory = ctypes.string_at(inputs[place], size) if size else b""
        arrays.append(np.frombuffer(memory, _DTYPES[dtype].numpy).reshape(shape))
    ctypes.c_int64.from_address(outputs[0]).value = 0
    write(given["format"], arrays)
