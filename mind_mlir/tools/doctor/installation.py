"""Findings about packages, the machine, its limits, the cache and the variables of the environment."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.cache.directory import LIMIT, PLACE, SWITCH, cache_directory, size_limit, store_for
from mind_mlir.cache.inspection import look_through, problem_of
from mind_mlir.diagnostics.display import size_text
from mind_mlir.diagnostics.tracebacks import VARIABLE as TRACEBACK
from mind_mlir.image.perf import VARIABLE as PERF
from mind_mlir.runtime import threads
from mind_mlir.runtime.options import INTERPRET, environment_interprets
from mind_mlir.support.resources import memory_left, memory_limit, quota_cores, usable_cores
from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.target import VARIABLE as TARGET
from mind_mlir.target import environment_target, host_flags, named_target, rates_are_measured
from mind_mlir.target.named import RATES_VARIABLE
from mind_mlir.target.tile_state import SWITCH as AMX
from mind_mlir.target.tile_state import refusal_in_words
from mind_mlir.tools.doctor.report import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PACKAGE = "mind-mlir"
#: Packages of others that some parts take programs or weights from.
_OPTIONAL = ("jax", "torch", "onnx", "capstone", "pyelftools", "llvmlite", "pygls")
#: The variables of the environment that mean something, with what checks them.
VARIABLES: dict[str, Callable[[], object] | None] = {
    SWITCH: store_for,
    PLACE: store_for,
    LIMIT: size_limit,
    threads.VARIABLE: threads.get_num_threads,
    TARGET: environment_target,
    RATES_VARIABLE: rates_are_measured,
    INTERPRET: environment_interprets,
    AMX: None,
    PERF: None,
    TRACEBACK: None,
    "MIND_MLIR_BINDINGS": None,
}


def versions() -> Iterator[Finding]:
    """Yield the versions of Python, of this package, and of those that it stands on or can work with."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    yield Finding("versions", "python", python)
    yield _version(_PACKAGE)
    for line in requires(_PACKAGE) or ():
        requirement, *extra = line.split(";")
        if not extra:
            name = requirement.partition("=")[0].rstrip("<>!~= ").strip()
            yield _version(name, requirement.strip())
    for name in _OPTIONAL:
        yield _version(name, optional=True)


def _version(name: str, requirement: str = "", *, optional: bool = False) -> Finding:
    try:
        return Finding("versions", name, version(name))
    except PackageNotFoundError:
        trouble = "" if optional else f"it is missing: pip install '{requirement or name}'"
        return Finding("versions", name, "not installed", trouble)


def machine() -> Iterator[Finding]:
    """Yield the system, the processor as schedules see it, and how much of both this process may use."""
    libc = " ".join(platform.libc_ver()).strip()
    yield Finding("machine", "system", " ".join(filter(None, (platform.platform(terse=True), libc))))
    try:
        target = named_target()
    except ValueError as error:
        yield Finding("machine", "processor", "unknown", str(error))
    else:
        yield Finding("machine", "processor", target.in_words().replace("\n", "; "))
    tiles = refusal_in_words(host_flags())
    if tiles:
        yield Finding("machine", "tiles", tiles)
    quota = quota_cores()
    granted = "no quota" if quota is None else f"a quota of {quota}"
    yield Finding("machine", "cores", f"{usable_cores()} of {os.cpu_count()}, {granted}")
    yield _threads()
    left = memory_left()
    free = "unknown" if left is None else size_text(left)
    yield Finding("machine", "memory", f"at most {size_text(memory_limit())}, {free} of it free")
    compiler = os.environ.get("CC") or shutil.which("cc")
    yield Finding("machine", "C compiler", compiler or "none: --emit=shared needs one")


def _threads() -> Finding:
    try:
        count = threads.get_num_threads()
    except ValueError as error:
        return Finding("machine", "threads", "unknown", str(error))
    if not threads.is_available():
        return Finding(
            "machine", "threads", "1", "there is no pool of threads on this system: loops run on one"
        )
    return Finding("machine", "threads", str(count))


def cache() -> Iterator[Finding]:
    """Yield where compiled code is kept, and whether it can be."""
    try:
        place = cache_directory() if store_for() else None
        limit = size_limit()
    except ValueError as error:
        yield Finding("cache", "directory", "unknown", str(error))
        return
    if place is None:
        yield Finding("cache", "directory", f"none: {SWITCH} is off, or this user has no home")
        return
    problem = problem_of(Path(place))
    yield Finding("cache", "directory", place, problem or "")
    if problem is None:
        found = look_through(Path(place))
        useless = sum(each.problem is not None for each in found)
        held = (
            f"{len(found)} entries, {size_text(sum(each.file.size for each in found))} of {size_text(limit)}"
        )
        trouble = f"{useless} entries are of no use: mind-mlir cache verify --remove" if useless else ""
        yield Finding("cache", "holds", held, trouble)


def variables() -> Iterator[Finding]:
    """Yield the variables of the environment that are about this package."""
    named = [name for name in sorted(os.environ) if name.startswith("MIND_MLIR_")]
    for name in named:
        yield Finding("environment", name, os.environ[name], _variable_trouble(name))
    if not named:
        yield Finding("environment", "MIND_MLIR_*", "none is set")


def _variable_trouble(name: str) -> str:
    if name not in VARIABLES:
        return f"there is no such variable{did_you_mean(name, VARIABLES)}"
    check = VARIABLES[name]
    try:
        if check is not None:
            check()
    except ValueError as error:
        return str(error)
    return ""
