"""The offsets in objects of CPython and numpy that `call.mlir` reads, and a check of them in this process.

numpy promises its offsets to extension modules for all of version 2, and CPython its own to those built for
one of its versions. They are looked at nevertheless, in known objects, before anything relies on them: where
one differs, calls are made from Python.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from io import FileIO

    from mind_mlir.ir.attributes import Array

# Offsets in bytes: within any object, within one whose class has a first slot, within an array.
_OBJECT_TYPE = 8
RECORD_SLOT = 16
_DATA, _RANK, _SHAPE, _DTYPE, _FLAGS = 16, 24, 32, 56, 64
_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400

#: Entries of numpy's table: the version of the table itself, the class of arrays, what makes an array,
#: and what compares two dtypes.
_API_VERSION, _API_NDARRAY, _API_NEW_FROM_DESCR, _API_EQUIVALENT_TYPES = 0, 2, 94, 182
_NUMPY_2 = 0x02000000

_WORD = 8

_MACHINES = ("x86_64", "aarch64")


class _Slotted:
    """A class as those that `call.mlir` is a method of: its first slot is the first thing in its objects."""

    __slots__ = ("first",)

    def __init__(self, first: object) -> None:
        self.first = first


class _SlottedAndMore(_Slotted):
    """A class derived from such a one, with attributes of its own."""

    def __init__(self, first: object) -> None:
        super().__init__(first)
        self.more = first


@functools.cache
def layout() -> Mapping[str, int] | None:
    """Return the words of the texts that stand for offsets and flags in this process.

    Returns:
        The values by name; None where calls have to be made from Python.
    """
    if not _is_known_system():
        return None
    if _numpy_table() is None or not _is_laid_out_as_known():
        return None
    return MappingProxyType(
        {
            "object_type": _OBJECT_TYPE,
            "record_slot": RECORD_SLOT,
            "array_data": _DATA,
            "array_rank": _RANK,
            "array_shape": _SHAPE,
            "array_dtype": _DTYPE,
            "array_flags": _FLAGS,
            "readable": _C_CONTIGUOUS | _ALIGNED,
            "writeable": _C_CONTIGUOUS | _ALIGNED | _WRITEABLE,
        }
    )


def addresses() -> Mapping[str, int]:
    """Return where that is which the texts declare, by name; there is a `layout`."""
    table = _numpy_table()
    assert table is not None, "there is a layout"
    return {
        "mind.ndarray": id(np.ndarray),
        "mind.tuple": id(tuple),
        "mind.memory_error": id(MemoryError),
        "mind.equivalent_types": table[_API_EQUIVALENT_TYPES],
        "mind.new_from_descr": table[_API_NEW_FROM_DESCR],
    }


def _is_known_system() -> bool:
    """Return whether this is a CPython with its lock, not one for debugging, on 64-bit Linux."""
    return (
        sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not sysconfig.get_config_var("Py_DEBUG")
        and not sysconfig.get_config_var("Py_TRACE_REFS")
        and sys.platform == "linux"
        and platform.machine() in _MACHINES
        and ctypes.sizeof(ctypes.c_void_p) == ctypes.sizeof(ctypes.c_ssize_t) == _WORD
        and np.dtype(np.intp).itemsize == _WORD
    )


def _numpy_table() -> ctypes.Array[ctypes.c_size_t] | None:
    """Return the start of numpy's table of functions, if it is that of numpy 2."""
    module: Any = getattr(np, "_core", None)
    capsule = getattr(getattr(module, "_multiarray_umath", None), "_ARRAY_API", None)
    if type(capsule).__name__ != "PyCapsule":
        return None
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )(capsule, None)
    if not pointer:
        return None
    table = (ctypes.c_size_t * (_API_EQUIVALENT_TYPES + 1)).from_address(pointer)
    version = ctypes.PYFUNCTYPE(ctypes.c_uint)(table[_API_VERSION])()
    return table if version == _NUMPY_2 and table[_API_NDARRAY] == id(np.ndarray) else None


def _examples() -> list[Array]:
    """Return arrays that differ in all that is read of them."""
    memory = np.zeros(97, np.uint8)
    fixed = np.arange(6, dtype=np.int64).reshape(2, 3)
    fixed.setflags(write=False)
    return [
        np.zeros((), np.float32),
        np.zeros((3, 5, 7), np.float64),
        np.zeros((4, 6), np.int8)[:, ::2],
        np.asfortranarray(np.zeros((2, 3), np.bool_)),
        memory[1:].view(np.float32),
        fixed,
    ]


def _is_laid_out_as_known() -> bool:
    """Return whether arrays, and objects of our own classes, hold what they should where it should be."""
    mark = object()
    try:
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            return all(_is_known_array(memory, array) for array in _examples()) and all(
                _word(memory, id(each) + RECORD_SLOT) == id(mark)
                for each in (_Slotted(mark), _SlottedAndMore(mark))
            )
    except (
        OSError,
        OverflowError,
    ):  # the system does not let us look, or what was taken for an address is none
        return False


def _is_known_array(memory: FileIO, array: Array) -> bool:
    start = id(array)
    shape = _word(memory, start + _SHAPE)
    flags = _word(memory, start + _FLAGS) & 0xFFFFFFFF
    return (
        type(array).__basicsize__ >= _FLAGS + _WORD
        and _word(memory, start + _OBJECT_TYPE) == id(np.ndarray)
        and _word(memory, start + _DATA) == array.ctypes.data
        and _word(memory, start + _RANK) & 0xFFFFFFFF == array.ndim
        and all(_word(memory, shape + _WORD * axis) == extent for axis, extent in enumerate(array.shape))
        and _word(memory, start + _DTYPE) == id(array.dtype)
        and bool(flags & _C_CONTIGUOUS) == array.flags.c_contiguous
        and bool(flags & _ALIGNED) == array.flags.aligned
        and bool(flags & _WRITEABLE) == array.flags.writeable
    )


def _word(memory: FileIO, address: int) -> int:
    """Return the 8 bytes at ``address``; unlike a pointer, the file survives one that is none."""
    return int.from_bytes(os.pread(memory.fileno(), _WORD, address), sys.byteorder)
