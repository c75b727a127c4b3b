"""Filters and maps of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.unseen.program import Unseen

if TYPE_CHECKING:
    from numpy.random import Generator

    from benchmarks.unseen.libraries import Library


def _image(random: Generator, size: int) -> tuple[Any, ...]:
    return (random.random((size, size), np.float32),)


def _bilateral(lib: Library, image: Any) -> Any:
    rows, columns = image.shape
    padded = lib.np.pad(image, 2)
    total = weights = lib.np.zeros_like(image)
    for i in range(5):
        for j in range(5):
            moved = padded[i : i + rows, j : j + columns]
            far = ((i - 2) ** 2 + (j - 2) ** 2) / 8
            weight = lib.np.exp(-far - (moved - image) ** 2 * 50)
            total, weights = total + weight * moved, weights + weight
    return total / weights


def _edges(lib: Library, image: Any) -> Any:
    """Return Sobel's gradients where they are greatest across the edge."""
    p = lib.np.pad(image, 1)
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    size = lib.np.sqrt(gx * gx + gy * gy)
    angle = lib.np.arctan2(gy, gx)
    sector = lib.np.round(angle * (4 / np.pi)).astype(np.int32) % 4
    m = lib.np.pad(size, 1)
    along = [(m[1:-1, 2:], m[1:-1, :-2]), (m[2:, 2:], m[:-2, :-2]), (m[2:, 1:-1], m[:-2, 1:-1])]
    along.append((m[2:, :-2], m[:-2, 2:]))
    one, other = along[0]
    for index, (ahead, behind) in enumerate(along[1:], 1):
        one, other = lib.np.where(sector == index, ahead, one), lib.np.where(sector == index, behind, other)
    return lib.np.where((size >= one) & (size >= other), size, 0.0)


def _resize(lib: Library, image: Any) -> Any:
    """Return an image of 5/8 of the size, each pixel of the four around its place."""
    rows, columns = (extent * 5 // 8 for extent in image.shape[:2])

    def places(count: int, extent: int) -> Any:
        at = lib.np.clip(
            (lib.np.arange(count, dtype=np.float32) + 0.5) * (extent / count) - 0.5, 0, extent - 1
        )
        first = lib.np.floor(at).astype(np.int32)
        return first, lib.np.minimum(first + 1, extent - 1), at - first.astype(np.float32)

    y0, y1, fy = places(rows, image.shape[0])
    x0, x1, fx = places(columns, image.shape[1])
    fy, fx = fy[:, None, None], fx[None, :, None]
    upper = image[y0[:, None], x0] * (1 - fx) + image[y0[:, None], x1] * fx
    lower = image[y1[:, None], x0] * (1 - fx) + image[y1[:, None], x1] * fx
    return upper * (1 - fy) + lower * fy


def _pyramid(lib: Library, image: Any) -> Any:
    levels = []
    for _ in range(4):
        rows, columns = (extent // 2 for extent in image.shape)
        image = image.reshape(rows, 2, columns, 2).max(axis=(1, 3))
        levels.append(image)
    return levels


def _equalized(lib: Library, image: Any) -> Any:
    counts = lib.np.zeros(256, dtype=np.int32).at[image.ravel()].add(1)
    sums = lib.np.cumsum(counts).astype(np.float32)
    table = lib.np.round((sums - sums[0]) * (255 / (sums[-1] - sums[0])))
    return table.astype(np.uint8)[image]


def _equalized_by_numpy(image: Any) -> Any:
    sums = np.cumsum(np.bincount(image.ravel(), minlength=256)).astype(np.float32)
    return np.round((sums - sums[0]) * (255 / (sums[-1] - sums[0]))).astype(np.uint8)[image]


def _equalized_in_loops(image: Any) -> Any:
    counts = np.zeros(256, np.int32)
    for pixel in image.flat:
        counts[pixel] += 1
    sums = np.cumsum(counts).astype(np.float32)
    table = np.round((sums - sums[0]) * np.float32(255 / (sums[-1] - sums[0])))
    found = np.empty_like(image)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            found[i, j] = table[image[i, j]]
    return found


PROGRAMS = [
    Unseen(name="bilateral", inputs=_image, small=13, usual=256, code=_bilateral),
    Unseen(name="edges", inputs=_image, small=13, usual=512, code=_edges),
    Unseen(
        name="resize",
        inputs=lambda random, n: (random.random((n, n, 3), np.float32),),
        small=24,
        usual=512,
        code=_resize,
    ),
    Unseen(name="pyramid", inputs=_image, small=32, usual=1024, code=_pyramid),
    Unseen(
        name="equalize",
        inputs=lambda random, n: (random.integers(20, 200, (n, n)).astype(np.uint8),),
        small=13,
        usual=1024,
        code=_equalized,
        judge=_equalized_by_numpy,
        loops=_equalized_in_loops,
    ),
]
