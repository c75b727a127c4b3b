"""What this machine can do: multiply-adds, and bytes from each level of memory, a second.

Loops of native code measure that once: in registers and in the caches that each core has with one thread,
from there on with those that are set. It is kept beside the cache of compiled code, by processor and threads.
"""

from __future__ import annotations

import functools
import json
import os
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.cache.directory import cache_directory, store_for
from mind_mlir.cache.fingerprint import machine_fingerprint
from mind_mlir.outputs.files import write_file
from mind_mlir.profiling.native_loops import STEP, NativeLoops
from mind_mlir.runtime.threads import get_num_threads
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.speed_ups import attempted
from mind_mlir.target import host_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.profiling.rows import Work

_FILE, _VERSION = "machine.json", 2
_CHUNKS, _STEPS = 64, 100_000
#: Seconds of the processor's time that each loop is tried for, and calls at least.
_SECONDS, _CALLS = 0.02, 5
_MEMORY_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What so many threads of a machine do at most.

    Attributes:
        threads: How many.
        multiply_adds: Operations a second on f32, two in each multiply-add; on f64 half as many.
        levels: For data of at most so many bytes, the bytes a second that are read and written.
    """

    threads: int
    multiply_adds: float
    levels: tuple[tuple[int, float], ...]

    def bytes_rate(self, size: int) -> float:
        """Return at how many bytes a second data of ``size`` bytes are moved."""
        return next((rate for most, rate in self.levels if size <= most), self.levels[-1][1])

    def seconds(self, work: Work, threads: int) -> float:
        """Return the least seconds of ``work`` with so many of the threads; 0.0 if that is not known."""
        share = max(1, min(threads, self.threads)) / self.threads
        moved = work.bytes / (self.bytes_rate(work.bytes) * share) if work.bytes else 0.0
        computed = self._computed(work)
        return 0.0 if work.is_product and not computed else max(moved, computed / share)

    def binds(self, work: Work) -> str:
        """Return what limits ``work``: ``compute``, ``memory``, or nothing that is known."""
        computed = self._computed(work)
        if not work.bytes or (work.is_product and not computed):
            return ""
        return "compute" if computed > work.bytes / self.bytes_rate(work.bytes) else "memory"

    def _computed(self, work: Work) -> float:
        """Return the least seconds that ``work`` computes with all threads; 0.0 if that is not known."""
        relative = _OF_F32.get(work.element, 0.0 if work.is_product else _OF_INTEGERS.get(work.element, 0.0))
        return work.operations / (self.multiply_adds * relative) if relative else 0.0


#: How many multiply-adds are done for one of f32, by the type of elements; of others that is not known.
_OF_F32 = {"f32": 1.0, "f64": 0.5}
#: The same for other arithmetic than products, which have instructions of their own: a vector of integers
#: takes an instruction, as one of floats does.
_OF_INTEGERS = {"i8": 4.0, "i16": 2.0, "i32": 1.0, "i64": 0.5}


def machine_limits() -> Limits:
    """Return what this machine can do with the threads that are set, as it was measured once."""
    return _limits(get_num_threads())


@functools.cache
def _limits(threads: int) -> Limits:
    key = f"{machine_fingerprint().hex()[:16]} {threads}"
    file = _kept_in()
    kept = {} if file is None else _read(file)
    if key in kept:
        found = attempted(lambda: _from_json(kept[key]))
        if found is not None:
            return found
    measured = _measured(threads)
    if file is not None:
        text = json.dumps({**kept, "version": _VERSION, key: asdict(measured)}, indent=1)
        attempted(lambda: _write(file, text))
    return measured


def _measured(threads: int) -> Limits:
    """Measure what so many threads can do: the best of some rounds."""
    target, loops = host_target(), NativeLoops()
    operations = 2 * loops.vector_bytes // 4 * STEP * _STEPS
    body = "fma" if target.fma else "compute"
    fused = threads * operations / _best(partial(loops.run, body, [0, 0, _STEPS], 1))
    memory = np.ones(2 * _MEMORY_BYTES + loops.vector_bytes, np.uint8)
    source = -(-memory.ctypes.data // loops.vector_bytes) * loops.vector_bytes
    levels = []
    for size in (target.l1_bytes, target.l2_bytes):  # which each core has
        rate = max(_rate(loops, source, size // 4, body, 1) for body in _BODIES)
        levels.append((size * threads, rate * threads))
    for size in (min(target.l3_bytes, _MEMORY_BYTES), 1 << 62):
        half = min(size // 4, _MEMORY_BYTES)
        rate = max(_rate(loops, source, half, body, count) for body in _BODIES for count in (1, _CHUNKS))
        levels.append((size, rate))
    return Limits(threads, fused, tuple(levels))


#: What moves bytes, each with how often a byte of data is moved.
_BODIES = {"read": 1, "ask": 1, "copy": 2, "stream": 2}


def _rate(loops: NativeLoops, source: int, size: int, body: str, chunks: int) -> float:
    """Return how many bytes a second a loop over ``size`` bytes moves; it goes over small ones again."""
    step = loops.vector_bytes * STEP
    steps = max(1, size // chunks // step)
    again = max(1, (1 << 20) // size)
    data = [source, source + _MEMORY_BYTES, steps]
    moved = again * chunks * steps * step * _BODIES[body]
    return moved / _best(partial(loops.run, body, data, chunks, again))


def _best(call: Callable[[], object]) -> float:
    """Return the seconds of the quickest of some calls; the processor's time says when there were enough."""
    best, end, calls = float("inf"), time.process_time() + _SECONDS, 0
    while calls < _CALLS or time.process_time() < end:
        start = time.perf_counter()
        call()
        best, calls = min(best, time.perf_counter() - start), calls + 1
    return best


def _kept_in() -> Path | None:
    store = attempted(store_for)
    directory = cache_directory()
    return None if store is None or directory is None else Path(directory) / _FILE


def _read(file: Path) -> dict[str, object]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("version") == _VERSION else {}


def _write(file: Path, text: str) -> None:
    os.makedirs(file.parent, exist_ok=True)  # noqa: PTH103 -- as the store does
    write_file(file, text.encode())


def _from_json(kept: object) -> Limits:
    assert isinstance(kept, dict)
    levels = tuple((int(size), float(rate)) for size, rate in kept["levels"])
    return Limits(int(kept["threads"]), float(kept["multiply_adds"]), levels)
