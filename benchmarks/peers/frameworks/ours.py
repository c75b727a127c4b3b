"""This compiler: each workload as a module of Core IR or, in bf16, a PTIR program."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.peers.peer import Prepared, as_arrays
from benchmarks.peers.programs import program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.peers.workloads import Workload

#: What the other compilers are warmed up with, too.
_WARM = """
%0 = Input {name="x"} : tensor<f32[17]>
%1 = ConstF32 {value=3.0} : tensor<f32[]>
%2 = Sub (%0, %1) : tensor<f32[17]>
outputs: %2
"""


class OurPeer:
    """The compiler; its threads are set by the environment."""

    versions: Mapping[str, str] = {"mind_mlir": mind_mlir.__version__}

    def prepare(self, workload: Workload) -> Prepared:
        """See `Peer`."""
        inputs = workload.inputs()
        module = program(workload, inputs)
        start = time.perf_counter()
        compiled = mind_mlir.compile(module)
        seconds = time.perf_counter() - start
        arguments = list(inputs.values())
        return Prepared(lambda: compiled(*arguments), as_arrays, compile_seconds=seconds)


def peer(_name: str, _threads: int) -> OurPeer:
    """Return the peer, warm: MLIR is loaded, as the others have loaded what they compile with."""
    mind_mlir.compile(mind_mlir.parse(_WARM))(np.ones(17, np.float32))
    return OurPeer()
