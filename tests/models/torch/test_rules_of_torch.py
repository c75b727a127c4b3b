"""Rules of torch's operators, on graphs that are written by hand, against numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.diagnostics import UnsupportedError
from mind_mlir.ir.types import DType
from mind_mlir.models.torch.graph import ArrayType, FxGraph, FxNode, Input, Ref
from mind_mlir.models.torch.running import GraphFunction
from mind_mlir.tracing.jit import JitFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

F64 = ArrayType(DType.F64, (2, 3))
RNG = np.random.default_rng(0)


def results(operator: str, arrays: Sequence[Any], *args: Any, count: int = 1, **kwargs: Any) -> list[Any]:
    """Return what an operator gives for arrays and further arguments; "@0" is the first array."""
    names = [f"x{place}" for place in range(len(arrays))]
    types = [ArrayType(_dtype(each), each.shape) for each in arrays]
    inputs = tuple([Input(name, type_) for name, type_ in zip(names, types, strict=True)])
    given = [Ref(f"x{each[1:]}") if isinstance(each, str) and each.startswith("@") else each for each in args]
    taken = tuple([Ref(name) for name in names] if not args else given)
    out = tuple([ArrayType(_result(operator, types), ())] * count)
    first = FxNode("found", operator, taken, kwargs, out)
    nodes = [first]
    if count > 1:
        nodes += [
            FxNode(f"found{at}", "operator.getitem", (Ref("found"), at), {}, out[:1]) for at in range(count)
        ]
    outputs = tuple([Ref(node.name) for node in (nodes[1:] if count > 1 else nodes)])
    graph = FxGraph(inputs, tuple(nodes), outputs)
    function = GraphFunction(graph, [None] * len(names), list(range(count)), [None] * count)
    module = JitFunction(function, promotes=False).lower(*arrays).module
    return list(mind_mlir.interpret(module, dict(zip(names, arrays, strict=True))))


def _dtype(array: Any) -> DType:
    found = DType.from_numpy(array.dtype)
    assert found is not None
    return found


def _result(operator: str, types: Sequence[ArrayType]) -> DType:
    return DType.CF64 if "_fft_c2c" in operator or "_fft_r2c" in operator else types[0].dtype


@pytest.mark.parametrize("count", [6, 67])
def test_fourier_transforms(count: int) -> None:
    x = RNG.standard_normal((2, count))
    (half,) = results("aten._fft_r2c.default", [x], "@0", [1], 0, True)
    np.testing.assert_allclose(half, np.fft.rfft(x), atol=1e-11)
    (whole,) = results("aten._fft_c2c.default", [half], "@0", [0, 1], 1, True)
    np.testing.assert_allclose(whole, np.fft.fft2(half, norm="ortho"), atol=1e-11)
    (back,) = results("aten._fft_c2r.default", [half], "@0", [1], 2, count)
    np.testing.assert_allclose(back, x, atol=1e-11)


def test_equations_and_factors() -> None:
    x, right = RNG.standard_normal((3, 4, 4)), RNG.standard_normal((3, 4, 2))
    found, both, pivots, failed = results("aten._linalg_solve_ex.default", [x, right], count=4)
    np.testing.assert_allclose(x @ found, right, atol=1e-10)
    assert not failed.any()
    (turned,) = results("aten.linalg_lu_solve.default", [both, pivots, right], "@0", "@1", "@2", adjoint=True)
    np.testing.assert_allclose(x.swapaxes(1, 2) @ turned, right, atol=1e-10)
    q, r = results("aten.linalg_qr.default", [x], "@0", count=2)
    np.testing.assert_allclose(q @ r, x, atol=1e-10)
    square = x @ x.swapaxes(1, 2)
    factor, _ = results("aten.linalg_cholesky_ex.default", [square], "@0", count=2)
    np.testing.assert_allclose(factor, np.linalg.cholesky(square), atol=1e-9)
    determinant, *_ = results("aten._linalg_det.default", [x], "@0", count=3, is_contiguous=True)
    np.testing.assert_allclose(determinant, np.linalg.det(x), atol=1e-10)


def test_products_of_groups() -> None:
    x, matrices = RNG.standard_normal((70, 3)), RNG.standard_normal((4, 3, 5))
    ends = np.array([33, 33, 40, 69], np.int32)  # one group is empty, and a row is of none
    gradient = RNG.standard_normal((70, 5))
    bounds = [slice(start, end) for start, end in zip((0, *ends[:-1]), ends, strict=True)]
    (found,) = results("transformers.grouped_mm_fallback.default", [x, matrices, ends])
    expected, of_x, of_matrices = np.zeros((70, 5)), np.zeros_like(x), np.zeros_like(matrices)
    for matrix, part, rows in zip(matrices, of_matrices, bounds, strict=True):
        expected[rows], of_x[rows] = x[rows] @ matrix, gradient[rows] @ matrix.T
        part[...] = x[rows].T @ gradient[rows]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    back = results(
        "transformers.grouped_mm_fallback_backward.default", [x, matrices, ends, gradient], count=2
    )
    np.testing.assert_allclose(back[0], of_x, atol=1e-12)
    np.testing.assert_allclose(back[1], of_matrices, atol=1e-12)


def test_arguments_that_a_rule_does_not_take_are_refused() -> None:
    x = RNG.standard_normal((2, 3))
    (found,) = results("aten.var.default", [x], "@0", True)
    np.testing.assert_allclose(found, x.var(ddof=1))
    with pytest.raises(UnsupportedError, match="arguments that its rule does not take"):
        results("aten.where.default", [x], "@0")
    with pytest.raises(UnsupportedError, match="as many elements as numbers say"):
        results("aten.nonzero.default", [x], "@0")


@pytest.mark.parametrize("antialias", [False, True])
def test_images_of_other_extents(antialias: bool) -> None:
    x = RNG.standard_normal((1, 1, 8, 4))
    name = "aten._upsample_bilinear2d_aa.default" if antialias else "aten.upsample_bilinear2d.default"
    (found,) = results(name, [x], "@0", [4, 8], False)
    rows = x.reshape(1, 1, 4, 2, 4).mean(3)
    if antialias:  # each row is a weighted mean of four, the outermost ones of three
        weights = np.array([1, 3, 3, 1]) / 8
        rows[0, 0, 1] = (weights[:, None] * x[0, 0, 1:5]).sum(0)
        rows[0, 0, 0] = (weights[1:, None] * x[0, 0, :3]).sum(0) / weights[1:].sum()
    places = (np.arange(8) + 0.5) / 2 - 0.5
    for row in (0, 1):
        expected = np.interp(places, np.arange(4), rows[0, 0, row])
        np.testing.assert_allclose(found[0, 0, row], expected, atol=1e-12)


def test_relu_keeps_nan() -> None:
    x = np.array([np.nan, -1.0, -np.inf, 2.0], np.float32)
    (found,) = results("aten.relu.default", [x])
    np.testing.assert_array_equal(found, np.maximum(x, 0))
