"""The stack that a thread has: MLIR and LLVM go deep, and a process that runs out of it ends."""

from __future__ import annotations

import ctypes
import os
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Twice what programs of ordinary depth were seen to take.
LEAST_BYTES = 1 << 20
#: No system has an attribute of a thread that takes more bytes.
_ATTRIBUTE_BYTES = 256


def check_stack() -> None:
    """Check that this thread, and those that it starts, have stack enough to compile with.

    Raises:
        UnsupportedError: E7103, they have not.
    """
    size = min(_sizes(), default=LEAST_BYTES)
    if size >= LEAST_BYTES:
        return
    raise UnsupportedError(
        Diagnostic(
            "E7103",
            f"compiling takes up to {LEAST_BYTES >> 10} KB of stack, and there are {size >> 10} KB",
            help="raise the limit (ulimit -s), or start the thread after threading.stack_size(8 << 20)",
            context=MappingProxyType({"needed": LEAST_BYTES, "found": size}),
        )
    )


def _sizes() -> Iterator[int]:
    """Yield the sizes of the stacks of this thread and of threads to come, as far as they are known."""
    limit = _limit()
    chosen = threading.stack_size()
    if chosen:
        threading.stack_size(chosen)  # asking has taken it back
        yield chosen
    elif limit is not None:
        yield limit
    if threading.get_native_id() == os.getpid():  # the first thread, whose stack grows up to the limit
        if limit is not None:
            yield limit
        return
    own = _own_size()
    if own:
        yield own


def _limit() -> int | None:
    try:
        import resource  # noqa: PLC0415 -- Windows has none
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _own_size() -> int:
    """Return the size of the stack that this thread was started with; 0 where nobody says it."""
    try:
        library = ctypes.CDLL(None)
        names = ("pthread_getattr_np", "pthread_attr_getstacksize", "pthread_self")
        of_thread, size_of, self_ = (library[name] for name in names)
    except (AttributeError, OSError, TypeError):
        return 0
    self_.restype = ctypes.c_void_p
    attribute, size = ctypes.create_string_buffer(_ATTRIBUTE_BYTES), ctypes.c_size_t()
    if of_thread(ctypes.c_void_p(self_()), attribute):
        return 0
    size_of(attribute, ctypes.byref(size))
    library["pthread_attr_destroy"](attribute)
    return size.value
