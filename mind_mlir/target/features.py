"""The features that processors may have beyond the least of their architecture, as data.

Features are called as LLVM does, without a sign. Only those are here that code generators use by
themselves or schedules ask for: code is made for these alone, so that what it needs is known.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.target.record import AARCH64, X86_64, Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Feature(NamedTuple):
    """A feature that a processor may have.

    Attributes:
        linux: What Linux calls it in ``/proc/cpuinfo``: all of these words are there.
        implies: Features that it is never without.
    """

    linux: tuple[str, ...]
    implies: tuple[str, ...] = ()


def _features(table: str) -> Mapping[str, Feature]:
    """Return features from lines such as ``avx2: avx2 > avx``: the name, Linux's names, what is implied."""
    found = {}
    for line in table.strip().splitlines():
        name, _, rest = line.strip().partition(": ")
        linux, _, implied = rest.partition(" > ")
        found[name] = Feature(tuple(linux.split()), tuple(implied.split()))
    return found


#: The features of each architecture; none implies one below it.
FEATURES: Mapping[str, Mapping[str, Feature]] = {
    X86_64: _features(
        """
        cx16: cx16
        sahf: lahf_lm
        popcnt: popcnt
        sse3: pni
        ssse3: ssse3 > sse3
        sse4.1: sse4_1 > ssse3
        sse4.2: sse4_2 > sse4.1
        aes: aes
        pclmul: pclmulqdq
        sha: sha_ni
        gfni: gfni
        lzcnt: abm
        bmi: bmi1
        bmi2: bmi2
        movbe: movbe
        adx: adx
        avx: avx > sse4.2
        f16c: f16c > avx
        fma: fma > avx
        avx2: avx2 > avx
        avxvnni: avx_vnni > avx2
        avxifma: avx_ifma > avx2
        vaes: vaes > aes avx2
        vpclmulqdq: vpclmulqdq > avx pclmul
        avx512f: avx512f > avx2 f16c fma
        avx512cd: avx512cd > avx512f
        avx512bw: avx512bw > avx512f
        avx512dq: avx512dq > avx512f
        avx512vl: avx512vl > avx512f
        avx512ifma: avx512ifma > avx512f
        avx512vbmi: avx512vbmi > avx512bw
        avx512vbmi2: avx512_vbmi2 > avx512bw
        avx512vnni: avx512_vnni > avx512f
        avx512bitalg: avx512_bitalg > avx512bw
        avx512vpopcntdq: avx512_vpopcntdq > avx512f
        avx512bf16: avx512_bf16 > avx512bw
        avx512fp16: avx512_fp16 > avx512bw avx512dq avx512vl
        """
    ),
    AARCH64: _features(
        """
        aes: aes
        sha2: sha1 sha2
        crc: crc32
        lse: atomics
        rdm: asimdrdm
        fullfp16: fphp asimdhp
        fp16fml: asimdfhm > fullfp16
        dotprod: asimddp
        bf16: bf16
        i8mm: i8mm
        sve: sve > fullfp16
        sve2: sve2 > sve
        """
    ),
}


def with_implied(machine: str, names: Iterable[str]) -> frozenset[str]:
    """Return features and all that they imply."""
    table, found = FEATURES[machine], set(names)
    for name in reversed(tuple(table)):
        if name in found:
            found.update(table[name].implies)
    return frozenset(found)


def without(machine: str, names: Iterable[str], removed: str) -> frozenset[str]:
    """Return those of ``names`` that are neither ``removed`` nor imply it."""
    return frozenset(name for name in names if removed not in with_implied(machine, [name]))


def features_of_flags(machine: str, flags: frozenset[str]) -> frozenset[str]:
    """Return the features of a processor of which Linux lists ``flags``."""
    table = FEATURES.get(machine, {})
    return frozenset(name for name, feature in table.items() if flags.issuperset(feature.linux))


def scheduled_for(base: Target, features: frozenset[str]) -> Target:
    """Return ``base`` with what schedules use of ``features``, which need not be complete."""
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= features:
        base = dataclasses.replace(
            base,
            vector_bytes=64,
            vector_registers=32,
            fma=True,
            masks=True,
            scales=True,
            bf16_dots="avx512bf16" in features,
            integer_dots="avx512vnni" in features,
        )
    elif "avx2" in features:
        base = dataclasses.replace(base, vector_bytes=32, vector_registers=16, fma="fma" in features)
    return dataclasses.replace(base, half=base.half or "f16c" in features)
