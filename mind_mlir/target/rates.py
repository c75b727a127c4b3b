"""What a core of a processor does in how much time, as data: what costs of schedules are computed from.

What is measured is rounded coarsely, so that noise changes no code, and no result depends on it: where the
order of a sum is at stake, schedules ask `REFERENCE`, which is the same for all processors.
"""

from __future__ import annotations

import dataclasses
import math

from mind_mlir.support.float_mode import fixed
from mind_mlir.support.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Rates:
    """How long a core takes for what schedules consist of, in nanoseconds.

    Attributes:
        multiply_add_ns: A multiply-add of vectors, of the widest registers.
        vector_ns: Any other operation on vectors.
        l2_byte_ns: A byte that is in the second-level cache.
        l3_byte_ns: A byte that is in the last-level cache.
        byte_ns: A byte that comes from memory or goes there.
        l3_latency_ns: Until a cache line arrives that is in the last-level cache.
        latency_ns: Until one arrives that is in memory.
        streaming_gain: How many times as fast as plain stores those past the cache copy memory.
        measured: Whether these were measured on the machine at hand; else they are stated.
    """

    multiply_add_ns: float = 0.17
    vector_ns: float = 0.2
    l2_byte_ns: float = 0.0125
    l3_byte_ns: float = 0.025
    byte_ns: float = 0.05
    l3_latency_ns: float = 20.0
    latency_ns: float = 80.0
    streaming_gain: float = 1.4
    measured: bool = dataclasses.field(default=False, kw_only=True)

    def rounded(self, near: Rates) -> Rates:
        """Return these with each figure a power of the square root of two, at most four times off ``near``.

        What was disturbed so much that it is further off says nothing about the machine.
        """
        pairs = ((getattr(self, name), getattr(near, name)) for name in FIGURES)
        return Rates(*(_rounded(min(max(one, other / 4), other * 4)) for one, other in pairs), measured=True)

    def in_words(self) -> str:
        """Return the rates for people."""
        nearby = f"L2 {1 / self.l2_byte_ns:.3g} GB/s, L3 {1 / self.l3_byte_ns:.3g}"
        far = f"memory {1 / self.byte_ns:.3g} after {self.latency_ns:.3g}"
        return "; ".join(
            (
                f"a multiply-add {self.multiply_add_ns:.2g} ns, other vectors {self.vector_ns:.2g}",
                f"{nearby} after {self.l3_latency_ns:.3g} ns, {far}",
                f"past the cache {self.streaming_gain:.2g} x",
                "measured" if self.measured else "stated",
            )
        )


#: The names of what is measured.
FIGURES = tuple(each.name for each in dataclasses.fields(Rates) if each.name != "measured")

#: A processor between those in use, which named levels such as ``avx2`` have, too. Whether threads share a
#: sum, and so its order, is decided by these: bits are the same on all machines with the same instructions.
REFERENCE = Rates()


@fixed()
def per_cycle(
    ghz: float,
    multiply_adds: float,
    others: float,
    caches: tuple[float, float],
    latency: float,
    memory: tuple[float, float, float],
) -> Rates:
    """Return the rates of a processor from what its makers and those who measure it state.

    Args:
        ghz: The frequency that vectors run at.
        multiply_adds: Those of the widest vectors that a core begins in a cycle.
        others: The other operations on vectors, about.
        caches: Bytes that come from the second-level cache and the last one in a cycle.
        latency: Cycles until a line of the last-level cache arrives.
        memory: Bytes a nanosecond that a core reads, until a line arrives in nanoseconds, and the gain of
            stores past the cache.
    """
    l2, l3 = caches
    moved, waited, gain = memory
    figures = (
        *(1 / (ghz * multiply_adds), 1 / (ghz * others), 1 / (ghz * l2), 1 / (ghz * l3)),
        *(1 / moved, latency / ghz, waited, gain),
    )
    return Rates(*(float(f"{each:.3g}") for each in figures))


def _rounded(value: float) -> float:
    return float(f"{2 ** (round(2 * math.log2(value)) / 2):.4g}")
