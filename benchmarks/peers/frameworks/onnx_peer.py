"""ONNX Runtime; the graphs are in `onnx_graphs`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import onnx
import onnxruntime

from benchmarks.peers.frameworks.onnx_graphs import graph_of
from benchmarks.peers.peer import Prepared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.peers.workloads import Workload


class OnnxPeer:
    """ONNX Runtime; a session is what compiling is to others."""

    versions: Mapping[str, str] = {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def prepare(self, workload: Workload) -> Prepared:
        """See `Peer`; outputs are allocated by the runtime."""
        graph = graph_of(workload)
        serialized = graph.model.SerializeToString()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.log_severity_level = 3
        start = time.perf_counter()
        session = onnxruntime.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])
        seconds = time.perf_counter() - start
        binding = session.io_binding()
        for name, array in graph.inputs.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        binding.bind_output("y", "cpu")

        def call() -> Any:
            session.run_with_iobinding(binding)
            return binding

        return Prepared(
            call,
            lambda bound: [graph.layout(bound.get_outputs()[0].numpy())],
            compile_seconds=seconds,
            note=graph.note,
        )


def peer(_name: str, threads: int) -> OnnxPeer:
    """Return the peer."""
    return OnnxPeer(threads)
