"""The processor of this machine, by what the system says of it.

Processors announce themselves under misleading model names, so names are never looked at.
"""

from __future__ import annotations

import dataclasses
import functools
import platform
from pathlib import Path

from mind_mlir.target.announced import announced_caches, announced_flags
from mind_mlir.target.features import features_of_flags, scheduled_for, with_implied
from mind_mlir.target.record import BASELINE, Target

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def host_architecture() -> str:
    """Return the architecture of this machine as targets spell it, or else as the system does."""
    machine = platform.machine()
    return BASELINE[machine].machine if machine in BASELINE else machine


@functools.cache
def host_flags() -> frozenset[str]:
    """Return what this machine's processor has, as Linux calls it; nothing where nobody says it."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return announced_flags(host_architecture())
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def host_features() -> frozenset[str]:
    """Return what this machine's processor has, as LLVM calls it, with all that it implies."""
    machine = host_architecture()
    found = features_of_flags(machine, host_flags())
    return frozenset(name for name in found if with_implied(machine, [name]) <= found)


def missing_features(features: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Return those of ``features``, in LLVM's words, that this machine's processor lacks, in their order."""
    return tuple(name for name in features if name not in host_features())


def target_from_features(machine: str, flags: frozenset[str], caches: dict[int, int] | None = None) -> Target:
    """Return the target of an architecture name, its feature flags and its caches.

    Args:
        machine: architecture as :func:`platform.machine` spells it.
        flags: feature flags as Linux lists them in ``/proc/cpuinfo``.
        caches: size in bytes of each data cache level of a core, where known.
    """
    base = BASELINE.get(machine, Target())
    target = scheduled_for(base, features_of_flags(base.machine, flags))
    sizes = caches or {}
    return dataclasses.replace(
        target,
        l1_bytes=sizes.get(1, target.l1_bytes),
        l2_bytes=sizes.get(2, target.l2_bytes),
        l3_bytes=sizes.get(3, target.l3_bytes),
    )


@functools.cache
def host_target() -> Target:
    """Return the target of this machine; the baseline of its architecture where nothing can be read."""
    return target_from_features(platform.machine(), host_flags(), _host_caches())


def _host_caches() -> dict[int, int]:
    sizes: dict[int, int] = {}
    if not _CACHES.is_dir():
        return announced_caches()
    try:
        for index in sorted(_CACHES.glob("index*")):
            if (index / "type").read_text().strip() == "Instruction":
                continue
            sizes[int((index / "level").read_text())] = _size((index / "size").read_text().strip())
    except (OSError, ValueError):
        return {}
    return sizes


def _size(text: str) -> int:
    if text[-1:] in _SUFFIX:
        return int(text[:-1]) * _SUFFIX[text[-1]]
    return int(text)
