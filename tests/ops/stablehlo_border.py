"""Converted programs on StableHLO's reference interpreter, whose arguments are not of all dtypes.

A function around the program takes and returns what numpy and the bindings can hand over: floats narrower
than f32 as their bits, integers of 4 bits in bytes, and complex numbers as their two parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.mlir.stablehlo_builder import spelled
from mind_mlir.ops.complex_numbers import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stablehlo_interpreter import Interpreter

Array = np.ndarray[Any, np.dtype[Any]]

_ENTRY = "func.func public @main("
_BITS = {8: DType.UI8, 16: DType.UI16}


def run(
    interpreter: Interpreter, program: str, arguments: Sequence[Array], results: Sequence[TensorType]
) -> list[Array]:
    """Return the results of `main` of a converted program, which are of these types."""
    assert program.count(_ENTRY) == 1
    lines, given, passed = [], [], []
    for place, array in enumerate(arguments):
        dtype = DType.from_numpy(array.dtype)
        assert dtype is not None
        type_ = TensorType(dtype, array.shape)
        names = [f"%a{place}_{part}" for part in range(len(_stored(type_)))]
        lines.append(_restored(f"%b{place}", names, type_))
        passed.append((f"%b{place}" if lines[-1] else names[0], spelled(type_)))
        given += list(zip(names, _parts(array, dtype), _stored(type_), strict=True))
    names = [f"%r#{place}" if len(results) > 1 else "%r" for place in range(len(results))]
    types = ", ".join(spelled(type_) for type_ in results)
    inside = f"({', '.join(type_ for _, type_ in passed)}) -> ({types})"
    bundle = f"%r:{len(results)}" if len(results) > 1 else "%r"
    lines.append(f"{bundle} = func.call @program({', '.join(name for name, _ in passed)}) : {inside}")
    returned: list[tuple[str, TensorType]] = []
    for place, (name, type_) in enumerate(zip(names, results, strict=True)):
        for part, stored in enumerate(_stored(type_)):
            line = _to_stored(f"%c{place}_{part}", name, type_, stored, part)
            lines.append(line)
            returned.append((f"%c{place}_{part}" if line else name, stored))
    given_types = ", ".join(f"{name}: {spelled(type_)}" for name, _, type_ in given)
    returned_types = ", ".join(spelled(type_) for _, type_ in returned)
    lines.append(f"return {', '.join(name for name, _ in returned)} : {returned_types}")
    body = "\n".join(line for line in lines if line)
    main = f"func.func @main({given_types}) -> ({returned_types}) {{\n{body}\n}}\n"
    text = program.replace(_ENTRY, "func.func private @program(").rstrip().removesuffix("}") + main + "}\n"
    found = iter(interpreter.run(text, [(array, spelled(type_)) for _, array, type_ in given]))
    return [_array(type_, [next(found) for _ in _stored(type_)]) for type_ in results]


def _stored(type_: TensorType) -> list[TensorType]:
    """Return the types in which values of ``type_`` are handed over."""
    dtype = type_.dtype
    if dtype.is_complex:
        return [type_.with_dtype(dtype.part)] * 2
    if dtype.bits == 4:
        return [type_.with_dtype(DType.UI8 if dtype is DType.UI4 else DType.SI8)]
    if dtype.is_float and dtype.bits < 32:
        return [type_.with_dtype(_BITS[dtype.bits])]
    return [type_]


def _parts(array: Array, dtype: DType) -> list[Array]:
    if dtype.is_complex:
        return [np.array(array.real), np.array(array.imag)]
    (stored,) = _stored(TensorType(dtype))
    if dtype.bits == 4:
        return [array.astype(stored.dtype.numpy)]
    return [np.ascontiguousarray(array).view(stored.dtype.numpy).reshape(array.shape)]


def _array(type_: TensorType, parts: Sequence[Array]) -> Array:
    parts = [np.asarray(part).reshape(type_.extents) for part in parts]
    if type_.dtype.is_complex:
        return joined(*parts)
    if type_.dtype.bits == 4:
        return parts[0].astype(type_.dtype.numpy)
    # The bindings show unsigned integers in signed arrays.
    return np.ascontiguousarray(parts[0]).view(type_.dtype.numpy).reshape(type_.extents)


def _restored(name: str, names: Sequence[str], type_: TensorType) -> str:
    """Return the line that makes a value of what was handed over; empty where it is that."""
    stored = _stored(type_)
    if stored == [type_]:
        return ""
    if len(stored) == 2:
        return f"{name} = stablehlo.complex {', '.join(names)} : {spelled(type_)}"
    return f"{name} = stablehlo.{_conversion(type_)} {names[0]} : ({spelled(stored[0])}) -> {spelled(type_)}"


def _to_stored(name: str, value: str, type_: TensorType, stored: TensorType, part: int) -> str:
    if stored == type_:
        return ""
    kind = ("real", "imag")[part] if type_.dtype.is_complex else _conversion(type_)
    return f"{name} = stablehlo.{kind} {value} : ({spelled(type_)}) -> {spelled(stored)}"


def _conversion(type_: TensorType) -> str:
    return "convert" if type_.dtype.bits == 4 else "bitcast_convert"
