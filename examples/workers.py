"""A parameter sweep, and a map over batches, on other processes.

    python -m examples.workers                  # processes of Python's own
    python -m examples.workers --engine dask    # or joblib, or ray

The training step and its predictions are compiled here, once. Workers get the machine code with the
functions: they compile nothing, and do not load MLIR.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp

#: What each engine is given: a function, and what it is called with; it returns what the calls do.
Engine = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

WORKERS = 2
RATES = (0.003, 0.03, 0.1, 0.3)
STEPS = 200


@mind_mlir.jit
def predict(params: Mapping[str, Any], x: Any) -> Any:
    """Return the prediction of a small network for each row."""
    return mnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"]


def loss(params: Mapping[str, Any], x: Any, y: Any) -> Any:
    """Return the mean squared error."""
    return ((predict(params, x) - y) ** 2).mean()


@mind_mlir.jit
def step(params: Mapping[str, Any], x: Any, y: Any, rate: Any) -> Any:
    """Return the loss, and the parameters after a step of gradient descent."""
    value, slopes = mind_mlir.value_and_grad(loss)(params, x, y)
    return value, {name: params[name] - rate * slopes[name] for name in params}


def data(rows: int) -> tuple[Any, Any, dict[str, Any]]:
    """Return samples of a function of eight numbers, and parameters to begin with."""
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, 8), dtype=np.float32)
    params = {
        "w1": random.standard_normal((8, 32), dtype=np.float32) / 3,
        "b1": np.zeros(32, np.float32),
        "w2": random.standard_normal(32, dtype=np.float32) / 6,
    }
    return x, np.sin(x).sum(axis=1), params


def trained(one: Callable[..., Any], params: Mapping[str, Any], x: Any, y: Any, rate: Any) -> Any:
    """Return the last loss of a training, and the parameters.

    The step is an argument: so it is sent, with its code. Workers that import this module have a `step` of
    their own, which has been compiled for nothing yet.
    """
    value = np.float32(0)
    for _ in range(STEPS):
        value, params = one(params, x, y, rate)
    return float(value), params


def with_state(function: Callable[[Any], Any], item: Any) -> tuple[Any, int, bool]:
    """Return a result, how often its process has compiled something, and whether MLIR is loaded there."""
    return function(item), mind_mlir.compilation_count(), "torch_mlir" in sys.modules


def on_processes(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Map with concurrent.futures."""
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(function, items))


def on_joblib(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Map with joblib."""
    import joblib  # noqa: PLC0415 -- only where it is asked for

    found: list[Any] = joblib.Parallel(n_jobs=WORKERS)(joblib.delayed(function)(item) for item in items)
    return found


def on_dask(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Map with Dask, on a cluster of this machine."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 -- as above

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        found: list[Any] = client.gather(client.map(function, items))
        return found


def on_ray(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Map with Ray, on this machine."""
    import ray  # noqa: PLC0415 -- as above

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    try:
        task, sent = ray.remote(lambda given, item: given(item)), ray.put(function)
        found: list[Any] = ray.get([task.remote(sent, item) for item in items])
        return found
    finally:
        ray.shutdown()


ENGINES: dict[str, Engine] = {
    "processes": on_processes,
    "joblib": on_joblib,
    "dask": on_dask,
    "ray": on_ray,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train with each rate on workers, and predict with the best."""
    parser = argparse.ArgumentParser(prog="python -m examples.workers", description=__doc__.split("\n\n")[0])
    parser.add_argument("--engine", choices=ENGINES, default="processes", help="what runs the workers")
    engine = ENGINES[parser.parse_args(arguments).engine]

    x, y, params = data(1024)
    step(params, x, y, RATES[0])  # compiled now, for these shapes, and sent so
    trainings = engine(partial(with_state, partial(trained, step, params, x, y)), RATES)
    for rate, ((value, _), _, _) in zip(RATES, trainings, strict=True):
        print(f"rate {rate:<5} loss {value:.4f}")
    best = min((found for found, _, _ in trainings), key=lambda found: float(found[0]))[1]

    batches = np.split(x, 8)
    predict(best, batches[0])
    predictions = engine(partial(with_state, partial(predict, best)), batches)
    error = np.mean((np.concatenate([found for found, _, _ in predictions]) - y) ** 2)
    print(f"{len(batches)} batches, mean squared error {error:.4f}")

    reports = [*trainings, *predictions]
    loaded = any(loads for _, _, loads in reports)
    print(f"compilations on workers: {max(count for _, count, _ in reports)}, MLIR loaded: {loaded}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
