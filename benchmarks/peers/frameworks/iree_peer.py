"""IREE: its CPU backend, given the StableHLO that jax makes of its functions."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import iree.compiler
import iree.runtime
import jax
import numpy as np

from benchmarks.peers.frameworks.jax_functions import jax_function, precision
from benchmarks.peers.peer import Prepared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.peers.draws import Array
    from benchmarks.peers.workloads import Workload

_FLAGS = [
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
    "--iree-input-demote-f64-to-f32=false",
]


class IreePeer:
    """IREE."""

    versions: Mapping[str, str] = {
        name: version(name) for name in ("iree-base-compiler", "iree-base-runtime", "jax")
    }

    def __init__(self, threads: int) -> None:
        if threads > 1:
            iree.runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        self._config = iree.runtime.Config("local-task" if threads > 1 else "local-sync")

    def prepare(self, workload: Workload) -> Prepared:
        """See `Peer`; compiling includes jax's part."""
        given = list(workload.inputs().values())
        start = time.perf_counter()
        with precision(workload):
            lowered = jax.jit(jax_function(workload)).lower(*given)
            text = str(lowered.compiler_ir("stablehlo"))
        code = iree.compiler.compile_str(
            text, input_type="stablehlo", target_backends=["llvm-cpu"], extra_args=_FLAGS
        )
        context = iree.runtime.SystemContext(config=self._config)
        module = iree.runtime.VmModule.copy_buffer(context.instance, code)
        context.add_vm_module(module)
        main = context.modules[module.name].main
        seconds = time.perf_counter() - start
        arguments = [iree.runtime.asdevicearray(self._config.device, array) for array in given]
        return Prepared(lambda: main(*arguments), _arrays, compile_seconds=seconds, note="O3")


def _arrays(result: Any) -> list[Array]:
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [np.asarray(each.to_host()) for each in results]


def peer(_name: str, threads: int) -> IreePeer:
    """Return the peer, warm."""
    jax.jit(lambda x: x - 3).lower(np.ones(17, np.float32)).as_text()
    return IreePeer(threads)
