"""Factors that are constants: packed when the program is compiled, the same bits as those of arguments."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import mind_mlir
from examples.gpt2.builder import Body, Tensor, program
from mind_mlir import DType
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.target import named_target, runs_here

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from mind_mlir.languages.ptir.program import Program

NUMPY = {DType.F32: np.float32, DType.BF16: ml_dtypes.bfloat16, DType.SI8: np.int8}
_OWN: dict[str, Any] = {"accum_dtype": None, "out_dtype": None}
TARGETS = [None, *(name for name in ("avx512", "avx2", "sse") if runs_here(named_target(name)))]


@cache
def draw(shape: tuple[int, ...], dtype: DType) -> npt.NDArray[Any]:
    drawn = np.random.default_rng(len(shape)).standard_normal(shape)
    return (drawn * 30 if dtype is DType.SI8 else drawn).astype(NUMPY[dtype])


def weight(body: Body, array: npt.NDArray[Any], *, constant: bool) -> Tensor:
    literal = TensorLiteral.from_array(array)
    return Tensor(literal, literal.type) if constant else body.parameter(literal.type.dtype, *array.shape)


def product(m: int, n: int, k: int, dtype: DType, layout: str, *, constant: bool) -> Program:
    """Return ``x -> x @ w``, or ``(x, w)``; of a ``layout`` of "left", the product is ``w @ x``."""
    body = Body([])
    x = body.parameter(dtype, *((k, n) if layout == "left" else (m, k)))
    shape = {"left": (m, k), "nn": (k, n), "nt": (n, k)}[layout]
    w = weight(body, draw(shape, dtype), constant=constant)
    factors = (w, x) if layout == "left" else (x, w)
    axes: dict[str, Any] = {
        "batch_lhs": (),
        "batch_rhs": (),
        "contract_lhs": (1,),
        "contract_rhs": (int(layout == "nt"),),
    }
    sums = {"accum_dtype": DType.SI32, "out_dtype": DType.SI32} if dtype is DType.SI8 else _OWN
    return program(body, [body.apply("DotGeneral", *factors, **axes, **sums)])


def check(make: Callable[..., Program], arguments: list[npt.NDArray[Any]], target: str | None) -> str:
    """Hold that constants change no bits at any number of threads; return the program with them."""
    *given, _ = arguments
    plain = mind_mlir.compile(make(constant=False), target=target)
    fixed = mind_mlir.compile(make(constant=True), target=target)
    before = mind_mlir.get_num_threads()
    for threads in (1, 2):
        mind_mlir.set_num_threads(threads)
        assert np.asarray(fixed(*given)).tobytes() == np.asarray(plain(*arguments)).tobytes()
    mind_mlir.set_num_threads(before)
    return str(mind_mlir.compile(make(constant=True), target=target).as_text("bufferized"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "layout"),
    [
        (37, 97, 131, DType.F32, "nn"),
        (3, 509, 768, DType.F32, "nn"),  # few rows, whose blocks of products are those of arguments
        (29, 67, 131, DType.F32, "nt"),
        (29, 67, 131, DType.BF16, "nn"),
        (29, 67, 131, DType.BF16, "nt"),
        (67, 29, 131, DType.BF16, "left"),
        (31, 67, 131, DType.SI8, "nn"),
        (67, 31, 131, DType.SI8, "left"),
    ],
)
def test_products(m: int, n: int, k: int, dtype: DType, layout: str, target: str | None) -> None:
    x = draw((k, n) if layout == "left" else (m, k), dtype)
    w = draw({"left": (m, k), "nn": (k, n), "nt": (n, k)}[layout], dtype)

    def make(*, constant: bool) -> Program:
        return product(m, n, k, dtype, layout, constant=constant)

    text = check(make, [x, w], target)
    if layout != "left":
        assert "_packed_0 : memref<" in text
        assert text.count("memref.global") == 1  # the constant as it was is gone


def test_weights_of_convolutions() -> None:
    x, w = draw((1, 13, 11, 32), DType.F32), draw((3, 3, 32, 67), DType.F32)

    def make(*, constant: bool) -> Any:
        build = mind_mlir.Builder()
        image = build.input("x", mind_mlir.TensorType(DType.F32, x.shape))
        weights = (
            build.constant(w, DType.F32)
            if constant
            else build.input("w", mind_mlir.TensorType(DType.F32, w.shape))
        )
        return build.build([build.emit("Conv2d", image, weights, strides=(1, 1), padding="Same")])

    text = check(make, [x, w], None)
    assert "_packed_0 : memref<" in text


def test_a_constant_that_something_else_reads_stays_as_it_is() -> None:
    build = mind_mlir.Builder()
    x, y = (
        build.input(name, mind_mlir.TensorType(DType.F32, (rows, 256)))
        for name, rows in zip("xy", (33, 256), strict=True)
    )
    w = build.constant(draw((256, 256), DType.F32), DType.F32)
    module = build.build([build.emit("MatMul", x, w), build.emit("Add", y, w)])
    assert "_packed" not in mind_mlir.compile(module, target="avx2").as_text("bufferized")


def test_products_that_read_a_constant_alike_share_it() -> None:
    build = mind_mlir.Builder()
    x, y = (build.input(name, mind_mlir.TensorType(DType.F32, (33, 128))) for name in "xy")
    w = build.constant(draw((128, 256), DType.F32), DType.F32)
    module = build.build([build.emit("MatMul", x, w), build.emit("MatMul", y, w)])
    text = mind_mlir.compile(module, target="avx2").as_text("bufferized")
    assert text.count("memref.global") == 1


def test_a_large_constant_is_packed_outside_of_the_code_as_well() -> None:
    """MLIR knows it by name only; what compiled code reads is an aligned copy."""

    def make(*, constant: bool) -> Program:
        return product(5, 509, 521, DType.F32, "nn", constant=constant)

    check(make, [draw((5, 521), DType.F32), draw((521, 509), DType.F32)], None)
