"""The record of a compiled function: what `call.mlir` has to know to call it.

It is an array of 8-byte words, which a function holds in its first slot. The texts know the words by the
names in `WORDS`.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.runtime.memory import POOLED, pool
from mind_mlir.runtime.native import Frame, NativeFunction

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

T = TypeVar("T")

#: The keyword of a call with the arrays that outputs are written to.
OUT = "out"
#: Looking for overlaps here takes time quadratic in the number of arrays: of more pairs, Python sorts them.
_MOST_PAIRS = 1 << 12

_HEAD = (
    *("input_count", "output_count", "code", "frame", "values", "arena_value", "arena_allocator"),
    *("status_words", "status", "ranges", "names", "descriptions", "takes_out", "stored_arguments", "busy"),
    "single",
)
_DESCRIPTION = ("dtype", "rank", "shape", "bytes", "checked_bytes", "allocator")

#: The number of each word in a record, and in the description of one of its inputs or outputs.
WORDS = {
    **{name: index for index, name in enumerate(_HEAD)},
    **{name: index for index, name in enumerate(_DESCRIPTION)},
    "description_size": len(_DESCRIPTION),
}


class _Owner:
    """The owner of a record's words, which keeps alive all that they refer to."""

    __slots__ = ("__array_interface__", "kept")

    def __init__(self, words: Array, kept: list[object]) -> None:
        self.kept = [words, kept]
        self.__array_interface__ = words.__array_interface__


class CallRecord:
    """The record of one function, or of one that is bound to its buffers, and all that it refers to.

    Attributes:
        words: The record; it keeps what it refers to.
    """

    def __init__(
        self,
        native: NativeFunction,
        inputs: Sequence[tuple[str, TensorType]],
        outputs: Sequence[TensorType],
        ranges: Sequence[tuple[int, int]],
        bound: tuple[Sequence[Array], tuple[Array, ...]] | None = None,
        *,
        staged: bool = False,
        single: bool = False,
    ) -> None:
        """Describe a function.

        Args:
            native: Its code.
            inputs: Their names and types.
            outputs: Their types.
            ranges: Of each check, the least and the greatest number that is allowed.
            bound: The inputs and outputs of every call, where they are fixed.
            staged: Whether calls are those of a `StagedFunction`, to which no outputs are given.
            single: Whether calls return the one output, rather than a tuple.

        Raises:
            MemoryError: There is none.
        """
        self._kept: list[object] = [native, bound]
        names = [name for name, _ in inputs]
        values = len(inputs) + len(outputs)
        frame = self._keep(Frame(native.pointers, native.scratch_bytes))
        descriptions = [
            *(self._description(type_, is_input=True) for _, type_ in inputs),
            *(self._description(type_, is_input=False) for type_ in outputs),
        ]
        head = {
            "input_count": len(inputs),
            "output_count": len(outputs),
            "code": native.address,
            "frame": frame.address,
            "values": ctypes.addressof(frame.values),
            "arena_value": native.pointers,
            "status_words": 2 * len(ranges),
            "status": self._words([0] * (2 * len(ranges))),
            "ranges": self._words(number for pair in ranges for number in pair),
            "names": self._words(id(self._keep(sys.intern(name))) for name in [*names, OUT]),
            "descriptions": self._words(word for each in descriptions for word in each),
            "takes_out": int(not staged and OUT not in names and values * len(outputs) <= _MOST_PAIRS),
            "single": int(single),
        }
        if native.scratch_bytes >= POOLED:
            head["arena_allocator"] = self._allocator((native.scratch_bytes,), np.dtype(np.uint8))
        if bound is not None:
            head["stored_arguments"] = self._words([*map(id, bound[0]), id(bound[1])])
        if ranges:
            frame.values[values] = head["status"]
        words: Array = np.array([head.get(name, 0) for name in _HEAD], np.int64)
        self.words: Array = np.asarray(_Owner(words, self._kept))

    def _description(self, type_: TensorType, *, is_input: bool) -> list[int]:
        shape, dtype = type_.extents, type_.dtype.numpy
        count = math.prod(shape) * dtype.itemsize
        words = {
            "dtype": id(self._keep(dtype)),
            "rank": len(shape),
            "shape": self._words(shape),
            "bytes": count,
        }
        if is_input and type_.dtype is DType.I1:
            words["checked_bytes"] = count
        if not is_input and count >= POOLED:
            words["allocator"] = self._allocator(shape, dtype)
        return [words.get(name, 0) for name in _DESCRIPTION]

    def _allocator(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> int:
        return id(self._keep(pool.allocator(shape, dtype)))

    def _words(self, words: Iterable[int]) -> int:
        """Return where an array of ``words`` is."""
        return int(self._keep(np.array([*words], np.int64)).ctypes.data)

    def _keep(self, thing: T) -> T:
        self._kept.append(thing)
        return thing
