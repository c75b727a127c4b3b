"""The rates of this machine: measured when they are first asked for, and kept beside the cache.

Where nothing can be kept, each process would measure something else: the stated rates of the processor that
this one is most like take their place then, so that a program has the same code in all processes.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.cache.directory import cache_directory, store_for
from mind_mlir.cache.fingerprint import machine_fingerprint
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.speed_ups import attempted
from mind_mlir.target.host import host_target
from mind_mlir.target.rates import FIGURES, Rates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.profiling.native_loops import NativeLoops

#: What is measured anew by a release that measures something else.
_VERSION = 1
#: Seconds that a loop in registers and caches is tried for, and its steps; how often one over memory is.
_SECONDS, _STEPS, _ROUNDS = 0.002, 30_000, 3
#: Bytes that are read and written to measure memory: a last-level cache of more than half of them hides it.
_MEMORY_BYTES = 64 << 20
#: Bytes of the last-level cache that are gone through, the most lines in a ring, how many are followed at a
#: time, and their bytes.
_SHARED_BYTES, _RING, _LINKS, _LINE = 8 << 20, 1 << 16, 1 << 10, 64


def machine_rates() -> Rates:
    """Return the rates of this machine: those that are kept, or else measured and kept from now on.

    Where nothing can be measured or kept, they are the stated ones.
    """
    file = attempted(_file)
    if file is None:
        return host_target().rates
    if not attempted(file.exists):
        attempted(partial(_keep, file, anew=False))
    return attempted(partial(_read, file)) or host_target().rates


def measure_anew() -> None:
    """Measure the rates of this machine and keep them, whatever was kept before.

    Raises:
        OSError: They cannot be kept.
        ValueError: One of the variables about the cache is wrong.
    """
    file = _file()
    if file is None:
        raise FileNotFoundError("there is no cache to keep rates in")
    _keep(file, anew=True)


def _keep(file: Path, *, anew: bool) -> None:
    """Measure, and write ``file``: unless that is to be done ``anew``, the first who does decides for all."""
    beside = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="utf-8") as written:  # before time is spent on what cannot be kept
            found = _measured()
            json.dump({name: getattr(found, name) for name in FIGURES}, written, indent=1)
        if anew or not _linked_to(beside, file):
            beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def _linked_to(beside: Path, file: Path) -> bool:
    """Call what is at ``beside`` ``file``, unless something is so; return whether it is then."""
    try:
        os.link(beside, file)
    except FileExistsError:
        return True
    except OSError:  # a file system without links
        return False
    return True


def _file() -> Path | None:
    """Return where the rates of this machine are kept; None where there is no cache."""
    directory = cache_directory()
    if store_for() is None or directory is None:
        return None
    return Path(directory) / f"rates-{_VERSION}-{machine_fingerprint().hex()[:16]}.json"


@fixed()
def _read(file: Path) -> Rates | None:
    """Return the rates that are kept; None where they cannot be such."""
    kept = json.loads(file.read_bytes())
    figures = [float(kept[name]) for name in FIGURES]
    is_sound = all(math.isfinite(each) and each > 0 for each in figures)
    return Rates(*figures).rounded(host_target().rates) if is_sound else None


def _measured() -> Rates:
    """Measure the rates, with one thread."""
    from mind_mlir.profiling.native_loops import STEP, NativeLoops  # noqa: PLC0415 -- loads the compiler

    target = host_target()
    figures = {name: getattr(target.rates, name) for name in FIGURES}
    loops = NativeLoops(("read", "copy", "stream", "compute", *(["fma"] if target.fma else [])))
    both, *fused = (
        _best(partial(loops.run, body, [0, 0, _STEPS], 1)) / _STEPS / STEP
        for body in ("compute", "fma")
        if body == "compute" or target.fma
    )
    figures |= {"vector_ns": both / 2, "multiply_add_ns": fused[0] if fused else both}
    memory = np.ones(_MEMORY_BYTES + 4096, np.uint8)
    first = -(-memory.ctypes.data // 4096) * 4096
    shared, whole = min(target.l3_bytes // 2, _SHARED_BYTES), _MEMORY_BYTES // 2
    for name, size in (("l2_byte_ns", target.l2_bytes), ("l3_byte_ns", shared)):
        figures[name] = min(_byte_ns(loops, body, first, size // 4) for body in ("read", "copy"))
    if target.l3_bytes <= whole:
        starts = _linked(memory, first, whole // 2)
        streamed, copied = (
            min(_byte_ns(loops, body, first, whole) for _ in range(_ROUNDS)) for body in ("stream", "copy")
        )
        figures |= {"byte_ns": min(copied, streamed), "streaming_gain": copied / streamed}
        figures["latency_ns"] = _latency(loops, starts)  # now that they are out of all caches
    figures["l3_latency_ns"] = _latency(loops, 3 * _linked(memory, first, min(2 * target.l2_bytes, shared)))
    return Rates(**figures).rounded(target.rates)


def _byte_ns(loops: NativeLoops, body: str, first: int, size: int) -> float:
    """Return what a byte takes of those that a loop over ``size`` bytes reads, and writes as many behind."""
    from mind_mlir.profiling.native_loops import STEP  # noqa: PLC0415 -- as above

    step = loops.vector_bytes * STEP
    steps = size // step
    again = 1 if size > _SHARED_BYTES else max(1, (256 << 10) // size)
    moved = steps * step * again * (1 if body == "read" else 2)
    call = partial(loops.run, body, [first, first + size, steps], 1, again)
    return (_once(call) if size > _SHARED_BYTES else _best(call)) / moved


def _linked(memory: np.ndarray[tuple[int], np.dtype[np.uint8]], first: int, size: int) -> list[int]:
    """Link lines of ``size`` bytes at ``first`` in a ring, in any order; return some places of it."""
    places = np.random.default_rng(0).permutation(size // _LINE)[:_RING] * _LINE
    begin = first - memory.ctypes.data
    memory[begin : begin + size].view(np.int64)[places // 8] = np.roll(places, -1) + first
    return [int(place) + first for place in places[::_LINKS]]


def _latency(loops: NativeLoops, starts: Sequence[int]) -> float:
    """Return the least nanoseconds that a link takes, of some from each of ``starts`` on."""
    return min(_once(partial(loops.run, "chase", [start, 0, _LINKS], 1)) for start in starts) / _LINKS


def _best(call: Callable[[], object]) -> float:
    """Return the least nanoseconds that a call takes, of some."""
    end = time.perf_counter() + _SECONDS
    best = min(_once(call) for _ in range(_ROUNDS))
    while time.perf_counter() < end:
        best = min(best, _once(call))
    return best


def _once(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return float(time.perf_counter_ns() - start)
