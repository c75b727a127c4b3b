"""The process of one framework on a number of threads: does what the parent asks for, one message at a time.

python -m benchmarks.peers.child NAME THREADS FD
"""

from __future__ import annotations

import gc
import sys
import time
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers import frameworks, sampling
from benchmarks.peers.peer import NotWrittenError, Prepared
from benchmarks.peers.workloads import WORKLOADS

if TYPE_CHECKING:
    from benchmarks.peers.peer import Peer

_CALLS_FOR_MEMORY = 10


class Child:
    """Answers requests; a workload stays prepared until the next one."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._prepared: Prepared | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer; an exception of the framework is one, too."""
        try:
            found: dict[str, Any] = getattr(self, request.pop("do"))(**request)
        except NotWrittenError as reason:
            return {"not_written": str(reason)}
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
        return found

    def prepare(self, workload: str, expected: str) -> dict[str, Any]:
        """Compile a workload, run it once and compare it with the outputs in the file ``expected``."""
        self._prepared = None
        gc.collect()
        prepared = self._peer.prepare(WORKLOADS[workload])
        start = time.perf_counter()
        result = prepared.call()
        first = time.perf_counter() - start
        with np.load(expected) as archive:
            references = [archive[name] for name in archive.files]
        error = sampling.relative_error(prepared.outputs(result), references)
        del result, references
        compiling = prepared.compile_seconds
        if prepared.compiles_at_first_call:
            start = time.perf_counter()
            prepared.call()
            compiling = max(0.0, first - (time.perf_counter() - start))
        self._prepared = prepared
        return {"error": error, "compile_seconds": compiling, "note": prepared.note}

    def sample(self, seconds: float) -> dict[str, Any]:
        """Time the prepared workload."""
        assert self._prepared is not None, "prepared before"
        found = sampling.sample(self._prepared.call, seconds)
        return {"seconds": found.seconds, "faults": found.faults, "others": found.others}

    def release(self) -> dict[str, Any]:
        """Drop the prepared workload."""
        self._prepared = None
        gc.collect()
        return {}

    def memory(self, workload: str) -> dict[str, Any]:
        """Return the peak of resident memory above that of the imported framework.

        One figure is that of compiling and calling, one that of calls alone; inputs count in both, and pages
        of libraries that were first touched meanwhile. A third figure says how much these are.
        """
        np.random.default_rng()  # what draws inputs is no part of any framework
        before, files = sampling.resident_bytes(), sampling.file_bytes()
        sampling.forget_peak()
        prepared = self._peer.prepare(WORKLOADS[workload])
        prepared.call()
        whole = sampling.peak_bytes() - before
        gc.collect()
        sampling.forget_peak()
        for _ in range(_CALLS_FOR_MEMORY):
            prepared.call()
        calls, files = sampling.peak_bytes() - before, max(0, sampling.file_bytes() - files)
        return {"with_compile": whole, "calls": calls, "files": files}


def main() -> int:
    """Serve until the parent hangs up."""
    name, threads, descriptor = sys.argv[1:]
    connection = Connection(int(descriptor))
    try:
        peer = frameworks.load(name, int(threads))
    except ImportError as error:
        connection.send({"missing": str(error)})
        return 0
    connection.send({"versions": dict(peer.versions)})
    child = Child(peer)
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return 0
        connection.send(child.answer(request))


if __name__ == "__main__":
    sys.exit(main())
