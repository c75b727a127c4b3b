"""numpy: the references themselves, in f32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.command import numpy_kernels
from benchmarks.peers.peer import NotWrittenError, Prepared, as_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.peers.workloads import Workload


class NumpyPeer:
    """numpy; its threads are set by the environment."""

    versions: Mapping[str, str] = {"numpy": np.__version__, "OpenBLAS kernels": numpy_kernels()}

    def prepare(self, workload: Workload) -> Prepared:
        """See `Peer`."""
        if workload.narrow:
            raise NotWrittenError("numpy has no bf16 of its own")
        inputs, reference = workload.inputs(), workload.reference
        return Prepared(lambda: reference(**inputs), as_arrays)


def peer(_name: str, _threads: int) -> NumpyPeer:
    """Return the peer."""
    return NumpyPeer()
