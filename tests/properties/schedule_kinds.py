"""A program for each kind of schedule, at the sizes where its tiles begin (`pairs`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of schedule.

    Attributes:
        name: What it is called.
        apply: Computes it.
        sizes: The shapes of its operands, size by size, smallest first.
        dtypes: What the operands are.
        tolerance: Of results, relative to the greatest magnitude, in units of the last place; 0 where sums of
            small integers are exact.
    """

    name: str
    apply: Callable[..., Any]
    sizes: tuple[tuple[Shape, ...], ...]
    dtypes: tuple[str, ...] = ("f32",)
    tolerance: float = 0


#: Below, at and above the tiles of products and the panels that they pack: rows, steps, columns.
_PRODUCTS = (
    (4, 7, 5),
    (1, 8, 16),
    (3, 33, 17),
    (8, 16, 32),
    (13, 64, 64),
    (64, 65, 66),
    (33, 170, 130),
    (1, 700, 600),
    (4, 600, 1030),
    (7, 1040, 520),
    (130, 340, 1500),
)
_ALL = ("f32", "f64", "bf16", "f16", "i32", "i64", "i8", "c64")
_NARROW = ("f32", "bf16", "i8")
_INTEGERS = ("f32", "i32")


def _products(*form: str) -> tuple[tuple[Shape, ...], ...]:
    """Return the shapes of factors, spelled with letters for rows, steps and columns."""
    found = []
    for size in _PRODUCTS:
        extents = dict(zip("mkn", size, strict=True)) | {"b": 2, "c": 3, "1": 1}
        found.append(tuple(tuple(extents[letter] for letter in each) for each in form))
    return tuple(found)


def _einsum(spelled: str) -> Callable[..., Any]:
    return lambda *operands: mnp.einsum(spelled, *operands)


def _matmul(left: Any, right: Any) -> Any:
    return mnp.matmul(left, right)


def _with_epilogue(left: Any, right: Any) -> Any:
    return mnp.maximum(mnp.matmul(left, right) + right[:1], 0)


def _softmax(x: Any) -> Any:
    shifted = mnp.exp(x - mnp.max(x, axis=-1, keepdims=True))
    return shifted / mnp.sum(shifted, axis=-1, keepdims=True)


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = mnp.matmul(q, mnp.swapaxes(k, -1, -2)) * 0.25
    return mnp.matmul(_softmax(scores), v)


def _layer_norm(x: Any) -> Any:
    mean = mnp.mean(x, axis=-1, keepdims=True)
    apart = x - mean
    return apart / mnp.sqrt(mnp.mean(apart * apart, axis=-1, keepdims=True) + 0.01)


def _conv(padding: str, strides: tuple[int, int]) -> Callable[..., Any]:
    return lambda x, w: mnp.conv2d(x, w, strides=strides, padding=padding)


def _window(kind: Literal["Max", "Sum"]) -> Callable[..., Any]:
    def apply(x: Any) -> Any:
        rank = len(x.shape)
        window = (1,) * (rank - 2) + (2, 3)
        return mnp.reduce_window(
            x,
            window_dims=window,
            strides=(1,) * rank,
            padding_low=(0,) * rank,
            padding_high=(0,) * rank,
            base_dilation=(1,) * rank,
            window_dilation=(1,) * rank,
            reduce=kind,
        )

    return apply


def _scatter(x: Any, updates: Any) -> Any:
    places = mnp.astype(mnp.arange(updates.shape[0]) * 5 % x.shape[0], "i64")
    return x.at[places].add(updates)


def _gather(x: Any) -> Any:
    places = mnp.astype(mnp.arange(x.shape[0] + 3) * 5 % x.shape[0], "i64")
    return x[places]


def _scan(x: Any, w: Any) -> Any:
    return mind_mlir.scan(lambda c, row: (c * 0 + mnp.matmul(row, w), row + c[:1] * 0), w[0] * 0, x)


def _loop(x: Any, w: Any) -> Any:
    return mind_mlir.fori_loop(0, 3, lambda _, c: mnp.matmul(c, w) - x, x)


def _while(x: Any) -> Any:
    return mind_mlir.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x[::-1]), (0, x))[1]


_MATRICES: tuple[tuple[Shape, ...], ...] = tuple(
    (shape,)
    for shape in (
        (3, 5),
        (8, 16),
        (5, 33),
        (17, 64),
        (40, 130),
        (2, 3, 70),
        (3, 1100),
        (300, 257),
        (2, 40000),
    )
)
_IMAGES: tuple[tuple[Shape, ...], ...] = tuple(
    ((n, h, w, c), (*kernel, c, o))
    for n, h, w, c, o, kernel in (
        (1, 5, 6, 3, 4, (3, 3)),
        (2, 9, 8, 8, 16, (3, 3)),
        (1, 12, 13, 17, 33, (3, 2)),
        (1, 16, 16, 32, 32, (3, 3)),
        (1, 30, 31, 64, 70, (3, 3)),
        (2, 14, 14, 64, 130, (1, 1)),
        (1, 24, 40, 2, 6, (5, 5)),
    )
)

