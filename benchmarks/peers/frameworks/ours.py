"""This compiler: each workload as a module of Core IR."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import mind_mlir
from benchmarks.peers.peer import Prepared, as_arrays
from benchmarks.peers.programs import program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.peers.workloads import Workload

_TRIVIAL = '%0 = Input {name="x"} : tensor<f32[]>\noutputs: %0\n'


class OurPeer:
    """The compiler; its threads are set by the environment."""

    versions: Mapping[str, str] = {"mind_mlir": mind_mlir.__version__}

    def prepare(self, workload: Workload) -> Prepared:
        """See `Peer`."""
        inputs = workload.inputs()
        module = program(workload)
        start = time.perf_counter()
        compiled = mind_mlir.compile(module)
        seconds = time.perf_counter() - start
        arguments = [inputs[parameter.name] for parameter in compiled.parameters]
        return Prepared(lambda: compiled(*arguments), as_arrays, compile_seconds=seconds)


def peer(_name: str, _threads: int) -> OurPeer:
    """Return the peer; MLIR is loaded, as the others have loaded what they compile with."""
    mind_mlir.compile(mind_mlir.parse(_TRIVIAL))
    return OurPeer()
