"""Arrays as Python passes them: nested sequences, one list a dimension, and whatever numpy can view."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from mind_mlir.ir.elements import ElementProblem
from mind_mlir.ir.types import DType

Array: TypeAlias = npt.NDArray[Any]

#: No tensor of this compiler has more dimensions (numpy's limit is the same). A list may hold itself.
MAX_DEPTH = 64
#: Lists of as many elements would take 16 GB for the lists alone.
MAX_ELEMENTS = 2**31
#: What holds its elements ready for numpy.
_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")


def flattened(nested: object) -> tuple[tuple[int, ...], list[Any]]:
    """Return the shape of a nested sequence and its elements in row-major order.

    What is no list, tuple, range or array is an element; a single one has shape ``()``.

    Raises:
        ElementProblem: E3010 where the nesting is ragged, or deeper than any tensor.
    """
    _check_outline(nested)
    shape: list[int] = []
    level: list[Any] = [nested]
    while level and _is_sequence(level[0]):
        rows = [tuple(item) if _is_sequence(item) else None for item in level]
        lengths = sorted({-1 if row is None else len(row) for row in rows})
        if len(lengths) > 1:
            found = " and ".join("a number" if n < 0 else f"{n} elements" for n in lengths[:2])
            raise ElementProblem(
                0,
                "E3010",
                f"the literal is ragged: dimension {len(shape)} has {found}",
                "all lists of one level must have the same length",
            )
        shape.append(lengths[0])
        level = [item for row in rows if row is not None for item in row]
    if any(map(_is_sequence, level)):
        raise ElementProblem(
            0,
            "E3010",
            f"the literal is ragged: dimension {len(shape)} mixes numbers and lists",
            "all elements of one level must have the same depth",
        )
    return tuple(shape), level


def _check_outline(nested: Any) -> None:
    """Follow the first elements down: a list that holds itself, or one list many times, fills any memory."""
    depth, count = 0, 1
    while _is_sequence(nested) and len(nested):
        depth, count = depth + 1, count * len(nested)
        if depth > MAX_DEPTH:
            raise ElementProblem(
                0, "E3010", f"lists nest more than {MAX_DEPTH} deep", "a list may not hold itself"
            )
        if count > MAX_ELEMENTS:
            raise ElementProblem(
                0, "E3010", f"nested lists of {count} elements", "give an array instead of lists"
            )
        nested = nested[0]


def _is_sequence(item: object) -> bool:
    return isinstance(item, (list, tuple, range)) or (isinstance(item, np.ndarray) and item.ndim > 0)


def is_masked(data: object) -> bool:
    """Return whether elements of ``data`` are masked; numpy's masked arrays are not loaded for that."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(data, masked.MaskedArray) and bool(masked.is_masked(data))


def as_array(data: object) -> Array | None:
    """Return the array that ``data`` is or gives by numpy's protocols, or None where it does neither.

    numpy would take a sequence apart too, but it never ends where one holds itself. What numpy itself finds
    wrong with an object is None; an exception out of the caller's own code arrives unchanged.

    Raises:
        ElementProblem: E6105, it is an array of another library, which does not give its elements as it is.
    """
    if isinstance(data, np.ndarray):
        return np.asarray(data)
    if not any(hasattr(type(data), name) for name in _ARRAY_PROTOCOLS):
        if isinstance(data, bytes):
            return None
        try:
            data = memoryview(cast("Any", data))
        except TypeError:
            return None
    try:
        return np.asarray(data)
    except Exception as error:
        if hasattr(type(data), "__dlpack__"):
            return _foreign(data, error)
        trace = error.__traceback__
        if isinstance(error, (TypeError, ValueError)) and trace is not None and trace.tb_next is None:
            return None  # numpy's own words
        raise


def _foreign(data: Any, error: Exception) -> Array:
    """Return an array of another library, such as torch, whose method ``__array__`` has failed.

    Raises:
        ElementProblem: E6105, it needs gradients, or the library has another reason.
    """
    if getattr(data, "requires_grad", False):
        message = "it needs gradients, which another library computes; pass x.detach()"
        raise ElementProblem(0, "E6105", message) from None
    library, _, name = str(getattr(data, "dtype", "")).rpartition(".")
    dtype = next((each for each in DType if each.numpy_name == f"ml_dtypes.{name}"), None)
    if library in sys.modules and dtype is not None and hasattr(data, "view"):  # numpy has its bits
        bits = getattr(sys.modules[library], "uint8" if dtype.itemsize == 1 else "int16")
        return cast("Array", np.asarray(data.view(bits)).view(dtype.numpy))
    raise ElementProblem(0, "E6105", " ".join(str(error).split()).rstrip(".")) from None
