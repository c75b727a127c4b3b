"""Meshes and shardings: as texts, ranks in groups, and parts of arrays."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from mind_mlir import Mesh, Sharding


def test_a_mesh_is_its_axes_in_order() -> None:
    mesh = Mesh({"data": 2, "model": 3})
    assert str(mesh) == "data=2,model=3"
    assert mesh == Mesh("data=2,model=3") != Mesh("model=3,data=2")
    assert mesh.size == 6
    assert pickle.loads(pickle.dumps(mesh)) == mesh  # noqa: S301 -- made in this process
    assert [mesh.coordinates(rank) for rank in (0, 1, 5)] == [
        {"data": 0, "model": 0},
        {"data": 0, "model": 1},
        {"data": 1, "model": 2},
    ]


def test_groups_are_the_ranks_that_differ_in_some_axes_alone() -> None:
    mesh = Mesh("a=2,b=2,c=2")
    assert mesh.group(5, "b") == (5, 7)
    assert mesh.group(5, "a,c") == (0, 1, 4, 5)
    assert mesh.group(5, "c,a") == (0, 4, 1, 5), "the first axis is the outermost one"
    assert [mesh.position(5, axes) for axes in ("b", "a,c", "c,a")] == [0, 3, 3]


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ("", "must be written as in data=2"),
        ("data", "must be written as in data=2"),
        ("data=0", "must be positive"),
        ("data=2,data=2", "comes twice"),
        ("2x=2", "must be an identifier"),
        ({}, "must have an axis"),
        ({"a": 2**11, "b": 2**11}, "ranks at most"),
    ],
)
def test_what_is_no_mesh_says_why(axes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Mesh(axes)


def test_a_sharding_is_a_text_or_the_axes_of_each_dimension() -> None:
    sharding = Sharding("*,data+model")
    assert sharding == Sharding((None, ("data", "model")))
    assert str(Sharding(("data", None))) == "data"
    assert str(Sharding(None)) == str(Sharding("*,*")) == ""
    mesh = Mesh("data=2,model=3")
    assert sharding.local(mesh, (5, 12)) == (5, 2)
    assert sharding.part(mesh, 4, (5, 12)) == (slice(0, 5), slice(8, 10))
    assert Sharding("model").missing(mesh) == ("data",)


@pytest.mark.parametrize(
    ("spec", "shape", "words"),
    [
        ("data,data", (2, 2), "one dimension only"),
        ("rows", (2,), "must be an axis of the mesh"),
        ("data,*,model", (2, 2), "has 3 dimensions, and the array 2"),
        ("model", (4,), "cannot be divided evenly into 3 parts along model"),
    ],
)
def test_what_is_no_sharding_says_why(spec: str, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Sharding(spec).local(Mesh("data=2,model=3"), shape)
