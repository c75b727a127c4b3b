"""What the schedules need to know about the processor that will run the code.

A :class:`Target` is data: schedules are pure functions of shapes, dtypes and a target, so that the same
program scheduled for the same target gives the same module on every machine. :func:`host_target` detects
the features of the machine at hand; processors announce themselves under misleading model names, so names
are never looked at.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclasses.dataclass(frozen=True)
class Target:
    """A processor as the schedules see it.

    Attributes:
        vector_bytes: width of the widest vector register in bytes.
        vector_registers: number of vector registers.
        fma: whether multiply and add fuse into one instruction.
        half: whether f16 and f32 convert into each other in one instruction, subnormal numbers included.
        masks: whether loads and stores take a mask for the cost of plain ones (AVX-512, SVE).
        scales: whether an instruction multiplies floats by powers of two and rounds once (AVX-512).
        bf16_dots: whether an instruction adds products of pairs of bf16 to accumulators of f32 (AVX512_BF16).
        integer_dots: the same for pairs of i16 and for four bytes, with accumulators of i32 (AVX512_VNNI).
        l1_bytes: first-level data cache of one core, in bytes.
        l2_bytes: second-level cache of one core, in bytes.
        l3_bytes: last-level cache as seen from one core, in bytes.
        cpu: what LLVM calls the least processor that runs the code; empty: the one that compiles it.
        features: what that one has, as LLVM says it; empty with ``cpu``.
    """

    vector_bytes: int = 16
    vector_registers: int = 16
    fma: bool = False
    half: bool = False
    masks: bool = False
    scales: bool = False
    bf16_dots: bool = False
    integer_dots: bool = False
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 8 << 20
    cpu: str = ""
    features: tuple[str, ...] = ()

    def lanes(self, element_bits: int) -> int:
        """Return how many elements of ``element_bits`` bits fill one vector register (at least one)."""
        return max(1, self.vector_bytes * 8 // element_bits)


#: The least that each architecture promises: what is used when nothing can be detected.
BASELINE = {
    "x86_64": Target(),
    "AMD64": Target(),
    "aarch64": Target(vector_registers=32, fma=True, half=True),
    "arm64": Target(vector_registers=32, fma=True, half=True),
}


#: The variable that names the target where nothing else does.
VARIABLE = "MIND_MLIR_TARGET"
#: The machine at hand.
NATIVE = "native"
_LEVELS = {
    "sse": Target(cpu="x86-64", features=("+sse2",)),
    "avx2": Target(*(32, 16), fma=True, half=True, cpu="x86-64-v3", features=("+avx2", "+fma", "+f16c")),
    "avx512": Target(
        *(64, 32),
        fma=True,
        half=True,
        masks=True,
        scales=True,
        cpu="x86-64-v4",
        features=("+avx2", "+fma", "+f16c", "+avx512f", "+avx512bw", "+avx512cd", "+avx512dq", "+avx512vl"),
    ),
}
#: The names of targets.
TARGETS = (NATIVE, *_LEVELS)


def named_target(name: str | None = None) -> Target:
    """Return a target by its name, one of `TARGETS`; by default the one that the environment names.

    Those but ``native`` have caches of a fixed size, so that a program has the same code on any machine.

    Raises:
        ValueError: The variable ``MIND_MLIR_TARGET`` names no target.
    """
    if name is None:
        name = os.environ.get(VARIABLE) or NATIVE
        if name not in TARGETS:
            raise ValueError(f"{VARIABLE} must be one of {', '.join(TARGETS)}, not {name!r}")
    return host_target() if name == NATIVE else _LEVELS[name]


def runs_here(target: Target) -> bool:
    """Return whether this machine runs code for ``target``."""
    if not target.cpu:
        return True
    # Linux names features as LLVM does; a machine without AVX is one of the lowest level.
    needed = {feature.removeprefix("+") for feature in target.features}
    return platform.machine() in ("x86_64", "AMD64") and needed <= (_host_flags() | {"sse2"})


def runnable_target(name: str | None = None) -> Target:
    """Return a target by its name, as `named_target` does; it is one that this machine runs code for.

    Raises:
        ValueError: The variable ``MIND_MLIR_TARGET`` names no target, or this machine lacks instructions of
            the target.
    """
    target = named_target(name)
    if not runs_here(target):
        what, asked = ("target", name) if name is not None else (VARIABLE, os.environ.get(VARIABLE))
        able = ", ".join(other for other in TARGETS if runs_here(named_target(other)))
        raise ValueError(
            f"{what} must be one of {able}, which this machine runs code for; "
            f"code for {asked!r} can be printed here, but not run"
        )
    return target


def target_from_features(machine: str, flags: frozenset[str], caches: dict[int, int] | None = None) -> Target:
    """Return the target of an architecture name, its feature flags and its caches.

    Args:
        machine: architecture as :func:`platform.machine` spells it.
        flags: feature flags as Linux lists them in ``/proc/cpuinfo``.
        caches: size in bytes of each data cache level of a core, where known.
    """
    target = BASELINE.get(machine, Target())
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        target = dataclasses.replace(
            target,
            vector_bytes=64,
            vector_registers=32,
            fma=True,
            masks=True,
            scales=True,
            bf16_dots="avx512_bf16" in flags,
            integer_dots="avx512_vnni" in flags,
        )
    elif "avx2" in flags:
        target = dataclasses.replace(target, vector_bytes=32, vector_registers=16, fma="fma" in flags)
    sizes = caches or {}
    return dataclasses.replace(
        target,
        half=target.half or "f16c" in flags,
        l1_bytes=sizes.get(1, target.l1_bytes),
        l2_bytes=sizes.get(2, target.l2_bytes),
        l3_bytes=sizes.get(3, target.l3_bytes),
    )


@functools.cache
def host_target() -> Target:
    """Return the target of this machine; the baseline of its architecture where nothing can be read."""
    return target_from_features(platform.machine(), _host_flags(), _host_caches())


def _host_flags() -> frozenset[str]:
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def _host_caches() -> dict[int, int]:
    sizes: dict[int, int] = {}
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
