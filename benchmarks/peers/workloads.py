"""What is measured: inputs by a fixed seed, and the reference of each workload."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from benchmarks.peers import references
from benchmarks.peers.draws import indices, labels, normal, plate
from benchmarks.peers.references import SEQUENCE, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.peers.draws import Array, Draw

_SEED = 1234


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table.

    Attributes:
        name: What it is called.
        kind: What frameworks have one implementation of; workloads of one kind differ in shapes.
        draws: How each input is drawn, by its name.
        reference: Computes it in the precision of its inputs.
        stride: Of a convolution.
        narrow: Whether its numbers are bf16 rather than f32 or f64.
    """

    name: str
    kind: str
    draws: Mapping[str, Draw]
    reference: Callable[..., Any]
    stride: int = 1
    narrow: bool = False

    def inputs(self) -> dict[str, Array]:
        """Return the inputs: the same ones in every process."""
        generator = np.random.default_rng(_SEED)
        drawn = {name: draw(generator) for name, draw in self.draws.items()}
        return {n: array.astype(ml_dtypes.bfloat16) for n, array in drawn.items()} if self.narrow else drawn

    def expected(self) -> list[Array]:
        """Return the outputs, computed in f64."""
        wide = {
            name: array if array.dtype.kind == "i" else array.astype(np.float64)
            for name, array in self.inputs().items()
        }
        result = self.reference(**wide)
        return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def _product(name: str, left: tuple[int, ...], right: tuple[int, ...]) -> Workload:
    return Workload(name, "product", {"a": normal(*left), "b": normal(*right)}, references.product)


def _narrow(workload: Workload) -> Workload:
    return replace(workload, name=f"{workload.name}_bf16", narrow=True)


def _convolution(name: str, image: tuple[int, ...], filters: tuple[int, ...], stride: int) -> Workload:
    draws = {"x": normal(*image), "w": normal(*filters, scale=1 / math.sqrt(math.prod(filters[:3])))}
    reference = partial(references.convolution, stride=stride)
    return Workload(name, "convolution", draws, reference, stride)


def _layers(batch: int, widths: tuple[int, ...], *, target: bool) -> dict[str, Draw]:
    draws = {"x": normal(batch, widths[0])}
    if target:
        draws["t"] = normal(batch, widths[-1])
    for number, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
        draws[f"w{number}"] = normal(fan_in, fan_out, scale=1 / math.sqrt(fan_in))
        draws[f"b{number}"] = normal(fan_out, scale=0.1)
    return draws


def _gradients(name: str, batch: int, widths: tuple[int, ...]) -> Workload:
    return Workload(name, "gradients", _layers(batch, widths, target=True), references.perceptron_gradients)


def _block() -> dict[str, Draw]:
    near_one = partial(normal, WIDTH, scale=0.1, mean=1.0)
    small = partial(normal, scale=0.1)
    unit = 1 / math.sqrt(WIDTH)
    return {
        "x": normal(1, SEQUENCE, WIDTH),
        "g1": near_one(),
        "b1": small(WIDTH),
        "wa": normal(WIDTH, 3 * WIDTH, scale=unit),
        "ba": small(3 * WIDTH),
        "wp": normal(WIDTH, WIDTH, scale=unit),
        "bp": small(WIDTH),
        "g2": near_one(),
        "b2": small(WIDTH),
        "wf": normal(WIDTH, 4 * WIDTH, scale=unit),
        "bf": small(4 * WIDTH),
        "wo": normal(4 * WIDTH, WIDTH, scale=unit / 2),
        "bo": small(WIDTH),
    }


_MLP = (784, 512, 512, 10)
_ROW = {name: normal(1024) for name in ("a", "b")}

_LAYER_NORM = Workload(
    "layernorm",
    "layer_norm",
    {"x": normal(4096, 768, mean=0.5), "g": normal(768, scale=0.1, mean=1), "b": normal(768, scale=0.1)},
    references.layer_norm,
)
_SOFTMAX = Workload("softmax", "softmax", {"x": normal(4096, 1024, scale=3)}, references.softmax)
_BLOCK = Workload("gpt2_block", "block", _block(), references.block)
_LARGE = normal(4096, 4096, mean=0.1)

_ALL = (
    Workload("scalar_call", "scalar", {"x": normal(4)}, references.scalar),
    *(_product(f"mm{size}", (size, size), (size, size)) for size in (127, 256, 509, 512, 1000, 1024, 2048)),
    _product("mm_skinny", (1, 4096), (4096, 4096)),
    _product("mm_vector", (4096, 4096), (4096, 1)),
    _product("mm_tall", (4096, 64), (64, 4096)),
    _product("bmm", (16, 128, 64), (16, 64, 128)),
    _narrow(_product("mm1024", (1024, 1024), (1024, 1024))),
    Workload(
        "ew_chain",
        "chain",
        {"x": normal(4096, 1024), **_ROW, "c": normal(1024, scale=0.5)},
        references.chain,
    ),
    _SOFTMAX,
    _narrow(_SOFTMAX),
    _LAYER_NORM,
    _narrow(_LAYER_NORM),
    Workload("sum_axis0", "sum_axis0", {"x": _LARGE}, lambda x: x.sum(0)),
    Workload("sum_axis1", "sum_axis1", {"x": _LARGE}, lambda x: x.sum(1)),
    Workload("mean_all", "mean", {"x": _LARGE}, lambda x: x.mean()),
    Workload("transpose", "transpose", {"x": normal(2048, 2048)}, references.transposed),
    Workload(
        "attention", "attention", {name: normal(4, 12, 256, 64) for name in "qkv"}, references.attention
    ),
    Workload("causal1024", "causal", {name: normal(1, 12, 1024, 64) for name in "qkv"}, references.causal),
    _convolution("conv1x1", (8, 28, 28, 256), (1, 1, 256, 256), 1),
    _convolution("conv3x3", (8, 56, 56, 64), (3, 3, 64, 64), 1),
    _convolution("conv7x7s2", (4, 224, 224, 3), (7, 7, 3, 64), 2),
    Workload(
        "depthwise3x3",
        "depthwise",
        {"x": normal(8, 56, 56, 128), "w": normal(3, 3, 128, scale=1 / 3)},
        references.depthwise,
    ),
    Workload("mlp_fwd", "perceptron", _layers(128, _MLP, target=False), references.perceptron),
    _gradients("mlp_grad", 128, _MLP),
    _gradients("mlp_train_small", 32, (64, 64, 8)),
    Workload("gather", "gather", {"tab": normal(50000, 256), "idx": indices(4096)}, references.gathered),
    Workload("scatter_add", "scatter", {"g": normal(4096, 256), "idx": indices(4096)}, references.scattered),
    _BLOCK,
    _narrow(_BLOCK),
    Workload("heat", "heat", {"start": plate(18), "rate": lambda _: np.array(0.2)}, references.heat),
    Workload(
        "training",
        "training",
        {
            "data": normal(64, 5, dtype=np.float64),
            "labels": labels(64),
            "weights": normal(5, scale=0.1, dtype=np.float64),
            "rate": lambda _: np.array(0.5),
        },
        references.training,
    ),
)

WORKLOADS = {workload.name: workload for workload in _ALL}
