"""Sums over the rows are part of the nest that computes what they sum, and as accurate as any other."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from examples.gpt2.builder import Body, Tensor, program
from mind_mlir import DType
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.ops.accumulation import roundings
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from mind_mlir import Module

SHAPES = [(4096, 96), (1031, 67), (7, 151, 131), (131, 1), (5, 2, 211, 40)]


def over_rows(b: Body, x: Tensor, kind: str = "Sum") -> Tensor:
    axes = tuple(range(len(x.shape) - 1))
    return b.apply("Reduce", x, kind=kind, axes=axes, keepdims=False, accum_dtype=None, out_dtype=None)


def mean(b: Body, x: Tensor) -> Tensor:
    return b.binary("Mul", b.reduce("Sum", x, -1), 1 / x.shape[-1])


def layer_norm_gradient(shape: tuple[int, ...], dtype: DType = DType.F32) -> Module:
    """Return the gradients of a layer norm's operands, from its cotangent."""
    b = Body([])
    x, given, gain = b.parameter(dtype, *shape), b.parameter(dtype, *shape), b.parameter(dtype, shape[-1])
    centred = b.binary("Sub", x, mean(b, x))
    scale = b.unary("Rsqrt", b.binary("Add", mean(b, b.binary("Mul", centred, centred)), 1e-5))
    normal = b.binary("Mul", centred, scale)
    scaled = b.binary("Mul", given, gain)
    along = b.binary("Mul", normal, mean(b, b.binary("Mul", scaled, normal)))
    rest = b.binary("Sub", b.binary("Sub", scaled, mean(b, scaled)), along)
    results = [b.binary("Mul", rest, scale)]
    results += [over_rows(b, b.binary("Mul", given, normal)), over_rows(b, given)]
    return to_module(program(b, results))


def softmax_and_sums(shape: tuple[int, ...]) -> Module:
    """Return a softmax, and the sum and the maximum over the rows of what it reads."""
    b = Body([])
    x = b.parameter(DType.F32, *shape)
    return to_module(program(b, [b.softmax(x), over_rows(b, x), over_rows(b, x, "Max")]))


def arguments_of(module: Module, shape: tuple[int, ...], dtype: DType) -> dict[str, np.ndarray[Any, Any]]:
    generator = np.random.default_rng(5)
    drawn = [generator.standard_normal(extents) + 0.25 for extents in (shape, shape, shape[-1:])]
    names = [parameter.name or "" for parameter in module.functions[0].parameters]
    return {name: array.astype(dtype.numpy) for name, array in zip(names, drawn, strict=False)}


@pytest.mark.parametrize("shape", [(4096, 768), (3, 683, 769)], ids=str)
@pytest.mark.parametrize("target", ["sse", "avx2", "avx512"])
def test_a_layer_norm_gradient_is_one_nest(shape: tuple[int, ...], target: str) -> None:
    listing = Lowering(target=named_target(target)).run(layer_norm_gradient(shape), until="schedule")
    assert listing is not None
    assert re.findall(r"^ *\d+\. (\w+) [0-9 x]+$", listing, re.MULTILINE) == ["rows"]
    assert re.findall(r"sums (%\d+) over the rows", listing) == ["%35", "%34"]


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients(shape: tuple[int, ...], dtype: DType) -> None:
    """They are those of f64, and the same bits with any number of threads."""
    module = layer_norm_gradient(shape, dtype)
    given = arguments_of(module, shape, dtype)
    wide = mind_mlir.interpret(
        layer_norm_gradient(shape, DType.F64), {name: each.astype(np.float64) for name, each in given.items()}
    )
    before = mind_mlir.get_num_threads()
    found: list[tuple[Any, ...]] = []
    try:
        compiled = mind_mlir.compile(module)
        for threads in (1, 2, 3):
            mind_mlir.set_num_threads(threads)
            found.append(compiled(**given))
    finally:
        mind_mlir.set_num_threads(before)
    alone, *others = [[array.tobytes() for array in arrays] for arrays in found]
    assert all(each == alone for each in others)
    unit = float(np.finfo(dtype.numpy).eps)
    for mine, exact in zip(found[0], wide, strict=True):
        scale = np.abs(exact).max() + math.sqrt(math.prod(shape[:-1]))
        assert np.abs(mine - exact).max() <= 64 * unit * scale


@pytest.mark.parametrize("target", ["sse", "avx2", None])
@pytest.mark.parametrize("shape", [(20_011, 3), (1031, 67), (2, 1021, 131)], ids=str)
def test_sums_are_within_the_bound(shape: tuple[int, ...], target: str | None) -> None:
    """Numbers whose sum in index order is far off."""
    count = math.prod(shape[:-1])
    numbers = np.full((count, shape[-1]), 0.1, np.float32)
    numbers[: max(1, count // 1024)] = 2.0**25
    numbers[:, 1:] *= np.where(np.arange(count) % 2, -1.1, 1.1).astype(np.float32)[:, None]
    module = softmax_and_sums(shape)
    compiled = mind_mlir.compile(module, target=target)
    (name,) = (parameter.name or "" for parameter in module.functions[0].parameters)
    _, sums, greatest = compiled(**{name: numbers.reshape(shape)})
    exact = [math.fsum(column) for column in numbers.T.astype(np.float64)]
    allowed = roundings(count) * 2.0**-24 * np.abs(numbers.astype(np.float64)).sum(0)
    assert (np.abs(sums.astype(np.float64) - exact) <= allowed).all()
    np.testing.assert_array_equal(greatest, numbers.max(0))
