"""Functions for every operation, written and called as numpy's.

    import mind_mlir
    import mind_mlir.numpy as mnp

    @mind_mlir.jit
    def layer(x, w, b):
        return mnp.maximum(x @ w + b, 0)

Where numpy has a function, it has numpy's name and arguments here; all other operations have a function that
takes the operands by place and the attributes as keywords: ``help(mnp.dot_general)``. Within a function that
is traced, they take traced arrays beside numpy's; outside of one, they run at once, compiled. Operands
of several dtypes are converted to the one that they have together; see `docs/python.md`.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import Any

from ml_dtypes import bfloat16, float8_e4m3fn, float8_e5m2, int4, uint4
from numpy import (
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

from mind_mlir.numpy import creation, einstein, elementwise, indexing, products, reductions, shaping
from mind_mlir.numpy.arrays import Array
from mind_mlir.numpy.generated import function_of
from mind_mlir.numpy.spellings import spellings
from mind_mlir.support.suggestions import did_you_mean

newaxis = None

#: The functions that are written by hand: those with numpy's arguments, where these are others.
BY_HAND: dict[str, Any] = {
    name: each
    for module in (creation, einstein, elementwise, indexing, products, reductions, shaping)
    for name, each in vars(module).items()
    if hasattr(each, "opcodes")  # which `spelled` has given it
}
globals().update(BY_HAND)
_GENERATED = {name: record for name, record in spellings().items() if name not in BY_HAND}

__all__ = (  # noqa: PLE0604 -- names all of them
    "Array",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "e",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "inf",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "nan",
    "newaxis",
    "pi",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    *sorted({*BY_HAND, *_GENERATED}),
)


def __getattr__(name: str) -> Any:
    """Make a function of a record when it is first used."""
    if name not in _GENERATED:
        raise AttributeError(
            f"module 'mind_mlir.numpy' has no function {name!r}{did_you_mean(name, __all__)}"
        )
    found = globals()[name] = function_of(name, _GENERATED[name])
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
