"""A program of eight ranks, which `test_processes.py` runs in one process and in several: prints digests."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import Mesh, distributed, shard_map

MESH = Mesh("data=4,model=2")
RNG = np.random.default_rng(11)


def loss(w1: Any, w2: Any, x: Any) -> Any:
    """Return the mean square of two layers that are divided."""
    y = mind_mlir.all_reduce(mnp.tanh(x @ w1) @ w2, "model")
    return mind_mlir.all_reduce(mnp.mean(mnp.square(y)), "data", "mean")


DIVIDED = shard_map(loss, MESH, ("*,model", "model", "data"), "")


def everything(x: Any) -> Any:
    """Return what each collective makes of an array of odd size."""
    row = x[: x.shape[0] // 8 * 8]
    return (
        mind_mlir.all_reduce(x, "data,model"),
        mind_mlir.all_reduce(x, "data", "max"),
        mind_mlir.reduce_scatter(row, "model,data", 0, "mean"),
        mind_mlir.all_gather(x, "model"),
        mind_mlir.all_to_all(row, "data", 0, 1),
        mind_mlir.broadcast_from(x, "data", 3),
        mind_mlir.shift(x, "data,model", -3),
    )


SPECS = ("", "model", "model+data", "data", "data+model", "model", "data+model")


def main() -> None:
    """Print a digest of all results, and how many bytes went between processes."""
    digest = hashlib.sha256()
    arguments = [RNG.standard_normal(shape).astype(np.float32) for shape in ((37, 60), (60, 11), (24, 37))]
    value, slopes = mind_mlir.value_and_grad(DIVIDED, (0, 1))(*arguments)
    for array in (value, *slopes):
        digest.update(np.ascontiguousarray(array).tobytes())
    given = RNG.standard_normal((8 * 1201, 3)).astype(np.float32)
    for array in shard_map(everything, MESH, "data+model", SPECS)(given):
        digest.update(np.ascontiguousarray(array).tobytes())
    facts = {
        "digest": digest.hexdigest(),
        "sent": distributed.bytes_sent(),
        "of": distributed.process_count(),
    }
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
