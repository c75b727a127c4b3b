"""Convolutions in Winograd's form: within their bound, the same bits everywhere, and only where asked for."""

from __future__ import annotations

import pickle
import platform
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.lowering.schedule.windows.winograd import choose_tiles
from mind_mlir.lowering.schedule.windows.winograd_transforms import (
    data_transform,
    filter_transform,
    output_transform,
)
from mind_mlir.ops.accumulation import roundings, summation_error
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import Target

if TYPE_CHECKING:
    from mind_mlir import Executable

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, int, int, int]

#: Roundings of an element on its way through the three transforms, at most: those along both axes.
TRANSFORMS = 2 * (3 + 4 + 3)


def convolution(
    image: Shape, features: int, padding: str = "Same", dtype: str = "f32", stride: int = 1
) -> str:
    """Return a program; ``padding`` is Valid, Same or four numbers: top, bottom, left, right."""
    n, h, w, c = image
    if padding[0].isdigit():
        top, bottom, left, right = map(int, padding.split())
        h, w = h + top + bottom - 2, w + left + right - 2
        padding = f"Custom([[{top}, {bottom}], [{left}, {right}]])"
    elif padding == "Valid":
        h, w = h - 2, w - 2
    h, w = -(-h // stride), -(-w // stride)
    return (
        f'%0 = Input {{name="x"}} : tensor<{dtype}[{n}, {image[1]}, {image[2]}, {c}]>\n'
        f'%1 = Input {{name="w"}} : tensor<{dtype}[3, 3, {c}, {features}]>\n'
        f"%2 = Conv2d (%0, %1) {{padding={padding}, strides=[{stride}, {stride}]}} "
        f": tensor<{dtype}[{n}, {h}, {w}, {features}]>\noutputs: %2\n"
    )


def drawn(image: Shape, features: int, dtype: str = "f32") -> tuple[Array, Array]:
    random = np.random.default_rng(7)
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    shapes = image, (3, 3, image[3], features)
    x, w = (random.standard_normal(shape).astype(kind) for shape in shapes)
    return x, w


def compiled(text: str, **options: Any) -> Executable:
    found = mind_mlir.compile(mind_mlir.parse(text), **options)
    assert isinstance(found, mind_mlir.Executable)
    return found


def is_applied(executable: Any) -> bool:
    return "winograd image" in executable.as_text("schedule")


def exact(x: Array, w: Array, low: tuple[int, int], extents: tuple[int, ...]) -> Array:
    """Return the convolution in the widest float that there is."""
    padded = margins(x.astype(np.longdouble), low, extents)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    found: Array = np.einsum("nhwcij,ijcf->nhwf", windows, w.astype(np.longdouble))
    return found


def margins(x: Array, low: tuple[int, int], extents: tuple[int, ...]) -> Array:
    """Return ``x`` with zeros around, as far as windows for results of ``extents`` reach."""
    padded = np.zeros((x.shape[0], extents[0] + 2, extents[1] + 2, x.shape[3]), x.dtype)
    padded[:, low[0] : low[0] + x.shape[1], low[1] : low[1] + x.shape[2]] = x
    return padded


def magnitudes(x: Array, w: Array, low: tuple[int, int], extents: tuple[int, ...], outputs: int) -> Array:
    """Return for each element of the result the sum of the magnitudes that its tile adds up for it."""
    identity = np.eye(outputs + 2)
    data = abs(np.stack(data_transform(list(identity))))
    result = abs(np.stack(output_transform(list(identity))))
    filter_ = abs(np.stack(filter_transform(list(np.eye(3)), outputs)))
    counts = [-(-extent // outputs) for extent in extents]
    padded = margins(abs(x).astype(float), low, tuple(count * outputs for count in counts))
    tiles = np.lib.stride_tricks.sliding_window_view(padded, (outputs + 2,) * 2, axis=(1, 2))
    tiles = tiles[:, ::outputs, ::outputs]
    left = np.einsum("ai,bj,nhwcij->nhwcab", data, data, tiles, optimize=True)
    right = np.einsum("ai,bj,ijcf->abcf", filter_, filter_, abs(w).astype(float), optimize=True)
    products = np.einsum("nhwcab,abcf->nhwabf", left, right, optimize=True)
    found = np.einsum("pa,qb,nhwabf->nhpwqf", result, result, products, optimize=True)
    whole: Array = found.reshape(x.shape[0], *(count * outputs for count in counts), w.shape[3])
    return whole[:, : extents[0], : extents[1]]


CASES = [
    # image, features, padding, dtype, what is padded first, outputs of a tile
    ((1, 23, 29, 17), 19, "Same", "f32", (1, 1), 4),
    ((1, 24, 24, 32), 48, "Valid", "f32", (0, 0), 4),
    ((1, 22, 20, 16), 16, "0 5 3 2", "f64", (0, 3), 4),
    ((9, 5, 6, 16), 16, "Same", "f64", (1, 1), 2),
    ((40, 3, 4, 37), 16, "0 1 0 0", "f32", (0, 0), 2),
    ((33, 3, 3, 16), 16, "0 3 0 3", "f32", (0, 0), 4),
]


@pytest.mark.parametrize(("image", "features", "padding", "dtype", "low", "outputs"), CASES, ids=str)
def test_results_are_within_the_bound(
    image: Shape, features: int, padding: str, dtype: str, low: tuple[int, int], outputs: int
) -> None:
    text = convolution(image, features, padding, dtype)
    executable = compiled(text, winograd=True)
    assert f"{outputs} x {outputs} outputs" in executable.as_text("schedule")
    x, w = drawn(image, features, dtype)
    spread = np.random.default_rng(8).integers(-8, 8, x.shape)
    for data in (x, np.ldexp(x, spread)):  # the second: magnitudes that differ within a tile
        (found,) = executable(data, w)
        extents = found.shape[1:3]
        error = abs(found - exact(data, w, low, extents))
        unit = np.finfo(found.dtype).eps / 2
        bound = (roundings(image[3]) + TRANSFORMS) * unit * magnitudes(data, w, low, extents, outputs)
        assert (error <= bound).all()
    if padding[0].isdigit():
        return
    # Numbers that are alike: within the bound of the sum, too.
    (found,) = executable(x, w)
    (expected,) = mind_mlir.interpret(mind_mlir.parse(text), {"x": x, "w": w})
    terms = exact(abs(x), abs(w), low, extents)
    assert (abs(found - expected) <= summation_error(9 * image[3], mind_mlir.DType(dtype)) * terms).all()


def test_bits_are_those_of_one_thread_and_of_a_constant_filter() -> None:
    image, features = (3, 30, 31, 32), 32
    text = convolution(image, features)
    x, w = drawn(image, features)
    (one,) = compiled(text, winograd=True, threads=1)(x, w)
    (two,) = compiled(text, winograd=True, threads=2)(x, w)
    assert one.tobytes() == two.tobytes()
    builder = mind_mlir.Builder()
    given = builder.input("x", mind_mlir.TensorType(mind_mlir.DType.F32, image))
    attributes = mind_mlir.parse(text).operations[2].attributes
    filter_ = builder.constant(w, mind_mlir.DType.F32)
    module = builder.build([builder.emit("Conv2d", given, filter_, **attributes)])
    constant = mind_mlir.compile(module, winograd=True)
    assert "winograd filter" not in constant.as_text("schedule")
    assert constant(x)[0].tobytes() == one.tobytes()
    text = constant.as_text("bufferized")
    assert text.count("memref.global") == 1  # the transformed filter, packed, and nothing else


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="a target of x86-64")
def test_blocks_that_overlap() -> None:
    image, features = (1, 66, 64, 32), 32  # 17 rows of tiles in blocks of 9, for a last-level cache of 8 MB
    executable = compiled(convolution(image, features), winograd=True, target="sse")
    assert "block 144 tiles" in " ".join(executable.as_text("schedule").split())
    x, w = drawn(image, features)
    (found,) = executable(x, w)
    np.testing.assert_allclose(found, exact(x, w, (1, 1), (66, 64)).astype(np.float32), rtol=0, atol=1e-3)


def test_products_of_patches_take_it_too() -> None:
    """A margin of another number than zero is what the tiles at the border are computed from."""
    builder, type_ = mind_mlir.Builder(), mind_mlir.TensorType
    x = builder.input("x", type_(mind_mlir.DType.F32, (1, 24, 23, 16)))
    w = builder.input("w", type_(mind_mlir.DType.F32, (144, 16)))
    ones, low, high = (1, 1), (1, 0), (1, 2)
    patches = builder.emit(
        "ExtractPatches",
        x,
        window=(3, 3),
        strides=ones,
        dilation=ones,
        padding_low=low,
        padding_high=high,
        pad_value=0.5,
    )
    rows = builder.emit("Reshape", patches, new_shape=(24 * 23, 144))
    module = builder.build([builder.emit("MatMul", rows, w)])
    winograd = mind_mlir.compile(module, winograd=True)
    assert is_applied(winograd)
    image, filter_ = drawn((1, 24, 23, 16), 16)
    arguments = {"x": image, "w": filter_.reshape(144, 16)}
    (expected,) = mind_mlir.interpret(module, arguments)
    np.testing.assert_allclose(winograd(**arguments)[0], expected, rtol=0, atol=1e-3)


def test_nan_stays_in_the_tiles_that_read_it() -> None:
    image, features = (1, 24, 24, 16), 16
    x, w = drawn(image, features)
    executable = compiled(convolution(image, features), winograd=True)
    (before,) = executable(x, w)
    x[0, 9, 9, 3] = np.inf
    (after,) = executable(x, w)
    assert not np.isfinite(after[0, 8:11, 8:11]).any()
    outside = np.ones((24, 24), bool)
    outside[8:12, 8:12] = False  # the one tile whose rows and columns 7 to 12 hold the number
    assert after[0][outside].tobytes() == before[0][outside].tobytes()


def test_gradients_go_through_it() -> None:
    text = convolution((1, 24, 24, 16), 16, "Valid")
    module = mind_mlir.parse(text)
    assert isinstance(module, mind_mlir.Module)
    gradient = mind_mlir.differentiate(module, cotangents="given", extensions=True).module
    direct, winograd = (mind_mlir.compile(gradient, winograd=on) for on in (False, True))
    # The result and the derivative of the image; that of the filter has too large windows.
    assert winograd.as_text("schedule").count("winograd image") == 2
    x, w = drawn((1, 24, 24, 16), 16)
    cotangent = np.ones((1, 22, 22, 16), np.float32)
    for expected, found in zip(direct(x, w, cotangent), winograd(x, w, cotangent), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_what_else_reads_the_image() -> None:
    """What computes the image is emitted before the nests read it, not with what reads it later."""
    text = (
        '%0 = Input {name="x"} : tensor<f32[1, 34, 34, 16]>\n'
        '%1 = Input {name="w"} : tensor<f32[3, 3, 16, 16]>\n'
        "%2 = Relu (%0) : tensor<f32[1, 34, 34, 16]>\n"
        "%3 = Conv2d (%2, %1) {padding=Valid, strides=[1, 1]} : tensor<f32[1, 32, 32, 16]>\n"
        "%4 = Tanh (%2) : tensor<f32[1, 34, 34, 16]>\noutputs: %3, %4\n"
    )
    lowering = Lowering(options=CompileOptions(winograd=True))
    lowering.run(mind_mlir.parse(text), until="scheduled")
    assert lowering.mlir is not None
    lowering.mlir.operation.verify()
    x, w = drawn((1, 34, 34, 16), 16)
    found, _ = compiled(text, winograd=True)(x=x, w=w)
    expected, _ = compiled(text)(x=x, w=w)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_only_where_it_is_asked_for_and_faster() -> None:
    text = convolution((1, 24, 24, 16), 16)
    assert not is_applied(compiled(text))
    assert is_applied(compiled(text, winograd=True))
    assert is_applied(pickle.loads(pickle.dumps(compiled(text, winograd=True))))  # noqa: S301 -- made here
    for other in (
        convolution((1, 24, 24, 15), 16),
        convolution((1, 24, 24, 16), 15),
        convolution((1, 8, 8, 16), 16),
        convolution((1, 48, 48, 16), 16, stride=2),
    ):
        assert not is_applied(compiled(other, winograd=True))
    with pytest.raises(TypeError, match="winograd"):
        compiled(text, winograd=1)


@pytest.mark.parametrize(
    ("shape", "channels", "outputs", "block"),
    [
        ((8, 56, 56, 64), 64, 4, 28),
        ((1, 28, 28, 256), 256, 4, 7),
        ((1, 14, 14, 256), 256, 2, 7),
        ((8, 7, 7, 512), 512, 4, 16),
        ((1, 7, 7, 512), 512, None, 0),
        ((1, 1, 1000, 64), 64, None, 0),
    ],
)
def test_tiles(shape: Shape, channels: int, outputs: int | None, block: int) -> None:
    tiles = choose_tiles(shape, channels, 4, Target(l3_bytes=32 << 20))
    assert (
        (outputs, block) == (None, 0) if tiles is None else (tiles.outputs, tiles.block) == (outputs, block)
    )
