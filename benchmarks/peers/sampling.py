"""Times of a call, what else the machine was doing meanwhile, page faults, memory and errors."""

from __future__ import annotations

import gc
import os
import resource
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.peers.draws import Array

_STATUS = Path("/proc/self/status")
_TICKS = os.sysconf("SC_CLK_TCK")

#: Seconds of calls before anything is timed.
_WARM = 0.1
#: The fewest samples, and the seconds after which fewer have to do.
_FEWEST, _LONGEST = 10, 4.0
#: Calls shorter than this are timed several at once, so that the clock does not count.
_SAMPLE = 30e-6
#: The share of a core that others may use while a sample is taken, and how often it is taken anew.
_OTHERS, _ATTEMPTS = 0.12, 3


@dataclass(frozen=True, slots=True)
class Sample:
    """One stretch of calls.

    Attributes:
        seconds: Median of one call.
        faults: Minor page faults of one call.
        others: Cores, of those that this process may use, that other processes used meanwhile.
    """

    seconds: float
    faults: float
    others: float


def sample(call: Callable[[], Any], seconds: float) -> Sample:
    """Time ``call`` for about ``seconds``; again where other processes were in the way."""
    found = []
    for _ in range(_ATTEMPTS):
        found.append(_sample(call, seconds))
        if found[-1].others <= _OTHERS:
            break
        time.sleep(0.5)
    return min(found, key=lambda each: each.seconds)


def _sample(call: Callable[[], Any], seconds: float) -> Sample:
    inner = max(1, min(1000, round(_SAMPLE / _warm_up(call))))
    times = []
    gc.collect()
    gc.disable()
    busy, own, faults, begin = _busy_seconds(), time.process_time(), _faults(), time.perf_counter()
    while True:
        start = time.perf_counter()
        for _ in range(inner):
            call()
        end = time.perf_counter()
        times.append((end - start) / inner)
        if end - begin >= (seconds if len(times) >= _FEWEST else _LONGEST):
            break
    wall = time.perf_counter() - begin
    others = (_busy_seconds() - busy - (time.process_time() - own)) / wall
    calls = len(times) * inner
    found = Sample(statistics.median(times), (_faults() - faults) / calls, max(0.0, others))
    gc.enable()
    return found


def _warm_up(call: Callable[[], Any]) -> float:
    """Call for a while; return the seconds of the last call."""
    begin = time.perf_counter()
    while True:
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        if end - begin > _WARM:
            return end - start


def _busy_seconds() -> float:
    """Return the seconds that the processors of this process have worked, or were kept from it."""
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    ticks = 0
    for name, *fields in map(str.split, Path("/proc/stat").read_text().splitlines()):
        if name in ours:
            user, nice, system, _idle, _waiting, irq, softirq, steal = map(int, fields[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks / _TICKS


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def relative_error(found: Sequence[Array], expected: Sequence[Array]) -> float:
    """Return the largest error of any output, relative to the largest element of its reference."""
    worst = 0.0
    for array, reference in zip(found, expected, strict=True):
        assert array.shape == reference.shape, (array.shape, reference.shape)
        scale = max(float(np.abs(reference).max()), 1e-30)
        worst = max(worst, float(np.abs(array.astype(np.float64) - reference).max()) / scale)
    return worst


def resident_bytes() -> int:
    """Return how much memory of this process is resident now."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """Return the most memory that has been resident since `forget_peak`."""
    return _status("VmHWM")


def file_bytes() -> int:
    """Return how much of `resident_bytes` are pages of files: code, for the most part."""
    return _status("RssFile")


def forget_peak() -> None:
    """Let `peak_bytes` start anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(field: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) << 10
