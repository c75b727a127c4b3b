"""Which processes plans see in each group."""

from __future__ import annotations

from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import pytest

import mind_mlir
from mind_mlir.collectives.world import is_even, spread_of
from mind_mlir.planning.exchanges import groups_of

MESHES = [mind_mlir.Mesh(dict(zip("abc", sizes, strict=True))) for sizes in product((1, 2, 3), repeat=3)]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_groups_are_those_of_a_run(mesh: mind_mlir.Mesh) -> None:
    counts = [count for count in range(1, mesh.size + 1) if is_even(mesh, count)]
    for count, number in product(counts, (1, 2, 3)):
        for axes in map(",".join, permutations(mesh.axes, number)):
            rows, owners = groups_of(mesh, axes, count)
            found = {}
            for rank in range(mesh.size):
                world: Any = SimpleNamespace(size=count, rank=rank // (mesh.size // count))
                group = mesh.group(rank, axes)
                spread, found[group] = spread_of(mesh, group, world)
                assert spread.owners == owners
            assert sorted(found.values()) == sorted(map(tuple, rows.tolist()))
