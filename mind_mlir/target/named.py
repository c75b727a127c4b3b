"""Targets by name, and whether this machine runs their code."""

from __future__ import annotations

import dataclasses
import functools
import os

from mind_mlir.target.features import FEATURES, scheduled_for, with_implied
from mind_mlir.target.host import host_architecture, host_features, host_target, refused_features
from mind_mlir.target.processors import LEVELS, PROCESSORS
from mind_mlir.target.record import BASELINE, Target

#: The variable that names the target where nothing else does.
VARIABLE = "MIND_MLIR_TARGET"
#: The variable that says whether the rates of this machine are ``measured``, as they are unless it is set, or
#: ``stated``: then all processes on processors of a kind make the same code.
RATES_VARIABLE = "MIND_MLIR_RATES"
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
    """Return a target by its name, one of `TARGETS` or a processor; by default the environment's.

    Those but ``native`` have caches and rates that are stated, so that a program has the same code on any
    machine. The rates of this machine are measured when they are first asked for, and kept beside the cache.

    Raises:
        ValueError: One of the variables ``MIND_MLIR_TARGET`` and ``MIND_MLIR_RATES`` says what it may not.
    """
    if name is None:
        name = environment_target()
    if name == NATIVE:
        return _native() if rates_are_measured() else host_target()
    return _LEVELS[name] if name in _LEVELS else processor_target(name)


def rates_are_measured() -> bool:
    """Return whether the environment lets the rates of this machine be measured.

    Raises:
        ValueError: The variable ``MIND_MLIR_RATES`` says something else.
    """
    word = os.environ.get(RATES_VARIABLE) or "measured"
    if word not in ("measured", "stated"):
        raise ValueError(f"{RATES_VARIABLE} must be measured or stated, not {word!r}")
    return word == "measured"


@functools.cache
def _native() -> Target:
    from mind_mlir.profiling.rates import machine_rates  # noqa: PLC0415 -- which reads this package

    stated, rates = host_target(), machine_rates()
    return stated if rates == stated.rates else dataclasses.replace(stated, rates=rates)


@functools.cache
def processor_target(name: str) -> Target:
    """Return the target that a processor of `PROCESSORS` is."""
    processor = PROCESSORS[name]
    l1, l2, l3 = processor.caches
    base = BASELINE[processor.machine]
    base = dataclasses.replace(base, l1_bytes=l1, l2_bytes=l2, l3_bytes=l3, rates=processor.rates)
    return made(base, processor.features, "" if name in LEVELS[processor.machine] else name)


def least_target() -> Target | None:
    """Return the target that every processor of this machine's architecture is; None of an unknown one."""
    levels = LEVELS.get(host_architecture())
    return processor_target(levels[0]) if levels else None


def made(like: Target, features: frozenset[str], tune: str) -> Target:
    """Return a target that says all its features: those of the highest level that it has, and others.

    Its caches and rates are those of ``like``.
    """
    machine = like.machine
    level = next(name for name in reversed(LEVELS[machine]) if PROCESSORS[name].features <= features)
    further = [name for name in FEATURES[machine] if name in features - PROCESSORS[level].features]
    return dataclasses.replace(
        scheduled_for(BASELINE[machine], features),
        l1_bytes=like.l1_bytes,
        l2_bytes=like.l2_bytes,
        l3_bytes=like.l3_bytes,
        rates=like.rates,
        cpu=level,
        features=tuple(f"+{name}" for name in further),
        tune=tune,
    )


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
