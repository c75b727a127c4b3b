"""The tests of processor features in code: bits of cpuid on x86-64, of the auxiliary vector on Arm.

Features are called as LLVM does, without the sign in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind_mlir.target.processors import LEVELS, PROCESSORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: What the operating system has to save: bits of the register XCR0.
_YMM, _ZMM = 0b110, 0b11100110

#: The numbers of the registers that cpuid answers in.
_EAX, _EBX, _ECX, _EDX = range(4)


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """Something to be asked about a processor.

    Attributes:
        leaf: What cpuid is asked, or the kind of an entry of the auxiliary vector.
        subleaf: The same, in detail; 0 for the vector.
        register: Which register answers; 0 for the vector.
    """

    leaf: int
    subleaf: int = 0
    register: int = 0


#: The register XCR0, which another instruction reads; it is there where cpuid says so.
STATE = Question(-1)
_STATE_IS_THERE = (Question(1, 0, _ECX), 27)


def _bits(question: Question, names: str, state: int = 0) -> dict[str, tuple[Question, int, int]]:
    """Return features by their names, from words such as ``sse3:0``."""
    pairs = (word.split(":") for word in names.split())
    return {name: (question, int(bit), state) for name, bit in pairs}


_X86_64: Mapping[str, tuple[Question, int, int]] = {
    **_bits(Question(1, 0, _ECX), "sse3:0 pclmul:1 ssse3:9 cx16:13 sse4.1:19 sse4.2:20 movbe:22 popcnt:23"),
    **_bits(Question(1, 0, _ECX), "aes:25"),
    **_bits(Question(1, 0, _ECX), "fma:12 avx:28 f16c:29", _YMM),
    **_bits(Question(7, 0, _EBX), "bmi:3 bmi2:8 adx:19 sha:29"),
    **_bits(Question(7, 0, _EBX), "avx2:5", _YMM),
    **_bits(Question(7, 0, _EBX), "avx512f:16 avx512dq:17 avx512ifma:21 avx512cd:28", _ZMM),
    **_bits(Question(7, 0, _EBX), "avx512bw:30 avx512vl:31", _ZMM),
    **_bits(Question(7, 0, _ECX), "gfni:8"),
    **_bits(Question(7, 0, _ECX), "vaes:9 vpclmulqdq:10", _YMM),
    **_bits(Question(7, 0, _ECX), "avx512vbmi:1 avx512vbmi2:6 avx512vnni:11 avx512bitalg:12", _ZMM),
    **_bits(Question(7, 0, _ECX), "avx512vpopcntdq:14", _ZMM),
    **_bits(Question(7, 0, _EDX), "avx512fp16:23", _ZMM),
    **_bits(Question(7, 1, _EAX), "avxvnni:4 avxifma:23", _YMM),
    **_bits(Question(7, 1, _EAX), "avx512bf16:5", _ZMM),
    **_bits(Question(0x80000001, 0, _ECX), "sahf:0 lzcnt:5"),
}

_HWCAP, _HWCAP2 = Question(16), Question(26)
_AARCH64: Mapping[str, tuple[Question, int, int]] = {
    **_bits(_HWCAP, "aes:3 sha2:6 crc:7 lse:8 fullfp16:10 rdm:12 dotprod:20 sve:22 fp16fml:23"),
    **_bits(_HWCAP2, "sve2:1 i8mm:13 bf16:14"),
}
_FEATURES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def questions(machine: str, features: Iterable[str]) -> Sequence[tuple[Question, int]]:
    """Return what to ask a processor, and the bits that all have to be set in the answer.

    Args:
        machine: ``x86_64`` or ``aarch64``.
        features: What code needs.

    Returns:
        The questions in order, that about `STATE` last: it may be asked where the others have been answered
        so. Nothing where no feature is needed.

    Raises:
        KeyError: A feature is not known.
    """
    masks: dict[Question, int] = {}
    state = 0
    for name in features:
        question, bit, needed = _FEATURES[machine][name]
        masks[question] = masks.get(question, 0) | 1 << bit
        state |= needed
    if state:
        question, bit = _STATE_IS_THERE
        masks[question] = masks.get(question, 0) | 1 << bit
    ordered = sorted(masks.items())
    return [*ordered, (STATE, state)] if state else ordered


def in_words(machine: str, features: Iterable[str]) -> str:
    """Return what code needs as people say it: a level of the architecture, and what is beyond that."""
    found = frozenset(features)
    level = next(name for name in reversed(LEVELS[machine]) if PROCESSORS[name].features <= found)
    least = [level] if level != LEVELS[machine][0] else []
    return ", ".join([*least, *sorted(found - PROCESSORS[level].features)])
