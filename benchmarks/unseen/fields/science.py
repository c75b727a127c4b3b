"""Kernels of the sciences: particles, fields on grids, equations of motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.unseen.program import Unseen

if TYPE_CHECKING:
    from numpy.random import Generator

    from benchmarks.unseen.libraries import Library

_CUT, _BOX = 2.5, 12.0


def _floats(random: Generator, *shape: int) -> Any:
    return random.random(shape, np.float32)


def _nbody(lib: Library, place: Any, mass: Any) -> Any:
    apart = place[None, :, :] - place[:, None, :]
    squared = (apart**2).sum(axis=-1) + 0.01
    return (apart * (mass[None, :] * squared**-1.5)[:, :, None]).sum(axis=1)


def _nbody_loops(place: Any, mass: Any) -> Any:
    count = place.shape[0]
    force = np.zeros_like(place)
    for i in range(count):
        x = y = z = np.float32(0)
        for j in range(count):
            dx, dy, dz = place[j, 0] - place[i, 0], place[j, 1] - place[i, 1], place[j, 2] - place[i, 2]
            squared = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            weight = mass[j] / (squared * np.sqrt(squared))
            x, y, z = x + weight * dx, y + weight * dy, z + weight * dz
        force[i, 0], force[i, 1], force[i, 2] = x, y, z
    return force


def _heat(lib: Library, field: Any) -> Any:
    def step(_: Any, u: Any) -> Any:
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return u.at[1:-1, 1:-1].add(0.2 * (around - 4 * u[1:-1, 1:-1]))

    return lib.fori_loop(0, 10, step, field)


def _heat_in_place(field: Any) -> Any:
    u = field.copy()
    for _ in range(10):
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        u[1:-1, 1:-1] += np.float32(0.2) * (around - 4 * u[1:-1, 1:-1])
    return u


def _wave(lib: Library, now: Any, before: Any) -> Any:
    laplacian = -6 * now
    for axis in range(3):
        laplacian = laplacian + lib.np.roll(now, 1, axis) + lib.np.roll(now, -1, axis)
    return 2 * now - before + 0.1 * laplacian


def _energy(lib: Library, place: Any) -> Any:
    apart = place[:, None, :] - place[None, :, :]
    apart = apart - _BOX * lib.np.round(apart / _BOX)
    squared = (apart * apart).sum(axis=-1)
    near = (squared < _CUT**2) & (squared > 0)
    inverse = 1 / lib.np.where(near, squared, 1.0) ** 3
    return lib.np.where(near, 2 * (inverse * inverse - inverse), 0.0).sum()


def _lennard_jones(lib: Library, place: Any) -> Any:
    assert lib.value_and_grad
    return lib.value_and_grad(lambda at: _energy(lib, at))(place)


def _lennard_jones_by_hand(place: Any) -> Any:
    apart = place[:, None, :] - place[None, :, :]
    apart -= _BOX * np.round(apart / _BOX)
    squared = (apart**2).sum(axis=-1)
    near = (squared < _CUT**2) & (squared > 0)
    squared[~near] = 1
    third = squared**-3
    energy = np.where(near, 2 * (third**2 - third), 0).sum()
    slope = np.where(near, 2 * (-6 * third**2 + 3 * third) / squared, 0) * 4
    return energy, (slope[:, :, None] * apart).sum(axis=1)


def _grid(random: Generator, size: int) -> tuple[Any, ...]:
    """Return particles near the places of a cubic grid, some distance apart."""
    side = int(np.ceil(size ** (1 / 3)))
    places = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)[:size]
    return (places * (_BOX / side) + random.random((size, 3)) * 0.2,)


def _gray_scott(lib: Library, u: Any, v: Any) -> Any:
    def spread(a: Any) -> Any:
        return sum(lib.np.roll(a, shift, axis) for axis in (0, 1) for shift in (1, -1)) - 4 * a

    def step(_: Any, fields: Any) -> Any:
        u, v = fields
        reacted = u * v * v
        return (
            u + 0.16 * spread(u) - reacted + 0.035 * (1 - u),
            v + 0.08 * spread(v) + reacted - 0.1 * v,
        )

    return lib.fori_loop(0, 10, step, (u, v))


def _thomas(lib: Library, lower: Any, middle: Any, upper: Any, right: Any) -> Any:
    """Solve many equations with three diagonals, a column each."""

    def forward(carried: Any, row: Any) -> Any:
        c, d = carried
        below, on, above, b = row
        scale = 1 / (on - below * c)
        found = above * scale, (b - below * d) * scale
        return found, found

    def back(x: Any, row: Any) -> Any:
        x = row[1] - row[0] * x
        return x, x

    zeros = lib.np.zeros_like(right[0])
    _, (c, d) = lib.scan(forward, (zeros, zeros), (lower, middle, upper, right))
    _, found = lib.scan(back, zeros, (c[::-1], d[::-1]))
    return found[::-1]


def _thomas_loops(lower: Any, middle: Any, upper: Any, right: Any) -> Any:
    rows, columns = right.shape
    c, d = np.empty_like(right), np.empty_like(right)
    for i in range(rows):
        for j in range(columns):
            scale = 1 / (middle[i, j] - (lower[i, j] * c[i - 1, j] if i else 0))
            c[i, j] = upper[i, j] * scale
            d[i, j] = (right[i, j] - (lower[i, j] * d[i - 1, j] if i else 0)) * scale
    for i in range(rows - 2, -1, -1):
        for j in range(columns):
            d[i, j] -= c[i, j] * d[i + 1, j]
    return d


def _lorenz(lib: Library, start: Any) -> Any:
    def slope(p: Any) -> Any:
        x, y, z = p
        return lib.np.stack([10 * (y - x), x * (28 - z) - y, x * y - (8 / 3) * z])

    def step(_: Any, p: Any) -> Any:
        k1 = slope(p)
        k2 = slope(p + 0.005 * k1)
        k3 = slope(p + 0.005 * k2)
        k4 = slope(p + 0.01 * k3)
        return p + (0.01 / 6) * (k1 + 2 * k2 + 2 * k3 + k4)

    return lib.fori_loop(0, 50, step, start)


def _pi(lib: Library, x: Any, y: Any) -> Any:
    return 4 * lib.np.mean(x * x + y * y <= 1)


def _poisson(lib: Library, density: Any) -> Any:
    """Return the potential of a periodic density."""
    size = density.shape[0]
    along, across = np.fft.fftfreq(size, 1 / size), np.fft.rfftfreq(size, 1 / size)
    squares = (2 * np.pi) ** 2 * (along[:, None] ** 2 + across**2)
    squares[0, 0] = np.inf
    return lib.np.fft.irfft2(lib.np.fft.rfft2(density) * (-1 / squares))


PROGRAMS = [
    Unseen(
        name="nbody",
        inputs=lambda random, n: (_floats(random, n, 3), _floats(random, n)),
        small=17,
        usual=1024,
        code=_nbody,
        loops=_nbody_loops,
    ),
    Unseen(
        name="heat_2d",
        inputs=lambda random, n: (_floats(random, n, n),),
        small=17,
        usual=512,
        code=_heat,
        judge=_heat_in_place,
        loops=_heat_in_place,
    ),
    Unseen(
        name="wave_3d",
        inputs=lambda random, n: (random.random((n, n, n)), random.random((n, n, n))),
        small=7,
        usual=96,
        code=_wave,
        bound=1e-12,
    ),
    Unseen(
        name="lennard_jones",
        inputs=_grid,
        small=150,
        usual=512,
        code=_lennard_jones,
        judge=_lennard_jones_by_hand,
        bound=1e-10,
    ),
    Unseen(
        name="gray_scott",
        inputs=lambda random, n: (_floats(random, n, n), _floats(random, n, n)),
        small=16,
        usual=256,
        code=_gray_scott,
    ),
    Unseen(
        name="tridiagonal",
        inputs=lambda random, n: (*(random.random((n, n)) + shift for shift in (0, 4, 0, 0)),),
        small=19,
        usual=400,
        code=_thomas,
        loops=_thomas_loops,
        bound=1e-12,
    ),
    Unseen(
        name="lorenz",
        inputs=lambda random, n: (_floats(random, 3, n) * 10,),
        small=5,
        usual=8192,
        code=_lorenz,
        bound=1e-3,
    ),
    Unseen(
        name="pi",
        inputs=lambda random, n: (_floats(random, n), _floats(random, n)),
        small=1001,
        usual=2_000_000,
        code=_pi,
    ),
    Unseen(
        name="poisson",
        inputs=lambda random, n: (random.standard_normal((n, n)),),
        small=12,
        usual=256,
        code=_poisson,
        bound=1e-10,
    ),
]
