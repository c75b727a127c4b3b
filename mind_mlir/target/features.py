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


class Question(NamedTuple):
    """Something to be asked about a processor.

    Attributes:
        leaf: What cpuid is asked, or the kind of an entry of the auxiliary vector.
        subleaf: The same, in detail; 0 for the vector.
        register: Which register answers: eax, ebx, ecx or edx by their numbers; 0 for the vector.
    """

    leaf: int
    subleaf: int = 0
    register: int = 0


class Feature(NamedTuple):
    """A feature that a processor may have.

    Attributes:
        linux: What Linux calls it in ``/proc/cpuinfo``: all of these words are there.
        question: What has an answer in which a bit tells of each of the words.
        bits: The bits.
        implies: Features that it is never without.
    """

    linux: tuple[str, ...]
    question: Question
    bits: tuple[int, ...]
    implies: tuple[str, ...]


#: The entries of the auxiliary vector that tell of features, and the registers of cpuid.
_ENTRIES = {"hwcap": Question(16), "hwcap2": Question(26)}
_REGISTERS = ("eax", "ebx", "ecx", "edx")


def _features(table: str) -> Mapping[str, Feature]:
    """Return features from lines such as ``avx2: avx2 @ 7.ebx 5 > avx``.

    That is the name, Linux's names, where a processor says it and by which bits, and what is implied. Leaves
    of cpuid are hexadecimal, and followed by the subleaf where that is not 0.
    """
    found = {}
    for line in table.strip().splitlines():
        name, _, rest = line.strip().partition(": ")
        linux, _, rest = rest.partition(" @ ")
        where, _, implied = rest.partition(" > ")
        place, *bits = where.split()
        question = _ENTRIES.get(place)
        if question is None:
            leaf, _, register = place.rpartition(".")
            leaf, _, subleaf = leaf.partition(".")
            question = Question(int(leaf, 16), int(subleaf or 0), _REGISTERS.index(register))
        found[name] = Feature(tuple(linux.split()), question, tuple(map(int, bits)), tuple(implied.split()))
    return found


#: The features of each architecture; none implies one below it.
FEATURES: Mapping[str, Mapping[str, Feature]] = {
    X86_64: _features(
        """
        cx16: cx16 @ 1.ecx 13
        sahf: lahf_lm @ 80000001.ecx 0
        popcnt: popcnt @ 1.ecx 23
        sse3: pni @ 1.ecx 0
        ssse3: ssse3 @ 1.ecx 9 > sse3
        sse4.1: sse4_1 @ 1.ecx 19 > ssse3
        sse4.2: sse4_2 @ 1.ecx 20 > sse4.1
        aes: aes @ 1.ecx 25
        pclmul: pclmulqdq @ 1.ecx 1
        sha: sha_ni @ 7.ebx 29
        gfni: gfni @ 7.ecx 8
        lzcnt: abm @ 80000001.ecx 5
        bmi: bmi1 @ 7.ebx 3
        bmi2: bmi2 @ 7.ebx 8
        movbe: movbe @ 1.ecx 22
        adx: adx @ 7.ebx 19
        avx: avx @ 1.ecx 28 > sse4.2
        f16c: f16c @ 1.ecx 29 > avx
        fma: fma @ 1.ecx 12 > avx
        avx2: avx2 @ 7.ebx 5 > avx
        avxvnni: avx_vnni @ 7.1.eax 4 > avx2
        avxifma: avx_ifma @ 7.1.eax 23 > avx2
        vaes: vaes @ 7.ecx 9 > aes avx2
        vpclmulqdq: vpclmulqdq @ 7.ecx 10 > avx pclmul
        avx512f: avx512f @ 7.ebx 16 > avx2 f16c fma
        avx512cd: avx512cd @ 7.ebx 28 > avx512f
        avx512bw: avx512bw @ 7.ebx 30 > avx512f
        avx512dq: avx512dq @ 7.ebx 17 > avx512f
        avx512vl: avx512vl @ 7.ebx 31 > avx512f
        avx512ifma: avx512ifma @ 7.ebx 21 > avx512f
        avx512vbmi: avx512vbmi @ 7.ecx 1 > avx512bw
        avx512vbmi2: avx512_vbmi2 @ 7.ecx 6 > avx512bw
        avx512vnni: avx512_vnni @ 7.ecx 11 > avx512f
        avx512bitalg: avx512_bitalg @ 7.ecx 12 > avx512bw
        avx512vpopcntdq: avx512_vpopcntdq @ 7.ecx 14 > avx512f
        avx512bf16: avx512_bf16 @ 7.1.eax 5 > avx512bw
        avx512fp16: avx512_fp16 @ 7.edx 23 > avx512bw avx512dq avx512vl
        amx-tile: amx_tile @ 7.edx 24
        amx-bf16: amx_bf16 @ 7.edx 22 > amx-tile
        amx-int8: amx_int8 @ 7.edx 25 > amx-tile
        """
    ),
    AARCH64: _features(
        """
        aes: aes @ hwcap 3
        sha2: sha1 sha2 @ hwcap 5 6
        crc: crc32 @ hwcap 7
        lse: atomics @ hwcap 8
        rdm: asimdrdm @ hwcap 12
        fullfp16: fphp asimdhp @ hwcap 9 10
        fp16fml: asimdfhm @ hwcap 23 > fullfp16
        dotprod: asimddp @ hwcap 20
        bf16: bf16 @ hwcap2 14
        i8mm: i8mm @ hwcap2 13
        sve: sve @ hwcap 22 > fullfp16
        sve2: sve2 @ hwcap2 1 > sve
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
            bf16_tiles="amx-bf16" in features,
            integer_tiles="amx-int8" in features,
        )
    elif "avx2" in features:
        base = dataclasses.replace(base, vector_bytes=32, vector_registers=16, fma="fma" in features)
    return dataclasses.replace(base, half=base.half or "f16c" in features)
