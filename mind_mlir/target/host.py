"""The processor of this machine, by what the system says of it.

Processors announce themselves under misleading model names, so names are never looked at. Of systems that
show no files, the C library is asked: when a process starts, glibc asks the processor itself, and which
registers the kernel keeps; what it calls active may be used. On 64-bit Arm the kernel hands over two words.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.target.features import FEATURES, features_of_flags, scheduled_for, with_implied
from mind_mlir.target.processors import nearest
from mind_mlir.target.record import BASELINE, X86_64, Target
from mind_mlir.target.tile_state import refusal_in_words, usable_flags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.target.features import Question


_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def host_architecture() -> str:
    """Return the architecture of this machine as targets spell it, or else as the system does."""
    machine = platform.machine()
    return BASELINE[machine].machine if machine in BASELINE else machine


@functools.cache
def host_flags() -> frozenset[str]:
    """Return what this machine's processor has, as Linux calls it; nothing where nobody says it.

    Tiles are not among it where Linux does not let this process use them, which is asked for here.
    """
    return usable_flags(_processor_flags())


def refused_features() -> str:
    """Return, for people, which features of this machine's processor this process may not use; or nothing."""
    return refusal_in_words(_processor_flags())


@functools.cache
def _processor_flags() -> frozenset[str]:
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
    features = features_of_flags(base.machine, flags)
    target = scheduled_for(base, features)
    sizes = caches or {}
    given = (target.l1_bytes, target.l2_bytes, target.l3_bytes)
    l1, l2, l3 = (sizes.get(level, size) for level, size in enumerate(given, 1))
    rates = nearest(base.machine, features, (l1, l2, l3)).rates
    return dataclasses.replace(target, l1_bytes=l1, l2_bytes=l2, l3_bytes=l3, rates=rates)


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


#: The numbers that glibc gives the questions of cpuid.
_LEAVES = {(1, 0): 0, (7, 0): 1, (0x80000001, 0): 2, (7, 1): 6}
#: Data caches of one core by level, as glibc's ``sysconf`` numbers their sizes. Of the last it says how large
#: it is for all cores together.
_ANNOUNCED_CACHES: Mapping[int, int] = {1: 188, 2: 191}


def announced_flags(machine: str) -> frozenset[str]:
    """Return what the processor has, as Linux calls it; nothing where the C library does not say it."""
    word = _active if machine == X86_64 else _auxiliary
    return frozenset(
        name
        for feature in FEATURES.get(machine, {}).values()
        for name, bit in zip(feature.linux, feature.bits, strict=True)
        if word(feature.question) >> bit & 1
    )


def announced_caches() -> dict[int, int]:
    """Return the size in bytes of each data cache level of a core, where the C library says it."""
    found = {}
    for level, name in _ANNOUNCED_CACHES.items():
        try:
            size = os.sysconf(name) if _function("gnu_get_libc_version") is not None else 0
        except (AttributeError, OSError, ValueError):
            continue
        if size > 0:
            found[level] = size
    return found


def _active(question: Question) -> int:
    """Return the features among the answers of cpuid that may be used."""
    leaf_of = _function("__x86_get_cpuid_feature_leaf")
    if leaf_of is None:  # of glibc before 2.33, or of another C library
        return 0
    leaf_of.restype = ctypes.POINTER(ctypes.c_uint32 * 8)  # four registers, and what of them is active
    found = leaf_of(ctypes.c_uint(_LEAVES[question.leaf, question.subleaf]))
    return int(found.contents[4 + question.register]) if found else 0


def _auxiliary(question: Question) -> int:
    getauxval = _function("getauxval")
    if getauxval is None:
        return 0
    getauxval.restype = ctypes.c_ulong
    return int(getauxval(ctypes.c_ulong(question.leaf)))


def _function(name: str) -> ctypes._NamedFuncPointer | None:
    try:
        return ctypes.CDLL(None)[name]
    except (AttributeError, OSError, TypeError):  # such as Windows
        return None
