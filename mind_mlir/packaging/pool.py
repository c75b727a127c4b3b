"""The pool of threads as a part of a library for C: the runtime's texts under names of their own."""

from __future__ import annotations

import re

from mind_mlir.runtime.kept_images import runtime_text
from mind_mlir.target.abi import PARALLEL_SYMBOL

#: What C calls to set the number of threads: ``void (i32)``.
SET_THREADS = "mind.pool.set_num_threads"
#: Where the address of what runs loops is, a pointer that whoever loads the library may replace.
RUNNER = "mind.pool.runner"

_PREFIX = "mind.pool."
_C_TEXT = "threads_c"
_DEFINED = re.compile(r"^llvm\.(?:func (?:internal )?@(\w+)\(.*\{|mlir\.global .*?@(\w+)\(.*)$", re.MULTILINE)
_DECLARED = re.compile(r"^llvm\.func @(\w+)\(.*[^{]$", re.MULTILINE)


def pool_text(machine: str) -> str:
    """Return the pool for ``x86_64`` or ``aarch64`` as text of the LLVM dialect.

    It defines `PARALLEL_SYMBOL`, for the code of the program, and `SET_THREADS`. All its functions are to be
    made internal.
    """
    names = ("threads", "threads_workers", f"threads_{machine}")
    text = runtime_text(*names).replace(f"@{PARALLEL_SYMBOL}(", "@parallel(")
    text += runtime_text(_C_TEXT)
    for name in sorted({function or data for function, data in _DEFINED.findall(text)} - {PARALLEL_SYMBOL}):
        text = re.sub(rf"@{name}\b", f"@{_PREFIX}{name}", text)
    return text


def called_functions(machine: str) -> tuple[str, ...]:
    """Return the functions of the C library that the pool calls."""
    return tuple(sorted(set(_DECLARED.findall(pool_text(machine)))))
