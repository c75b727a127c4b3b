"""Targets by name, and whether this machine runs their code."""

from __future__ import annotations

import dataclasses
import os

from mind_mlir.target.features import with_implied
from mind_mlir.target.host import host_architecture, host_features, host_target, refused_features
from mind_mlir.target.processors import PROCESSORS
from mind_mlir.target.record import BASELINE, Target

#: The variable that names the target where nothing else does.
VARIABLE = "MIND_MLIR_TARGET"
#: The machine at hand.
NATIVE = "native"
_AVX512 = Target(
    *(64, 32),
    fma=True,
    half=True,
    masks=True,
    scales=True,
    cpu="x86-64-v4",
    features=("+avx2", "+fma", "+f16c", "+avx512f", "+avx512bw", "+avx512cd", "+avx512dq", "+avx512vl"),
)
_DOTS, _TILES = ("+avx512bf16", "+avx512vnni"), ("+amx-tile", "+amx-bf16", "+amx-int8")
#: The first processor that has tiles; no later one has smaller caches.
_WITH_TILES = PROCESSORS["sapphirerapids"]
_LEVELS = {
    "sse": Target(cpu="x86-64", features=("+sse2",)),
    "avx2": Target(*(32, 16), fma=True, half=True, cpu="x86-64-v3", features=("+avx2", "+fma", "+f16c")),
    "avx512": _AVX512,
    "amx": dataclasses.replace(
        _AVX512,
        bf16_dots=True,
        integer_dots=True,
        bf16_tiles=True,
        integer_tiles=True,
        features=(*_AVX512.features, *_DOTS, *_TILES),
        l1_bytes=_WITH_TILES.caches[0],
        l2_bytes=_WITH_TILES.caches[1],
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
        name = environment_target()
    return host_target() if name == NATIVE else _LEVELS[name]


def environment_target() -> str:
    """Return the name of the target that the environment asks for, ``native`` by default.

    Raises:
        ValueError: The variable ``MIND_MLIR_TARGET`` names no target.
    """
    name = os.environ.get(VARIABLE) or NATIVE
    if name not in TARGETS:
        raise ValueError(f"{VARIABLE} must be one of {', '.join(TARGETS)}, not {name!r}")
    return name


def required_features(target: Target) -> tuple[str, ...]:
    """Return what code for ``target`` needs beyond the least of its architecture, in alphabetical order.

    These are LLVM's names, those that others imply among them. Of a target that is this machine, whatever
    that is, they are all that this machine has.
    """
    if not target.cpu:
        return tuple(sorted(host_features()))
    further = {feature.removeprefix("+") for feature in target.features} - {"sse2"}
    return tuple(sorted(with_implied(target.machine, PROCESSORS[target.cpu].features | further)))


def runs_here(target: Target) -> bool:
    """Return whether this machine runs code for ``target``."""
    if not target.cpu:
        return True
    return target.machine == host_architecture() and host_features().issuperset(required_features(target))


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
        why = f"; {refused}" if target.bf16_tiles and (refused := refused_features()) else ""
        raise ValueError(
            f"{what} must be one of {able}, which this machine runs code for; "
            f"code for {asked!r} can be printed here, but not run{why}"
        )
    return target


def triple_of(target: Target) -> str:
    """Return what LLVM calls the architecture and the system of ``target``: Linux on it."""
    return f"{BASELINE[target.machine].machine}-unknown-linux-gnu"
