"""PTIR operations and canonical forms against torch's, with gradients; `make test-torch` runs it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from torch_harness import Ptir

    from mind_mlir.ir.value import Value

# A folder of tests is a `torch`, too.
pytest.importorskip("torch.fx", reason="compares with torch, which make test-torch installs")
torch: Any = pytest.importorskip("torch")

from torch_harness import agree  # noqa: E402 -- after the check for torch

Array = np.ndarray[Any, np.dtype[Any]]
SEEDS = range(25)


def shapes_of(rng: np.random.Generator, low: int, high: int, most: int = 9) -> tuple[int, ...]:
    """Return a shape of rank ``low`` to ``high`` with extents 1 to ``most``."""
    return tuple(int(extent) for extent in rng.integers(1, most + 1, rng.integers(low, high + 1)))


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def indices_of(rng: np.random.Generator, shape: tuple[int, ...], axis: int) -> tuple[tuple[int, ...], Array]:
    """Return the shape of a tensor of indices into ``axis``, and the indices."""
    own = list(shape)
    own[axis] = int(rng.integers(1, 8))
    return tuple(own), rng.integers(0, shape[axis], own)


@pytest.mark.parametrize("seed", SEEDS)
def test_gather(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = shapes_of(rng, 1, 4)
    axis = int(rng.integers(-len(shape), len(shape)))
    _, indices = indices_of(rng, shape, axis)
    agree(
        [normal(rng, *shape), indices],
        lambda p, x, i: p("GatherElements", x, i, axis=axis),
        lambda x, i: torch.gather(x, axis, i),
        [0],
    )


@pytest.mark.parametrize("kind", ["Add", "Max", "Min"])
@pytest.mark.parametrize("seed", SEEDS[:12])
def test_scatter_reduce(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    shape = shapes_of(rng, 1, 3)
    axis = int(rng.integers(-len(shape), len(shape)))
    own, indices = indices_of(rng, shape, axis)
    name = {"Add": "sum", "Max": "amax", "Min": "amin"}[kind]
    agree(
        [normal(rng, *shape), indices, normal(rng, *own)],
        lambda p, x, i, u: p("ScatterReduce", x, i, u, axis=axis, reduce=kind),
        lambda x, i, u: torch.scatter_reduce(x, axis, i, u, name, include_self=True),
        [0, 2],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_topk(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = shapes_of(rng, 1, 3, 17)
    axis = int(rng.integers(-len(shape), len(shape)))
    k, largest = int(rng.integers(1, shape[axis] + 1)), bool(rng.integers(2))
    for part in (0, 1):

        def ptir(p: Ptir, x: Value, part: int = part) -> Value:
            return p.all("TopK", x, k=k, axis=axis, largest=largest, indices_dtype="i64")[part]

        def reference(x: Any, part: int = part) -> Any:
            return torch.topk(x, k, axis, largest=largest)[part]

        agree([normal(rng, *shape)], ptir, reference, [0] if part == 0 else [])


@pytest.mark.parametrize("seed", SEEDS)
def test_softmax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = normal(rng, *shapes_of(rng, 1, 4, 37)) * np.float32(rng.choice([1, 30]))
    agree([x], lambda p, z: p.softmax(z), lambda z: torch.softmax(z, -1), [0])


@pytest.mark.parametrize("seed", SEEDS)
def test_scaled_dot_product_attention(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, heads, queries, keys, depth = (int(n) for n in rng.integers(1, (3, 4, 20, 20, 17)))
    mask = np.where(rng.random((queries, keys)) < 0.3, -1e9, 0).astype(np.float32)
    scale = 1 / math.sqrt(depth)

    def ptir(p: Ptir, q: Value, k: Value, v: Value, m: Value) -> Value:
        scores = p.product(q, p("Transpose", k, permutation=(0, 1, 3, 2)), 2, (3, 2))
        return p.product(p.softmax(p.binary("Add", p.binary("Mul", scores, scale), m)), v, 2, (3, 2))

    agree(
        [
            normal(rng, batch, heads, queries, depth),
            normal(rng, batch, heads, keys, depth),
            normal(rng, batch, heads, keys, depth),
            mask,
        ],
        ptir,
        torch.nn.functional.scaled_dot_product_attention,
        [0, 1, 2],
        5e-5,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_layer_norm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (*shapes_of(rng, 0, 3), int(rng.integers(2, 40)))
    arrays = [normal(rng, *shape), normal(rng, shape[-1]), normal(rng, shape[-1])]
    agree(
        arrays,
        lambda p, x, g, b: p("LayerNorm", x, g, b, epsilon=1e-5, feature_axis=-1),
        lambda x, g, b: torch.nn.functional.layer_norm(x, shape[-1:], g, b, 1e-5),
        [0, 1, 2],
        5e-5,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_conv2d(seed: int) -> None:
    """As the contract writes it: patches, and a product with the filters."""
    rng = np.random.default_rng(seed)
    batch, channels, filters = (int(n) for n in rng.integers(1, 5, 3))
    window = tuple(int(n) for n in rng.integers(1, 4, 2))
    strides, dilation = (tuple(int(n) for n in rng.integers(1, 3, 2)) for _ in range(2))
    margin = tuple(int(n) for n in rng.integers(0, 3, 2))
    spatial = tuple(int(n) for n in rng.integers(6, 12, 2))

    def ptir(p: Ptir, x: Value, w: Value) -> Value:
        form = {"window": window, "strides": strides, "dilation": dilation}
        zero = TensorLiteral.of(0.0, DType.F32)
        patches = p("ExtractPatches", x, **form, padding_low=margin, padding_high=margin, pad_value=zero)
        rows = p("Reshape", w, new_shape=(math.prod(window) * channels, filters))
        return p.product(patches, rows, 0, (3, 0))

    def reference(x: Any, w: Any) -> Any:
        rows = torch.nn.functional.conv2d(
            x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), None, strides, margin, dilation
        )
        return rows.permute(0, 2, 3, 1).contiguous()

    agree(
        [normal(rng, batch, *spatial, channels), normal(rng, *window, channels, filters)],
        ptir,
        reference,
        [0, 1],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_embedding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, width = (int(n) for n in rng.integers(1, 40, 2))
    indices = rng.integers(0, rows, shapes_of(rng, 1, 3))
    agree(
        [normal(rng, rows, width), indices],
        lambda p, table, i: p("Take", table, i),
        lambda table, i: torch.nn.functional.embedding(i, table),
        [0],
    )
