"""Writes what the tests without flax read: networks of the corpus as StableHLO, and what jax gives.

python tests/languages/stablehlo/flax_networks.py        # where the extra `models` is installed
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import jax
from jax_programs import recorded
from recorded import Recorded, write

sys.path[:0] = [str(Path(__file__).parents[3])]
from benchmarks.models.flax_check import enlivened  # noqa: E402 -- where pytest is not
from benchmarks.models.tables import ENTRIES  # noqa: E402 -- as above

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH = Path(__file__).parent / "flax_networks.npy.gz"
NETWORKS = ("conv_lstm", "graph_attention", "llama", "mamba", "perceptron", "resnext", "rwkv", "swin")


def networks() -> Iterator[Recorded]:
    """Yield the networks."""
    for name in NETWORKS:
        file, _, function = ENTRIES[f"flax_{name}"].architecture.partition(".")
        module, args = getattr(import_module(f"benchmarks.models.networks.{file}"), function)(width=8)
        variables = enlivened(jax.jit(module.init)(jax.random.key(0), *args))
        yield recorded(name, module.apply, (variables, *args))


if __name__ == "__main__":
    write(PATH, networks())
    print(PATH.stat().st_size)
