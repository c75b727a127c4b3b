"""Softmax and its kin are one nest over rows without temporaries of their size, right for awkward extents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from examples.gpt2.builder import Body, Tensor, program
from mind_mlir import DType, TensorType
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.target import named_target
from mind_mlir.tools.comparison import first_difference

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir import Module

AVX2 = named_target("avx2")
EPSILON = 1e-5


def mean(b: Body, x: Tensor) -> Tensor:
    return b.binary("Mul", b.reduce("Sum", x, -1), 1 / x.shape[-1])


def softmax(b: Body, x: Tensor, *_: Tensor) -> list[Tensor]:
    return [b.softmax(x)]


def log_softmax(b: Body, x: Tensor, *_: Tensor) -> list[Tensor]:
    centred = b.binary("Sub", x, b.reduce("Max", x, -1))
    total = b.unary("Log", b.reduce("Sum", b.unary("Exp", centred), -1))
    return [b.binary("Sub", centred, total)]


def opaque_layer_norm(b: Body, x: Tensor, gain: Tensor, shift: Tensor) -> list[Tensor]:
    return [b.apply("LayerNorm", x, gain, shift, epsilon=EPSILON, feature_axis=-1)]


def layer_norm(b: Body, x: Tensor, gain: Tensor, shift: Tensor) -> list[Tensor]:
    centred = b.binary("Sub", x, mean(b, x))
    scale = b.unary("Rsqrt", b.binary("Add", mean(b, b.binary("Mul", centred, centred)), EPSILON))
    return [b.binary("Add", b.binary("Mul", b.binary("Mul", centred, scale), gain), shift)]


def rms_norm(b: Body, x: Tensor, gain: Tensor, _: Tensor) -> list[Tensor]:
    scale = b.unary("Rsqrt", b.binary("Add", mean(b, b.binary("Mul", x, x)), EPSILON))
    return [b.binary("Mul", b.binary("Mul", x, scale), gain)]


def softmax_gradient(b: Body, x: Tensor, *_: Tensor) -> list[Tensor]:
    """Of the sum of the squares of a softmax."""
    y = b.softmax(x)
    return [b.binary("Mul", y, b.binary("Sub", y, b.reduce("Sum", b.binary("Mul", y, y), -1)))]


def normal_and_statistics(b: Body, x: Tensor, *_: Tensor) -> list[Tensor]:
    """What is used outside is along the rows and one number for each of them, of several passes."""
    middle = mean(b, x)
    centred = b.binary("Sub", x, middle)
    variance = mean(b, b.binary("Mul", centred, centred))
    scale = b.unary("Rsqrt", b.binary("Add", variance, EPSILON))
    return [b.binary("Mul", centred, scale), variance, centred, middle]


FORMS: dict[str, Callable[..., list[Tensor]]] = {
    form.__name__: form
    for form in (
        softmax,
        log_softmax,
        opaque_layer_norm,
        layer_norm,
        rms_norm,
        softmax_gradient,
        normal_and_statistics,
    )
}


def module_of(form: str, shape: tuple[int, ...], dtype: DType = DType.F32) -> Module:
    b = Body([])
    x, *rows = b.parameter(dtype, *shape), b.parameter(dtype, shape[-1]), b.parameter(dtype, shape[-1])
    return to_module(program(b, FORMS[form](b, x, *rows)))


def arguments_of(module: Module, dtype: DType) -> dict[str, np.ndarray[Any, Any]]:
    generator = np.random.default_rng(3)
    found = {}
    for parameter in module.functions[0].parameters:
        assert isinstance(parameter.type, TensorType)
        drawn = 2 * generator.standard_normal(parameter.type.extents) + 0.5
        found[parameter.name or ""] = drawn.astype(dtype.numpy)
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(256, 512), (3, 83, 769)], ids=str)
def test_one_nest_without_temporaries(form: str, shape: tuple[int, ...]) -> None:
    module = module_of(form, shape)
    listing = Lowering(target=AVX2).run(module, until="schedule")
    assert listing is not None
    kinds = re.findall(r"^ *\d+\. (\w+) ([0-9 x]+)$", listing, re.MULTILINE)
    assert [kind for kind, _ in kinds] == ["rows"]
    lowering = Lowering(target=AVX2)
    lowering.run(module, until="bufferized")
    text = lowering.text()
    assert text.count("mind.parallel") == 1
    scratch = re.search(r"mind.scratch_bytes = (\d+)", text)
    assert scratch is not None
    # A block of rows at most, and the numbers of its rows.
    assert int(scratch.group(1)) <= 2 * AVX2.l1_bytes


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.BF16])
@pytest.mark.parametrize("shape", [(67, 131), (1, 257), (131, 1), (2, 3, 127)], ids=str)
def test_values(form: str, dtype: DType, shape: tuple[int, ...]) -> None:
    """Each value on the way is an output once, and only the results are."""
    module = module_of(form, shape, dtype)
    given = arguments_of(module, dtype)
    assert first_difference(module, given) is None
    found = mind_mlir.compile(module)(**given)
    expected = mind_mlir.interpret(module, given)
    pairs = zip(_tuple(found), _tuple(expected), strict=True)
    relative = {DType.F32: 1e-5, DType.F64: 1e-13, DType.BF16: 0.1}[dtype]
    for mine, theirs in pairs:
        wide = theirs.astype(np.float64)
        assert np.max(np.abs(mine.astype(np.float64) - wide)) <= relative * (np.max(np.abs(wide)) + 1e-3)


def _tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (list, tuple)) else (values,)


@pytest.mark.parametrize("dtype", [DType.F32, DType.BF16])
@pytest.mark.parametrize(("form", "marked"), [("softmax", True), ("log_softmax", False)])
def test_a_maximum_may_be_either_zero_where_no_sign_of_it_is_seen(
    form: str, dtype: DType, marked: bool
) -> None:
    lowering = Lowering(target=AVX2)
    lowering.run(module_of(form, (64, 128), dtype), until="scheduled")
    maxima = [line for line in lowering.text().splitlines() if "maximumf" in line]
    assert maxima
    assert {"nsz" in line for line in maxima} == {marked}
