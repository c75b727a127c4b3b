"""The target of an artefact: of an architecture or level, a processor and single features, all by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mind_mlir.support import argument_checks
from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.target.features import FEATURES, with_implied, without
from mind_mlir.target.host import host_architecture, host_features, host_target
from mind_mlir.target.named import (
    NATIVE,
    TARGETS,
    environment_target,
    made,
    named_target,
    processor_target,
    required_features,
)
from mind_mlir.target.processors import LEVELS, PROCESSORS
from mind_mlir.target.record import AARCH64, X86_64, Target

if TYPE_CHECKING:
    from collections.abc import Iterable

_SYSTEM = "linux"
#: The names of targets of artefacts: this machine, levels of x86-64, and the systems that code is made for.
ARTEFACT_TARGETS = (*TARGETS, f"{X86_64}-{_SYSTEM}", f"{AARCH64}-{_SYSTEM}")
#: A system in full: the architecture, a vendor, the system, its C library.
_TRIPLE = re.compile(r"(x86_64|amd64|aarch64|arm64)(?:-(?:unknown|pc|none))?-linux(?:-gnu)?", re.IGNORECASE)
_SPELLINGS = {"amd64": X86_64, "arm64": AARCH64}


def processors_of(machine: str) -> tuple[str, ...]:
    """Return the names of the processors of an architecture."""
    return tuple(name for name, processor in PROCESSORS.items() if processor.machine == machine)


def artefact_target(target: object = None, *, cpu: object = None, features: object = None) -> Target:
    """Return the target of an artefact; it says what its code needs, also where that is this machine.

    Args:
        target: One of `ARTEFACT_TARGETS`, or a system as compilers spell it, such as
            ``aarch64-unknown-linux-gnu``; by default the one that the environment names, or this machine. A
            system without a processor is the least of its architecture.
        cpu: A processor as LLVM calls it, or ``native``; only where ``target`` is a system or this machine.
        features: Features to add to what that has, or to take away, such as ``+avx512vnni,-fma``.

    Raises:
        TypeError: One of these is no string.
        ValueError: There is no such target, processor or feature, or they do not go together.
    """
    name = environment_target() if target is None and cpu is None else NATIVE
    name = name if target is None else argument_checks.text(target, "target")
    machine, found = _base(name, None if cpu is None else argument_checks.text(cpu, "target_cpu"))
    if features is not None:
        found = _changed(machine, found, argument_checks.text(features, "features"))
    return found


def _base(name: str, cpu: str | None) -> tuple[str, Target]:
    """Return the architecture that a target's name says, and the target that it is with a processor."""
    system = _TRIPLE.fullmatch(name)
    if system is None and name not in TARGETS:
        raise _unknown("target", ARTEFACT_TARGETS, name)
    if system is None and name != NATIVE:
        if cpu is not None:
            raise ValueError(
                f"target_cpu cannot be given with target {name!r}, which says what processors have"
            )
        return X86_64, named_target(name)
    machine = host_architecture()
    if system is not None:
        spelled = system[1].lower()
        machine = _SPELLINGS.get(spelled, spelled)
    if machine not in FEATURES:
        raise ValueError(
            f"target must be a system, such as {ARTEFACT_TARGETS[-1]}: this machine is a {machine}"
        )
    if cpu is None:
        cpu = LEVELS[machine][0] if system is not None else NATIVE
    return machine, _processor(machine, cpu)


def _processor(machine: str, cpu: str) -> Target:
    if cpu == NATIVE:
        if machine != host_architecture():
            raise ValueError(
                f"target_cpu cannot be 'native' for {machine}: this machine is a {host_architecture()}"
            )
        return made(host_target(), host_features(), "")
    processor = PROCESSORS.get(cpu)
    if processor is None:
        raise _unknown("target_cpu", (NATIVE, *processors_of(machine)), cpu)
    if processor.machine != machine:
        raise ValueError(
            f"target_cpu must be a processor of {machine}, not {cpu!r}; "
            f"say target {processor.machine}-{_SYSTEM} for that"
        )
    return processor_target(cpu)


def _changed(machine: str, target: Target, changes: str) -> Target:
    """Return ``target`` with features added and taken away, one change after the other."""
    found = frozenset(required_features(target))
    for change in filter(None, (word.strip() for word in changes.split(","))):
        sign, name = change[0], change[1:]
        if sign not in "+-":
            raise ValueError(f"features must each begin with + or -, such as +{change}, not {change!r}")
        if name not in FEATURES[machine]:
            raise _unknown(f"features of {machine}", FEATURES[machine], name)
        found = with_implied(machine, found | {name}) if sign == "+" else without(machine, found, name)
    return made(target, found, target.tune)


def _unknown(parameter: str, known: Iterable[str], wrong: str) -> ValueError:
    """Return the error about a name that is none of those known, with the one that it is most like."""
    names = tuple(known)
    hint = did_you_mean(wrong, names, "'")
    return ValueError(
        f"{parameter} must be one of {', '.join(names)}, not {argument_checks.describe(wrong)}{hint}"
    )
