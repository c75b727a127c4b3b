"""What is measured: inputs by a fixed seed, and the reference of each workload."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benchmarks.peers import references
from benchmarks.peers.references import SEQUENCE, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Draw: TypeAlias = "Callable[[np.random.Generator], Array]"

_SEED = 1234
#: Elements that are drawn at a time, as f64: all of them at once would be the peak of a process.
_PIECE = 1 << 15


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table.

    Attributes:
        name: What it is called.
        kind: What frameworks have one implementation of; workloads of one kind differ in shapes.
        draws: How each input is drawn, by its name.
        reference: Computes it in the precision of its inputs.
        stride: Of a convolution.
    """

    name: str
    kind: str
    draws: Mapping[str, Draw]
    reference: Callable[..., Any]
    stride: int = 1

    def inputs(self) -> dict[str, Array]:
        """Return the inputs: the same ones in every process."""
        generator = np.random.default_rng(_SEED)
        return {name: draw(generator) for name, draw in self.draws.items()}

    def expected(self) -> list[Array]:
        """Return the outputs, computed in f64."""
        wide = {
            name: array.astype(np.float64) if array.dtype == np.float32 else array
            for name, array in self.inputs().items()
        }
        result = self.reference(**wide)
        return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def _normal(*shape: int, scale: float = 1.0, mean: float = 0.0) -> Draw:
    def draw(generator: np.random.Generator) -> Array:
        drawn = np.empty(shape, np.float32)
        flat = drawn.reshape(-1)
        for start in range(0, flat.size, _PIECE):
            piece = flat[start : start + _PIECE]
            piece[:] = scale * generator.standard_normal(piece.size) + mean
        return drawn

    return draw


def _rows(count: int) -> Draw:
    return lambda generator: generator.integers(0, 50000, count).astype(np.int32)


def _product(name: str, left: tuple[int, ...], right: tuple[int, ...]) -> Workload:
    return Workload(name, "product", {"a": _normal(*left), "b": _normal(*right)}, references.product)


def _convolution(name: str, image: tuple[int, ...], filters: tuple[int, ...], stride: int) -> Workload:
    draws = {"x": _normal(*image), "w": _normal(*filters, scale=1 / math.sqrt(math.prod(filters[:3])))}
    reference = partial(references.convolution, stride=stride)
    return Workload(name, "convolution", draws, reference, stride)


def _layers(batch: int, widths: tuple[int, ...], *, target: bool) -> dict[str, Draw]:
    draws = {"x": _normal(batch, widths[0])}
    if target:
        draws["t"] = _normal(batch, widths[-1])
    for number, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
        draws[f"w{number}"] = _normal(fan_in, fan_out, scale=1 / math.sqrt(fan_in))
        draws[f"b{number}"] = _normal(fan_out, scale=0.1)
    return draws


def _gradients(name: str, batch: int, widths: tuple[int, ...]) -> Workload:
    return Workload(name, "gradients", _layers(batch, widths, target=True), references.perceptron_gradients)


def _block() -> dict[str, Draw]:
    near_one = partial(_normal, WIDTH, scale=0.1, mean=1.0)
    small = partial(_normal, scale=0.1)
    unit = 1 / math.sqrt(WIDTH)
    return {
        "x": _normal(1, SEQUENCE, WIDTH),
        "g1": near_one(),
        "b1": small(WIDTH),
        "wa": _normal(WIDTH, 3 * WIDTH, scale=unit),
        "ba": small(3 * WIDTH),
        "wp": _normal(WIDTH, WIDTH, scale=unit),
        "bp": small(WIDTH),
        "g2": near_one(),
        "b2": small(WIDTH),
        "wf": _normal(WIDTH, 4 * WIDTH, scale=unit),
        "bf": small(4 * WIDTH),
        "wo": _normal(4 * WIDTH, WIDTH, scale=unit / 2),
        "bo": small(WIDTH),
    }


_MLP = (784, 512, 512, 10)
_ROW = {name: _normal(1024) for name in ("a", "b")}

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("scalar_call", "scalar", {"x": _normal(4)}, references.scalar),
        *(_product(f"mm{size}", (size, size), (size, size)) for size in (256, 512, 1024, 2048)),
        _product("mm_skinny", (1, 4096), (4096, 4096)),
        _product("mm_tall", (4096, 64), (64, 4096)),
        _product("bmm", (16, 128, 64), (16, 64, 128)),
        Workload(
            "ew_chain",
            "chain",
            {"x": _normal(4096, 1024), **_ROW, "c": _normal(1024, scale=0.5)},
            references.chain,
        ),
        Workload("softmax", "softmax", {"x": _normal(4096, 1024, scale=3)}, references.softmax),
        Workload(
            "layernorm",
            "layer_norm",
            {
                "x": _normal(4096, 768, mean=0.5),
                "g": _normal(768, scale=0.1, mean=1),
                "b": _normal(768, scale=0.1),
            },
            references.layer_norm,
        ),
        Workload("sum_axis0", "sum_axis0", {"x": _normal(4096, 4096, mean=0.1)}, lambda x: x.sum(0)),
        Workload("sum_axis1", "sum_axis1", {"x": _normal(4096, 4096, mean=0.1)}, lambda x: x.sum(1)),
        Workload("mean_all", "mean", {"x": _normal(4096, 4096, mean=0.1)}, lambda x: x.mean()),
        Workload("transpose", "transpose", {"x": _normal(2048, 2048)}, references.transposed),
        Workload(
            "attention", "attention", {name: _normal(4, 12, 256, 64) for name in "qkv"}, references.attention
        ),
        _convolution("conv3x3", (8, 56, 56, 64), (3, 3, 64, 64), 1),
        _convolution("conv7x7s2", (4, 224, 224, 3), (7, 7, 3, 64), 2),
        Workload("mlp_fwd", "perceptron", _layers(128, _MLP, target=False), references.perceptron),
        Workload("mlp_grad", "gradients", _layers(128, _MLP, target=True), references.perceptron_gradients),
        Workload(
            "mlp_train_small",
            "gradients",
            _layers(32, (64, 64, 8), target=True),
            references.perceptron_gradients,
        ),
        Workload("gather", "gather", {"tab": _normal(50000, 256), "idx": _rows(4096)}, references.gathered),
        Workload(
            "scatter_add", "scatter", {"g": _normal(4096, 256), "idx": _rows(4096)}, references.scattered
        ),
        Workload("gpt2_block", "block", _block(), references.block),
    )
}
