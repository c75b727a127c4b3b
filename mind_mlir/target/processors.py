"""Processors by name, as data: what they have beyond the least of their architecture, and their caches.

Names are LLVM's. Those of x86-64 are grouped by what their makers added from one to the next.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.target.rates import REFERENCE, Rates, per_cycle
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
        rates: How long a core takes for what, stated.
    """

    machine: str
    features: frozenset[str]
    caches: tuple[int, int, int] = (_BASE.l1_bytes, _BASE.l2_bytes, _BASE.l3_bytes)
    rates: Rates = REFERENCE


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

# Rates are about those that makers' manuals and measurements by others state, and what is between where they
# differ: of servers with all cores at work. That of multiply-adds counts the widest vectors.
_INTEL_CLIENT = per_cycle(3.5, 2, 2, (30, 20), 40, (16, 80, 1.4))
_INTEL_SKYLAKE_SERVER = per_cycle(2.7, 2, 1.8, (45, 9), 70, (12, 90, 1.2))
_INTEL_ICE_LAKE_SERVER = per_cycle(2.9, 2, 1.8, (45, 9), 75, (12, 95, 1.2))
_INTEL_SAPPHIRE_RAPIDS = per_cycle(3.3, 2, 1.8, (45, 8), 125, (12, 120, 1.2))
_AMD_ZEN_1 = per_cycle(3.2, 1, 1.8, (20, 15), 40, (18, 90, 1.4))
_AMD_ZEN_2 = per_cycle(3.3, 2, 1.8, (25, 20), 40, (20, 95, 1.4))
_AMD_ZEN_3 = per_cycle(3.5, 2, 1.8, (25, 22), 48, (22, 90, 1.4))
_AMD_ZEN_4 = per_cycle(3.7, 1, 1.8, (24, 24), 50, (35, 100, 1.4))
_AMD_ZEN_5 = per_cycle(4.0, 2, 1.8, (48, 24), 50, (40, 110, 1.4))
_NEOVERSE_1 = per_cycle(3.0, 2, 1.8, (25, 10), 90, (18, 100, 1.4))
_NEOVERSE_2 = per_cycle(3.0, 4, 3.6, (40, 12), 90, (25, 110, 1.4))

PROCESSORS: Mapping[str, Processor] = {
    "x86-64": Processor(X86_64, frozenset()),
    "x86-64-v2": Processor(X86_64, _V2),
    "x86-64-v3": Processor(X86_64, _V3),
    "x86-64-v4": Processor(X86_64, _V4),
    "haswell": Processor(X86_64, _HASWELL, (32 * _KB, 256 * _KB, 8 * _MB), _INTEL_CLIENT),
    "broadwell": Processor(X86_64, _BROADWELL, (32 * _KB, 256 * _KB, 8 * _MB), _INTEL_CLIENT),
    "skylake": Processor(X86_64, _BROADWELL, (32 * _KB, 256 * _KB, 8 * _MB), _INTEL_CLIENT),
    "skylake-avx512": Processor(
        X86_64, _SKYLAKE_SERVER, (32 * _KB, 1 * _MB, 16 * _MB), _INTEL_SKYLAKE_SERVER
    ),
    "cascadelake": Processor(X86_64, _CASCADE_LAKE, (32 * _KB, 1 * _MB, 16 * _MB), _INTEL_SKYLAKE_SERVER),
    "icelake-server": Processor(X86_64, _ICE_LAKE, (48 * _KB, 1280 * _KB, 32 * _MB), _INTEL_ICE_LAKE_SERVER),
    "sapphirerapids": Processor(
        X86_64, _SAPPHIRE_RAPIDS, (48 * _KB, 2 * _MB, 32 * _MB), _INTEL_SAPPHIRE_RAPIDS
    ),
    "emeraldrapids": Processor(
        X86_64, _SAPPHIRE_RAPIDS, (48 * _KB, 2 * _MB, 64 * _MB), _INTEL_SAPPHIRE_RAPIDS
    ),
    "alderlake": Processor(X86_64, _ALDER_LAKE, (32 * _KB, 1 * _MB, 16 * _MB), _INTEL_CLIENT),
    "znver1": Processor(X86_64, _ZEN, (32 * _KB, 512 * _KB, 8 * _MB), _AMD_ZEN_1),
    "znver2": Processor(X86_64, _ZEN, (32 * _KB, 512 * _KB, 16 * _MB), _AMD_ZEN_2),
    "znver3": Processor(X86_64, _ZEN_3, (32 * _KB, 512 * _KB, 32 * _MB), _AMD_ZEN_3),
    "znver4": Processor(X86_64, _ZEN_4, (32 * _KB, 1 * _MB, 32 * _MB), _AMD_ZEN_4),
    "znver5": Processor(X86_64, _ZEN_5, (48 * _KB, 1 * _MB, 32 * _MB), _AMD_ZEN_5),
    "generic": Processor(AARCH64, frozenset()),
    "cortex-a53": Processor(AARCH64, _CORTEX_A72, (32 * _KB, 256 * _KB, 1 * _MB)),
    "cortex-a72": Processor(AARCH64, _CORTEX_A72, (32 * _KB, 512 * _KB, 2 * _MB)),
    "cortex-a76": Processor(AARCH64, _NEOVERSE_N1, (64 * _KB, 512 * _KB, 2 * _MB)),
    "neoverse-n1": Processor(AARCH64, _NEOVERSE_N1, (64 * _KB, 1 * _MB, 32 * _MB), _NEOVERSE_1),
    "neoverse-n2": Processor(AARCH64, _NEOVERSE_V2, (64 * _KB, 1 * _MB, 32 * _MB), _NEOVERSE_2),
    "neoverse-v1": Processor(AARCH64, _NEOVERSE_V1, (64 * _KB, 1 * _MB, 32 * _MB), _NEOVERSE_2),
    "neoverse-v2": Processor(AARCH64, _NEOVERSE_V2, (64 * _KB, 2 * _MB, 64 * _MB), _NEOVERSE_2),
}

#: The least processor of each architecture, as LLVM calls it, and those of its levels upwards.
LEVELS: Mapping[str, tuple[str, ...]] = {
    X86_64: ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"),
    AARCH64: ("generic",),
}


def nearest(machine: str, features: frozenset[str], caches: tuple[int, int, int]) -> Processor:
    """Return the processor that one with these features and caches is most like.

    A feature counts as much as a cache of twice the size. Tiles do not, which systems may keep to themselves.
    """

    def distance(processor: Processor) -> float:
        others = {name for name in features ^ processor.features if not name.startswith("amx-")}
        sizes = zip(caches[:2], processor.caches, strict=False)
        return len(others) + sum(abs(math.log2(max(1, one) / other)) for one, other in sizes)

    return min((each for each in PROCESSORS.values() if each.machine == machine), key=distance)
