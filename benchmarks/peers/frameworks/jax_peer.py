"""jax: `jax.jit` on XLA's CPU backend; its threads are set by the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jaxlib
import numpy as np

from benchmarks.peers.frameworks.jax_functions import jax_function, precision
from benchmarks.peers.peer import Prepared, as_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.peers.draws import Array
    from benchmarks.peers.workloads import Workload


class JaxPeer:
    """jax."""

    versions: Mapping[str, str] = {"jax": jax.__version__, "jaxlib": jaxlib.__version__}

    def prepare(self, workload: Workload) -> Prepared:
        """See `Peer`."""
        with precision(workload):
            given = [jax.device_put(array) for array in workload.inputs().values()]
            arguments = jax.block_until_ready(given)
            # Compiled for good: calls outside of this precision are calls of the same code.
            shapes = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arguments]
            jitted = jax.jit(jax_function(workload))
            if workload.kind in ("heat", "training"):
                jitted = jitted.lower(*shapes).compile()
                return Prepared(lambda: jax.block_until_ready(jitted(*arguments)), _arrays)
        if workload.kind == "gradients":
            return Prepared(lambda: jax.block_until_ready(jitted(*arguments)), _arrays, None, True)
        return Prepared(lambda: jitted(*arguments).block_until_ready(), _arrays, None, True)


def _arrays(result: Any) -> list[Array]:
    return [np.asarray(each) for each in as_arrays(result)]


def peer(_name: str, _threads: int) -> JaxPeer:
    """Return the peer, warm."""
    jax.jit(lambda x: x - 3)(np.ones(17, np.float32)).block_until_ready()
    return JaxPeer()
