"""Dask, joblib and Ray run what has been compiled here: nothing is compiled on their workers.

It takes the extras ``distributed`` and ``ray``, which `make test-workers` installs; what is not there is left
out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import jit

pytestmark = pytest.mark.filterwarnings("default")  # of libraries that are no part of the other tests

ROOT = Path(__file__).parents[2]
#: Nothing is kept in a cache where workers could find it, nor in the user's folder.
ENVIRONMENT = {**os.environ, "MIND_MLIR_CACHE": "off", "RAY_AUTH_MODE": "disabled"}


def printed(*command: str) -> str:
    """Return what a module prints."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=ENVIRONMENT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
    ).stdout


@pytest.mark.parametrize("engine", ["joblib", "dask", "ray"])
def test_the_example_compiles_nothing_on_workers(engine: str) -> None:
    pytest.importorskip(engine)
    lines = printed("examples.workers", "--engine", engine).splitlines()
    assert lines[-1] == "compilations on workers: 0, MLIR loaded: False"
    assert len(lines) == 6


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Yield a client of two worker processes of Dask, which find nothing in a cache."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    with (
        dask.config.set({"distributed.nanny.environ": {"MIND_MLIR_CACHE": "off"}}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def report() -> tuple[int, bool, int]:
    from mind_mlir.runtime.executable import _RECEIVED  # noqa: PLC0415 -- on a worker

    return mind_mlir.compilation_count(), "torch_mlir" in sys.modules, len(_RECEIVED)


def test_local_functions_and_large_constants_on_dask(client: Any) -> None:
    weights = np.linspace(-1, 1, 1 << 18, dtype=np.float32).reshape(512, 512)
    scale = np.float32(0.5)

    @jit
    def layer(x: Any) -> Any:
        return mnp.tanh(x * scale + weights).sum(axis=1)

    batches = [np.full((512, 512), number, np.float32) for number in range(6)]
    expected = [layer(batch) for batch in batches]
    slopes = mind_mlir.grad(lambda x: layer(x).mean())
    slopes(batches[0])
    for function, wanted in (
        (layer, expected),
        (layer.lower(batches[0]).compile(), [(each,) for each in expected]),
        (slopes, [slopes(batch) for batch in batches]),
    ):
        found = client.gather(client.map(function, batches, pure=False))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    for compiled, loaded, _ in client.run(report).values():
        assert (compiled, loaded) == (0, False)


def test_the_same_code_is_loaded_once_by_a_worker(client: Any) -> None:
    executable = jit(lambda x: x * 3).lower(np.ones(5, np.float32)).compile()
    before = client.run(report)
    futures = [client.submit(executable, np.full(5, n, np.float32), pure=False) for n in range(20)]
    assert [float(result[0][0]) for result in client.gather(futures)] == [3.0 * n for n in range(20)]
    for worker, (_, _, kept) in client.run(report).items():
        assert kept - before[worker][2] <= 1


def test_the_benchmark_says_what_it_measures() -> None:
    pytest.importorskip("dask")  # this folder beside `tests/distributed` looks like the other package
    rows = json.loads(printed("benchmarks.workers", "--calls", "20", "--json"))["rows"]
    assert [row["calls"] for row in rows] == [20, 20]
    for row in rows:
        assert (row["compilations on workers"], row["MLIR loaded there"]) == (0, 0)
        assert min(row["round trip ms"], row["numpy ms"], row["ratio"], row["map ratio"]) > 0
