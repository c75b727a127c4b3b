"""`Network`: what connects processes, as a person states it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields

from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean

_NUMBER = re.compile(r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*([A-Za-z/]*)", re.ASCII)
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
#: Bytes a second, by the unit: bytes, and bits, of which eight are a byte.
_RATES = {
    **{f"{prefix}B/s": factor for prefix, factor in _PREFIXES.items()},
    **{f"{prefix}iB/s": 1024.0**power for power, prefix in enumerate(_PREFIXES) if prefix},
    **{f"{prefix}bit/s": factor / 8 for prefix, factor in _PREFIXES.items()},
}
_BYTES = [unit for unit in _RATES if unit.endswith("B/s")]
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, slots=True)
class Network:
    """What connects the processes that run a program.

    As a text, ``"bandwidth=12.5GB/s,latency=5us,per_host=2"``: rates are in B/s, KB/s, MB/s, GB/s, TB/s, the
    same with ``iB`` or ``bit``, times in s, ms, us or ns.

    Attributes:
        bandwidth: Bytes a second that leave a host, and as many that come, at the same time.
        latency: Seconds that a message to another host takes besides.
        per_host: How many processes a host has, in order of their numbers.
        local_bandwidth: Bytes a second between the processes of a host, all together; None for a quarter of
            what its memory moves: each is read and written twice, into memory that both processes see and out
            of it.
        local_latency: Seconds that a message within a host takes besides.
    """

    bandwidth: float
    latency: float = 0.0
    per_host: int = 1
    local_bandwidth: float | None = None
    local_latency: float = 0.0

    def __post_init__(self) -> None:
        for name in ("bandwidth", "local_bandwidth", "latency", "local_latency"):
            value, least = getattr(self, name), "positive" if "bandwidth" in name else "at least 0"
            if value is None and name == "local_bandwidth":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                argument_checks.reject(name, "a number", value)
            if not math.isfinite(value) or value < 0 or (value == 0 and least == "positive"):
                raise ValueError(f"{name} must be {least} and finite, not {value}")
        if argument_checks.integer(self.per_host, "per_host") < 1:
            raise ValueError(f"per_host must be positive, not {self.per_host}")

    @classmethod
    def parse(cls, text: str) -> Network:
        """Return the network that a text states.

        Raises:
            ValueError: It is none; the message says why.
        """
        names = [each.name for each in fields(cls)]
        found: dict[str, float] = {}
        for part in text.split(","):
            name, _, value = (each.strip() for each in part.partition("="))
            if name not in names:
                raise ValueError(f"a network has no '{name}'{did_you_mean(name, names)}: {', '.join(names)}")
            if name in found:
                raise ValueError(f"{name} comes twice")
            found[name] = _number(name, value)
        if "bandwidth" not in found:
            raise ValueError("a network must have a bandwidth, as in bandwidth=12.5GB/s,latency=5us")
        return cls(**found)  # type: ignore[arg-type]  # per_host is an integer, as `_number` sees to


def size_of(text: str) -> int:
    """Return how many bytes a text says, such as ``64GB`` (ValueError: it says none)."""
    return int(_with_unit("a size", text, {unit.removesuffix("/s"): _RATES[unit] for unit in _BYTES}, "64GB"))


def _number(name: str, text: str) -> float:
    """Return a figure without its unit."""
    if name == "per_host":
        if not text.isdecimal():
            raise ValueError(f"per_host must be a number of processes, not '{text}'")
        return int(text)
    is_rate = "bandwidth" in name
    return _with_unit(name, text, _RATES if is_rate else _SECONDS, "12.5GB/s" if is_rate else "5us")


def _with_unit(name: str, text: str, units: Mapping[str, float], example: str) -> float:
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] not in units:
        known = ", ".join(units)
        raise ValueError(
            f"{name} must be a number with a unit, as in {example}, not '{text}'; units are {known}"
        )
    return float(found[1]) * units[found[2]]
