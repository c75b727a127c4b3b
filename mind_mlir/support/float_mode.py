"""Fix the mode of floating-point arithmetic of this thread while programs are compiled.

A processor rounds as a register of the thread says, and takes subnormal numbers for zeros if that says so:
loading a library that was linked with ``-ffast-math`` is enough. Compiled code computes as its caller does.
What is computed while a program is read, folded and compiled becomes a part of it, though, and of the cache,
whoever calls it later; so that is done in the mode in which every process begins.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: C's `fenv_t` is no larger on any machine of Linux.
_ENVIRONMENT_BYTES = 64
#: C's `FE_DFL_ENV`, the mode in which processes begin, as glibc and musl have it.
_DEFAULT = ctypes.c_void_p(-1)
_LIBRARIES = (None, "libm.so.6", "libm.so")


@contextmanager
def fixed() -> Iterator[None]:
    """Compute to nearest and with subnormal numbers during the block, in this thread.

    Whatever the mode was it is again afterwards, and what has happened in the block has left no flag.
    """
    functions = _functions()
    if functions is None:
        yield
        return
    read, write = functions
    before = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
    read(before)
    try:
        write(_DEFAULT)
        yield
    finally:
        write(before)


@functools.cache
def _functions() -> tuple[Callable[[object], int], Callable[[object], int]] | None:
    """Return C's `fegetenv` and `fesetenv`; None where code is not compiled."""
    if sys.platform != "linux":
        return None
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            return library.fegetenv, library.fesetenv
        except (AttributeError, OSError):
            continue
    return None