_WINDOWED = ((4, 5), (8, 16), (9, 33), (40, 67))
_SCATTERED = tuple(((n, m), (k, m)) for n, k, m in ((3, 5, 4), (8, 9, 16), (20, 30, 33), (100, 40, 130)))
_ATTENDED = tuple(
    ((b, t, d), (b, s, d), (b, s, e))
    for b, t, s, d, e in (
        (1, 3, 5, 4, 6),
        (2, 16, 16, 8, 8),
        (2, 33, 47, 16, 17),
        (1, 64, 130, 64, 64),
        (2, 130, 256, 32, 40),
    )
)
_CARRIED = tuple(((m, k), (k, k)) for m, k in ((3, 5), (8, 16), (17, 33), (4, 130)))

KINDS: tuple[Kind, ...] = (
    Kind("product", _matmul, _products("mk", "kn"), _ALL),
    Kind("product of a transposed factor", _einsum("mk,nk->mn"), _products("mk", "nk"), _NARROW),
    Kind("product of two transposed", _einsum("km,nk->mn"), _products("km", "nk")),
    Kind("transposed product", _einsum("mk,kn->nm"), _products("mk", "kn"), ("f32", "bf16")),
    Kind("batched product", _matmul, _products("bmk", "bkn"), ("f32", "bf16", "i32")),
    Kind("product of many", _einsum("bmk,kn->bmn"), _products("bmk", "kn"), _NARROW),
    Kind("contraction of two axes", _einsum("mck,ckn->mn"), _products("mck", "ckn"), _NARROW),
    Kind("heads", _einsum("mbk,nbk->bmn"), _products("mbk", "nbk"), ("f32", "bf16")),
    Kind("matrix and vector", _matmul, _products("nk", "k"), ("f32", "f64", "i32")),
    Kind("vector and matrix", _matmul, _products("k", "kn"), ("f32", "bf16")),
    Kind("dot", _matmul, _products("k", "k"), ("f32", "i64", "c64")),
    Kind("outer", _einsum("m,n->mn"), _products("m", "n")),
    Kind("product with an epilogue", _with_epilogue, _products("mk", "kn")),
    Kind("convolution", _conv("same", (1, 1)), _IMAGES, ("f32", "i32"), 400),
    Kind("convolution in steps", _conv("valid", (2, 2)), _IMAGES, ("f32", "f64"), 400),
    Kind("attention", _attention, _ATTENDED, ("f32", "f64"), 200),
    Kind("softmax", _softmax, _MATRICES, ("f32", "f64"), 60),
    Kind("layer norm", _layer_norm, _MATRICES, ("f32", "f64"), 200),
    Kind("sum of rows", lambda x: mnp.sum(x, axis=-1), _MATRICES, ("f32", "i32", "c64")),
    Kind("sum of columns", lambda x: mnp.sum(x, axis=0), _MATRICES, ("f32", "i64", "bf16")),
    Kind("sum of all", mnp.sum, _MATRICES, _INTEGERS),
    Kind("maximum of rows", lambda x: mnp.max(x, axis=-1), _MATRICES, ("f32", "i8")),
    Kind("transposition", lambda x: mnp.swapaxes(x, -1, -2), _MATRICES, (*_ALL, "bool")),
    Kind("elements", lambda x: x * x + 1, _MATRICES, ("f32", "i64", "c64", "bf16")),
    Kind("comparison", lambda x: x > 0, _MATRICES, _INTEGERS),
    Kind("window maximum", _window("Max"), tuple(((n, m),) for n, m in _WINDOWED), _INTEGERS),
    Kind("window sum", _window("Sum"), tuple(((2, n, m),) for n, m in _WINDOWED), _INTEGERS),
    Kind("rows gathered", _gather, _MATRICES, ("f32", "i8")),
    Kind("rows scattered", _scatter, _SCATTERED, _INTEGERS),
    Kind("sort", lambda x: mnp.sort(x, axis=-1), _MATRICES[:5], _INTEGERS),
    Kind("sort of columns", lambda x: mnp.argsort(x, axis=0), _MATRICES[:5]),
    Kind("argmax", lambda x: mnp.argmax(x, axis=-1), _MATRICES[:7], _INTEGERS),
    Kind("top-k", lambda x: mnp.top_k(x, 2), _MATRICES[:6], _INTEGERS),
    Kind("cumulative sum", lambda x: mnp.cumsum(x, axis=-1), _MATRICES[:5], _INTEGERS),
    Kind("scan", _scan, _products("mk", "kn")[:6], _INTEGERS),
    Kind("loop", _loop, _CARRIED, _INTEGERS),
    Kind("while", _while, _MATRICES[:5]),
)
