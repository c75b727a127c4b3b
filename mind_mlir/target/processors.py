"""Processors by name, as data: what they have beyond the least of their architecture, and their caches.

Names are LLVM's. Those of x86-64 are grouped by what their makers added from one to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.target.record import AARCH64, BASELINE, X86_64

if TYPE_CHECKING:
    from collections.abc import Mapping

_KB, _MB = 1 << 10, 1 << 20
_BASE = BASELINE[X86_64]


class Processor(NamedTuple):
    """A processor.

    Attributes:
        machine: Its architecture.
        features: What it has.
        caches: Its data caches: of a core, of a core, and the last as seen from a core, in bytes.
    """

    machine: str
    features: frozenset[str]
    caches: tuple[int, int, int] = (_BASE.l1_bytes, _BASE.l2_bytes, _BASE.l3_bytes)


def _set(base: frozenset[str] = frozenset(), more: str = "") -> frozenset[str]:
    return base | frozenset(more.split())


_V2 = _set(more="cx16 sahf popcnt sse3 ssse3 sse4.1 sse4.2")
_V3 = _set(_V2, "avx avx2 bmi bmi2 f16c fma lzcnt movbe")
_V4 = _set(_V3, "avx512f avx512bw avx512cd avx512dq avx512vl")
_HASWELL = _set(_V3, "aes pclmul")
_BROADWELL = _set(_HASWELL, "adx")
_SKYLAKE_SERVER = _set(_BROADWELL, "avx512f avx512bw avx512cd avx512dq avx512vl")
_CASCADE_LAKE = _set(_SKYLAKE_SERVER, "avx512vnni")
_ICE_LAKE = _set(
    _CASCADE_LAKE,
    "avx512ifma avx512vbmi avx512vbmi2 avx512bitalg avx512vpopcntdq gfni sha vaes vpclmulqdq",
)
_SAPPHIRE_RAPIDS = _set(_ICE_LAKE, "avx512bf16 avx512fp16 avxvnni amx-tile amx-bf16 amx-int8")
_ALDER_LAKE = _set(_BROADWELL, "avxvnni gfni sha vaes vpclmulqdq")
_ZEN = _set(_BROADWELL, "sha")
_ZEN_3 = _set(_ZEN, "vaes vpclmulqdq")
_ZEN_4 = _set(_ZEN_3 | _ICE_LAKE, "avx512bf16")
_ZEN_5 = _set(_ZEN_4, "avxvnni")

_ARM_8 = _set(more="crc")
_CORTEX_A72 = _set(_ARM_8, "aes sha2")
_NEOVERSE_N1 = _set(_CORTEX_A72, "lse rdm fullfp16 dotprod")
_NEOVERSE_V1 = _set(_NEOVERSE_N1, "fp16fml bf16 i8mm sve")
_NEOVERSE_V2 = _set(_NEOVERSE_V1, "sve2")

PROCESSORS: Mapping[str, Processor] = {
    "x86-64": Processor(X86_64, frozenset()),
    "x86-64-v2": Processor(X86_64, _V2),
    "x86-64-v3": Processor(X86_64, _V3),
    "x86-64-v4": Processor(X86_64, _V4),
    "haswell": Processor(X86_64, _HASWELL, (32 * _KB, 256 * _KB, 8 * _MB)),
    "broadwell": Processor(X86_64, _BROADWELL, (32 * _KB, 256 * _KB, 8 * _MB)),
    "skylake": Processor(X86_64, _BROADWELL, (32 * _KB, 256 * _KB, 8 * _MB)),
    "skylake-avx512": Processor(X86_64, _SKYLAKE_SERVER, (32 * _KB, 1 * _MB, 16 * _MB)),
    "cascadelake": Processor(X86_64, _CASCADE_LAKE, (32 * _KB, 1 * _MB, 16 * _MB)),
    "icelake-server": Processor(X86_64, _ICE_LAKE, (48 * _KB, 1280 * _KB, 32 * _MB)),
    "sapphirerapids": Processor(X86_64, _SAPPHIRE_RAPIDS, (48 * _KB, 2 * _MB, 32 * _MB)),
    "emeraldrapids": Processor(X86_64, _SAPPHIRE_RAPIDS, (48 * _KB, 2 * _MB, 64 * _MB)),
    "alderlake": Processor(X86_64, _ALDER_LAKE, (32 * _KB, 1 * _MB, 16 * _MB)),
    "znver1": Processor(X86_64, _ZEN, (32 * _KB, 512 * _KB, 8 * _MB)),
    "znver2": Processor(X86_64, _ZEN, (32 * _KB, 512 * _KB, 16 * _MB)),
    "znver3": Processor(X86_64, _ZEN_3, (32 * _KB, 512 * _KB, 32 * _MB)),
    "znver4": Processor(X86_64, _ZEN_4, (32 * _KB, 1 * _MB, 32 * _MB)),
    "znver5": Processor(X86_64, _ZEN_5, (48 * _KB, 1 * _MB, 32 * _MB)),
    "generic": Processor(AARCH64, frozenset()),
    "cortex-a53": Processor(AARCH64, _CORTEX_A72, (32 * _KB, 256 * _KB, 1 * _MB)),
    "cortex-a72": Processor(AARCH64, _CORTEX_A72, (32 * _KB, 512 * _KB, 2 * _MB)),
    "cortex-a76": Processor(AARCH64, _NEOVERSE_N1, (64 * _KB, 512 * _KB, 2 * _MB)),
    "neoverse-n1": Processor(AARCH64, _NEOVERSE_N1, (64 * _KB, 1 * _MB, 32 * _MB)),
    "neoverse-n2": Processor(AARCH64, _NEOVERSE_V2, (64 * _KB, 1 * _MB, 32 * _MB)),
    "neoverse-v1": Processor(AARCH64, _NEOVERSE_V1, (64 * _KB, 1 * _MB, 32 * _MB)),
    "neoverse-v2": Processor(AARCH64, _NEOVERSE_V2, (64 * _KB, 2 * _MB, 64 * _MB)),
}

#: The least processor of each architecture, as LLVM calls it, and those of its levels upwards.
LEVELS: Mapping[str, tuple[str, ...]] = {
    X86_64: ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"),
    AARCH64: ("generic",),
}
