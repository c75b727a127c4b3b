"""The frameworks that are measured, a module each."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.peers.peer import Peer

OURS = "mind_mlir"

#: The name of each framework in tables, in their order, and its module here.
MODULES: Mapping[str, str] = {
    OURS: "ours",
    "numpy": "numpy_peer",
    "torch": "torch_peer",
    "torch.compile": "torch_peer",
    "jax": "jax_peer",
    "iree": "iree_peer",
    "onnxruntime": "onnx_peer",
    "numba": "numba_peer",
}

_THREADS = ("OMP", "OPENBLAS", "MKL")
_LIBRARIES = ("OPENBLAS", "MKL", "OMP", "BLIS", "GOTO", "KMP", "XLA", "TORCHINDUCTOR")


def load(name: str, threads: int) -> Peer:
    """Import and warm up the framework ``name``.

    Raises:
        ImportError: It is not installed.
    """
    module = import_module(f"{__name__}.{MODULES[name]}")
    peer: Peer = module.peer(name, threads)
    return peer


def environment(name: str, threads: int, scratch: Path) -> dict[str, str]:
    """Return the environment of a process that measures ``name`` on so many threads.

    Settings of the surroundings that fix kernels or caches of the libraries are dropped.
    """
    kept = {key: value for key, value in os.environ.items() if key.split("_")[0] not in _LIBRARIES}
    kept |= {f"{library}_NUM_THREADS": str(threads) for library in _THREADS}
    kept |= {"MIND_MLIR_NUM_THREADS": str(threads), "PYTHONHASHSEED": "0", "JAX_PLATFORMS": "cpu"}
    kept["NUMBA_NUM_THREADS"] = str(
        max(threads, os.cpu_count() or 1)
    )  # how many there are; it is told how many to use
    if name in ("jax", "iree"):
        kept["NPROC"] = str(threads)  # the size of XLA's pool
        if threads == 1:
            kept["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if name == "torch.compile":
        kept |= {"TORCHINDUCTOR_CACHE_DIR": str(scratch), "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    return kept
