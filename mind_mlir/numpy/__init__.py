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

from mind_mlir.ir.types import DType
from mind_mlir.numpy import (
    assembling,
    creation,
    einstein,
    elementwise,
    fft,
    indexing,
    linalg,
    products,
    reductions,
    shaping,
    statistics,
    transcendental,
)
from mind_mlir.numpy.arrays import Array
from mind_mlir.numpy.generated import function_of, spellings
from mind_mlir.support.suggestions import did_you_mean

newaxis = None

#: The classes that numpy, or ml_dtypes, has of the dtypes, by the names there.
_DTYPES = {"bool_" if each is DType.I1 else each.numpy.type.__name__: each.numpy.type for each in DType}
globals().update(_DTYPES)

#: The functions that are written by hand: those with numpy's arguments, where these are others.
BY_HAND: dict[str, Any] = {
    name: each
    for module in (
        assembling,
        creation,
        einstein,
        elementwise,
        indexing,
        products,
        reductions,
        shaping,
        statistics,
        transcendental,
    )
    for name, each in vars(module).items()
    if hasattr(each, "opcodes")  # which `spelled` has given it
}
globals().update(BY_HAND)
_GENERATED = {name: record for name, record in spellings().items() if name not in BY_HAND}

__all__ = (  # noqa: PLE0604 -- names all of them
    "Array",
    "e",
    "fft",
    "inf",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    *_DTYPES,
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
