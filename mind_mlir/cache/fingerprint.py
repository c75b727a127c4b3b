"""The fingerprint of what code depends on besides the program: this compiler, bindings and the machine.

All is found without loading the bindings, in a few milliseconds, once in a process.

An installer may put another release in the place of the one that runs, of which a part has been loaded: what
this process makes belongs to neither then. Files tell when they have last changed, be it in content or name.
Where one has since loading began, nothing is kept.
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

from mind_mlir.cache.envelope import digest_of
from mind_mlir.support.version import is_older
from mind_mlir.target import host_flags

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import TypeAlias

    #: Files that have been looked at, with when they last changed, and their numbers.
    Seen: TypeAlias = dict[str, tuple[int, int]]

_PACKAGE = Path(__file__).parents[1]
#: Packages whose work is in the canonical module already, or that show it to people: code does not depend on
#: them. There are some hundred files in them, and asking for each takes time.
NO_PART = frozenset(
    (
        *("languages/mind", "languages/programs", "languages/ptir", "languages/stablehlo"),
        *("builders/compositions", "conversion", "numpy", "packaging", "tools", "tracing"),
    )
)
#: The variable that says which bindings are used, and those without it (see `mind_mlir.mlir.bindings`).
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
def compiler_fingerprint() -> bytes | None:
    """Return a digest of this compiler, and of what it computes and makes code with.

    An installer has written down what files it has installed hold; those of a checkout are told by their
    sizes and times.

    Returns:
        The digest of what this process has loaded; None where that is not what the files are now.
    """
    return _look()[0]


def is_as_loaded() -> bool:
    """Return whether `compiler_fingerprint` still tells of all that has been loaded so far, or is to be."""
    try:
        return all(_stamp(os.stat(path)) == stamp for path, stamp in _look()[1].items())  # noqa: PTH116 -- of hundreds
    except OSError:
        return False


@functools.cache
def _look() -> tuple[bytes | None, Seen]:
    seen: Seen = {}
    facts = (
        sys.version,
        _glibc(),
        np.__version__,
        _installed("ml_dtypes", seen),
        _record(_PACKAGE, seen) or sorted(_files(_PACKAGE, (".py", ".mlir"), NO_PART, seen)),
        *_bindings(seen),
    )
    if not all(is_older(changed) for changed, _ in seen.values()):
        return None, seen
    return digest_of(marshal.dumps(facts, 2)).digest(), seen


def _stamp(status: os.stat_result) -> tuple[int, int]:
    """Return when a file last changed, whatever its content says of that, and its number."""
    return status.st_ctime_ns, status.st_ino


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
    directory: Path, suffixes: tuple[str, ...], without: Collection[str], seen: Seen
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
                    seen[each.path] = _stamp(status)
                    yield prefix + name, status.st_size, status.st_mtime_ns
                elif name != "__pycache__" and prefix + name not in without and each.is_dir():
                    pending.append((each.path, f"{prefix}{name}/"))


def _record(package: Path, seen: Seen) -> bytes | None:
    """Return what an installer has written of the content of a package; None where none has installed it."""
    found = _releases(package, seen)
    try:
        if len(found) != 1:
            return None
        path = package.parent / found[0] / "RECORD"
        seen[str(path)] = _stamp(path.stat())
        return path.read_bytes()
    except OSError:
        return None


def _bindings(seen: Seen) -> tuple[str, list[str], list[tuple[str, int, int]]]:
    """Return which bindings there are: their name, their version and their libraries."""
    name = os.environ.get(_BINDINGS, _DEFAULT_BINDINGS)
    found: list[tuple[str, int, int]] = []
    for folder in _folders(name):
        found += sorted(_files(folder / "_mlir_libs", (".so", ".dylib", ".dll", ".pyd"), (), seen))
    return name, _installed(name, seen), found


def has_bindings() -> bool:
    """Return whether there are bindings of MLIR that programs could be compiled with."""
    return bool(_folders(os.environ.get(_BINDINGS, _DEFAULT_BINDINGS)))


def _installed(package: str, seen: Seen) -> list[str]:
    """Return what an installer calls the release of a package, which is not loaded for that."""
    return [name for folder in _folders(package) for name in _releases(folder, seen)]


def _releases(package: Path, seen: Seen) -> list[str]:
    """Return what stands beside a package that an installer has written about it."""
    start, end = f"{package.name}-", ".dist-info"
    with suppress(OSError), os.scandir(package.parent) as found:
        releases = [each for each in found if each.name.startswith(start) and each.name.endswith(end)]
        seen.update((each.path, _stamp(each.stat())) for each in releases)
        return sorted(each.name for each in releases)
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
