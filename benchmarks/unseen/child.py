"""The process of one program: compares its results with numpy's, and times calls of it beside others'.

It is started with a name and a number of threads, and says what it found as JSON.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from benchmarks.measure import calls_for, seconds_per_call
from benchmarks.unseen.fields import PROGRAMS
from benchmarks.unseen.libraries import NUMPY, jax_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.unseen.program import Unseen

_ROUNDS, _SECONDS = 9, 0.04
#: Seconds after which threads of a library that waited for work by spinning have gone to sleep.
_REST = 0.06


def _small(x: Any) -> Any:
    """Return something that is quickly compiled: what comes next finds a compiler that has been loaded."""
    return x * 2 + 1


def main(name: str, threads: int) -> None:
    """Say what becomes of a program."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    program = PROGRAMS[name]
    arguments = program.arguments(program.usual)
    found: dict[str, Any] = {"compile": {}, "calls": {}, "difference": None, "error": ""}
    try:
        mind_mlir.jit(_small, threads=threads)(np.ones(4, np.float32))
        ours = mind_mlir.jit(program.ours(), threads=threads)
        start = time.perf_counter()
        result = ours(*arguments)
        found["compile"]["ours"] = time.perf_counter() - start
        found["difference"] = program.judged(result, arguments)
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(found))
        return
    calls = {"ours": lambda: ours(*arguments), **_others(program, arguments, found["compile"])}
    counts = {each: calls_for(call, _SECONDS) for each, call in calls.items()}
    for _ in range(_ROUNDS):
        for each, call in calls.items():
            if threads > 1:
                time.sleep(_REST)
                call()  # wakes threads of its own
            seconds = seconds_per_call(call, counts[each])
            found["calls"][each] = min(seconds, found["calls"].get(each, seconds))
    print(json.dumps(found))


def _others(
    program: Unseen, arguments: tuple[Any, ...], compiled: dict[str, float]
) -> dict[str, Callable[[], Any]]:
    """Return calls of what is installed, by name, each of which has run once."""
    calls: dict[str, Callable[[], Any]] = {}
    if not program.needs_judge:
        calls["numpy"] = lambda: program.of(NUMPY)(*arguments)
    if importlib.util.find_spec("jax"):
        import jax  # noqa: PLC0415 -- where it is installed

        library = jax_library()
        traced = jax.jit(program.of(library))
        jax.block_until_ready(jax.jit(_small)(library.np.ones(4, np.float32)))
        arrays = [library.np.asarray(each) for each in arguments]
        calls["jax"] = lambda: jax.block_until_ready(traced(*arrays))
    if program.loops is not None and importlib.util.find_spec("numba"):
        import numba  # noqa: PLC0415 -- where it is installed

        loops = numba.njit(program.loops)
        calls["numba"] = lambda: loops(*arguments)
    for name, call in list(calls.items()):
        with contextlib.suppress(Exception):
            start = time.perf_counter()
            call()
            compiled[name] = time.perf_counter() - start
            continue
        del calls[name]
    return calls


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
