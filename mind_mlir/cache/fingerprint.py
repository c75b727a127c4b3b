"""What the code of a program depends on besides the program: this compiler, the bindings and the machine.

All is found without loading the bindings, in a few milliseconds, once in a process.
"""

from __future__ import annotations

import functools
import importlib.util
import marshal
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.cache.digests import digest_of
from mind_mlir.target import host_flags

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_PACKAGE = Path(__file__).parents[1]
#: Packages whose work is in the canonical module already, or that show it to people: code does not depend on
#: them. There are some hundred files in them, and asking for each takes time.
NO_PART = frozenset(
    (
        *("cli", "conversion", "frontends", "numpy", "packaging", "programs", "ptir", "stablehlo"),
        *("staging", "surface", "tracing"),
    )
)
#: The variable that says which bindings are used, and those without it (see `mind_mlir.bindings`).
_BINDINGS, _DEFAULT_BINDINGS = "MIND_MLIR_BINDINGS", "torch_mlir"
_CPUINFO = Path("/proc/cpuinfo")
#: What of a processor its code may depend on, as Linux calls it.
_FACTS = frozenset(
    (
        *("vendor_id", "cpu family", "model", "stepping", "flags"),
        *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
    )
)
_READ_BYTES = 1 << 14


@functools.cache
def compiler_fingerprint() -> bytes:
    """Return a digest of this compiler, and of what it computes and makes code with.

    An installer has written down what files it has installed hold; those of a checkout are told by their
    sizes and times.
    """
    facts = (
        sys.version,
        _glibc(),
        np.__version__,
        _installed("ml_dtypes"),
        _record(_PACKAGE) or sorted(_files(_PACKAGE, (".py", ".mlir"), NO_PART)),
        *_bindings(),
    )
    return digest_of(marshal.dumps(facts, 2)).digest()


@functools.cache
def machine_fingerprint() -> bytes:
    """Return a digest of this processor: code for the machine at hand uses all that it has."""
    lines = _processor()
    return digest_of(marshal.dumps((platform.machine(), sys.platform, lines), 2)).digest()


def _processor() -> list[str]:
    """Return what there is to say about the first processor."""
    try:
        with _CPUINFO.open(encoding="utf-8", errors="replace", buffering=_READ_BYTES) as file:
            lines = []
            for line in file:
                if not line.strip():
                    break
                lines.append(line.strip())
    except OSError:
        return sorted(host_flags())
    return [line for line in lines if line.partition(":")[0].strip() in _FACTS]


def _files(
    directory: Path, suffixes: tuple[str, ...], without: Collection[str] = ()
) -> Iterator[tuple[str, int, int]]:
    """Yield the files below ``directory``, but for some folders in it, with their sizes and times."""
    pending = [(str(directory), "")]
    while pending:
        folder, prefix = pending.pop()
        with suppress(OSError), os.scandir(folder) as found:
            for each in found:
                name = each.name
                if name.endswith(suffixes):
                    status = each.stat()
                    yield prefix + name, status.st_size, status.st_mtime_ns
                elif name != "__pycache__" and prefix + name not in without and each.is_dir():
                    pending.append((each.path, f"{prefix}{name}/"))


def _record(package: Path) -> bytes | None:
    """Return what an installer has written of the content of a package; None where none has installed it."""
    found = _releases(package)
    try:
        return Path(package.parent, found[0], "RECORD").read_bytes() if len(found) == 1 else None
    except OSError:
        return None


def _bindings() -> tuple[str, list[str], list[tuple[str, int, int]]]:
    """Return which bindings there are: their name, their version and their libraries."""
    name = os.environ.get(_BINDINGS, _DEFAULT_BINDINGS)
    found: list[tuple[str, int, int]] = []
    for folder in _folders(name):
        found += sorted(_files(folder / "_mlir_libs", (".so", ".dylib", ".dll", ".pyd")))
    return name, _installed(name), found


def _installed(package: str) -> list[str]:
    """Return what an installer calls the release of a package, which is not loaded for that."""
    return [name for folder in _folders(package) for name in _releases(folder)]


def _releases(package: Path) -> list[str]:
    """Return what stands beside a package that an installer has written about it."""
    start, end = f"{package.name}-", ".dist-info"
    with suppress(OSError), os.scandir(package.parent) as found:
        return sorted(each.name for each in found if each.name.startswith(start) and each.name.endswith(end))
    return []


def _folders(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]


def _glibc() -> str | None:
    """Return the version of the C library, whose functions constants are folded with."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, OSError, ValueError):
        return None
