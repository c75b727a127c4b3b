"""Gradients of sliding windows, phase by phase, against sums over all elements of all windows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from harness import run_numpy, run_vjp

import mind_mlir
from mind_mlir.builders.builder import Builder
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import NotDifferentiable
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.sliding import Sliding
from mind_mlir.ops.vjp import VjpContext

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

WINDOW, PATCHES = by_opcode()["ReduceWindow"], by_opcode()["ExtractPatches"]

#: For each axis: extent, window, stride, low, high, base dilation, spacing.
CASES: dict[str, list[Sliding]] = {
    "overlap": [Sliding(7, 3, 2), Sliding(5, 3, 1, 1, 1)],
    "apart": [Sliding(11, 2, 5), Sliding(3)],
    "padding beyond windows": [Sliding(3, 2, 3, 4, 5), Sliding(4, 3, 2, 2, 0)],
    "dilation": [Sliding(13, 3, 2, 1, 0, 1, 3), Sliding(9, 2, 3, 0, 2, 1, 2)],
    "prime": [Sliding(17, 5, 3, 2, 2), Sliding(7, 7, 1, 3, 3)],
    "stride beyond the axis": [Sliding(3, 2, 7), Sliding(2, 1, 5, 1, 0)],
    "base dilation": [Sliding(5, 3, 2, 1, 1, 2, 1), Sliding(4, 2)],
    "many": [Sliding(19, 9, 1), Sliding(11, 8, 2, 0, 1)],
}


def attributes(axes: list[Sliding], reduce: str, dtype: DType) -> dict[str, Any]:
    names = {
        "window_dims": "window",
        "strides": "stride",
        "padding_low": "low",
        "padding_high": "high",
        "base_dilation": "base",
        "window_dilation": "spacing",
    }
    lists = {name: tuple(getattr(axis, field) for axis in axes) for name, field in names.items()}
    return {**lists, "reduce": reduce, "accum_dtype": dtype}


def gradient(x: Array, given: Array, axes: list[Sliding], reduce: str) -> Array:
    found = np.zeros(x.shape)
    places = [axis.places() for axis in axes]
    for window in np.ndindex(*(axis.count for axis in axes)):
        per_axis = [at[o][inside[o]].tolist() for (at, inside), o in zip(places, window, strict=True)]
        elements = list(itertools.product(*per_axis))
        if not elements:
            continue
        values = np.array([x[element] for element in elements], np.float64)
        chosen = np.ones(len(elements), bool)
        if reduce != "Sum":
            extreme = values.max() if reduce == "Max" else values.min()
            chosen = (values == extreme) | np.isnan(values)
        for element, is_chosen in zip(elements, chosen, strict=True):
            found[element] += given[window] / chosen.sum() if is_chosen and reduce != "Sum" else 0
            found[element] += given[window] if reduce == "Sum" else 0
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("reduce", ["Sum", "Max", "Min"])
def test_gradients(name: str, reduce: str) -> None:
    axes = CASES[name]
    rng = np.random.default_rng(len(name))
    x = rng.integers(-2, 3, [axis.extent for axis in axes]).astype(np.float64)  # so there are ties
    x[0, 0], x[-1, -1] = -np.inf, np.nan
    given = rng.standard_normal([axis.count for axis in axes])
    (found,) = run_vjp(WINDOW, [x], given, attributes(axes, reduce, DType.F64))
    assert found is not None
    np.testing.assert_allclose(found, gradient(x, given, axes, reduce), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reduce", ["Sum", "Max"])
def test_narrow_floats_are_added_in_f32(reduce: str) -> None:
    axes = [Sliding(9, 5, 1, 2, 2), Sliding(6, 3, 2)]
    rng = np.random.default_rng(3)
    x = rng.integers(-2, 3, (9, 6)).astype(ml_dtypes.bfloat16)
    given = rng.standard_normal((9, 2)).astype(ml_dtypes.bfloat16)
    builder = Builder(profile=PTIR.name)
    operand = builder.parameter(TensorType(DType.BF16, (9, 6)), "x")
    seed = builder.parameter(TensorType(DType.BF16, (9, 2)), "seed")
    form = attributes(axes, reduce, DType.BF16)
    result = builder.emit("ReduceWindow", operand, **form)
    assert not isinstance(WINDOW.derivative, NotDifferentiable)
    (value,) = WINDOW.derivative(VjpContext(builder, (operand,), result, seed, form, (True,)))
    assert value is not None
    module = Module(Functions((builder.function("main", [value]),)), PTIR.name)
    (found,) = mind_mlir.compile(module)(x, given)
    exact = gradient(x.astype(np.float64), given.astype(np.float64), axes, reduce)
    # Rounded once: half a unit of the 8 bits there are.
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=2.0**-8, atol=1e-5)


@pytest.mark.parametrize("name", [name for name, axes in CASES.items() if axes[0].base == 1])
def test_patches_flow_back_where_they_came_from(name: str) -> None:
    axes = CASES[name]
    fields = {
        "window": "window",
        "strides": "stride",
        "dilation": "spacing",
        "padding_low": "low",
        "padding_high": "high",
    }
    lists: dict[str, Any] = {
        key: tuple(getattr(axis, field) for axis in axes) for key, field in fields.items()
    }
    form = {**lists, "pad_value": TensorLiteral.of(0, DType.F64)}
    rng = np.random.default_rng(len(name))
    x = rng.standard_normal((2, *(axis.extent for axis in axes), 3))
    patches = run_numpy(PATCHES, [x], form)
    given = rng.standard_normal(patches.shape)
    (found,) = run_vjp(PATCHES, [x], given, form)
    assert found is not None
    np.testing.assert_allclose(np.sum(found * x), np.sum(given * patches))
