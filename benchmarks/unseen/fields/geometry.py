"""Points, meshes and neighbourhoods of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.unseen.program import Unseen

if TYPE_CHECKING:
    from numpy.random import Generator

    from benchmarks.unseen.libraries import Library


def _normal(random: Generator, *shape: int) -> Any:
    return random.standard_normal(shape, np.float32)


def _turned(lib: Library, rotations: Any, points: Any) -> Any:
    """Return points that quaternions turn, one each."""
    axis = rotations[:, 1:]
    across = 2 * lib.np.cross(axis, points)
    return points + rotations[:, :1] * across + lib.np.cross(axis, across)


def _mesh_normals(lib: Library, corners: Any, faces: Any) -> Any:
    """Return what is perpendicular to a mesh at its corners, the mean of the faces around each."""
    one, two, three = (corners[faces[:, each]] for each in range(3))
    across = lib.np.cross(two - one, three - one)
    sums = sum(lib.segment_sum(across, faces[:, each], corners.shape[0]) for each in range(3))
    return sums / (lib.np.sqrt((sums * sums).sum(axis=1, keepdims=True)) + 1e-6)


def _line(lib: Library, points: Any, first: Any, second: Any) -> Any:
    """Return which line through two of the points is near most of them, and how many (RANSAC)."""
    begin, end = points[first], points[second]
    along = end - begin
    normal = lib.np.stack([-along[:, 1], along[:, 0]], axis=1)
    normal = normal / lib.np.sqrt((normal * normal).sum(axis=1, keepdims=True) + 1e-12)
    distance = lib.np.abs(points @ normal.T - (normal * begin).sum(axis=1))
    near = (distance < 0.05).sum(axis=0)
    return lib.np.argmax(near), near.max()


def _mean_shift(lib: Library, points: Any) -> Any:
    """Return where points end that move to the mean of those around them."""

    def step(_: Any, now: Any) -> Any:
        apart = ((now[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1)
        weight = lib.np.exp(-apart)
        return (weight @ points) / weight.sum(axis=1, keepdims=True)

    return lib.fori_loop(0, 5, step, points)


def _local_variance(lib: Library, image: Any) -> Any:
    """Return means and variances of squares of 15 x 15, by sums over all that is above and to the left."""

    def sums(values: Any) -> Any:
        table = lib.np.pad(lib.np.cumsum(lib.np.cumsum(values, axis=0), axis=1), ((1, 0), (1, 0)))
        return table[15:, 15:] - table[:-15, 15:] - table[15:, :-15] + table[:-15, :-15]

    mean = sums(image) / 225
    return mean, sums(image * image) / 225 - mean * mean


def _pairs(random: Generator, size: int) -> tuple[Any, ...]:
    first = random.integers(0, size, 200, dtype=np.int32)
    second = (first + random.integers(1, size, 200, dtype=np.int32)) % size
    return _normal(random, size, 2), first, second


PROGRAMS = [
    Unseen(
        name="turned_points",
        inputs=lambda random, n: (_normal(random, n, 4), _normal(random, n, 3)),
        small=67,
        usual=50_000,
        code=_turned,
    ),
    Unseen(
        name="mesh_normals",
        inputs=lambda random, n: (
            _normal(random, n, 3),
            random.integers(0, n, (2 * n, 3), dtype=np.int32),
        ),
        small=31,
        usual=20_000,
        code=_mesh_normals,
        bound=1e-3,
    ),
    Unseen(name="ransac", inputs=_pairs, small=50, usual=5000, code=_line),
    Unseen(
        name="mean_shift",
        inputs=lambda random, n: (_normal(random, n, 3),),
        small=33,
        usual=800,
        code=_mean_shift,
    ),
    Unseen(
        name="local_variance",
        inputs=lambda random, n: (random.random((n, n)),),
        small=29,
        usual=512,
        code=_local_variance,
        bound=1e-9,
    ),
]
