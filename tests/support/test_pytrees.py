"""Nested containers are taken apart into leaves and put together as what they were."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_mlir.support.pytrees import LEAF, MAX_DEPTH, MAX_PARTS, Form, flatten, is_leaf, register_leaf


class Pair(NamedTuple):
    first: Any
    second: Any = None


@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any
    activation: str = field(default="relu", metadata={"static": True})


@dataclass(slots=True)
class State:
    layers: Any
    steps: Any = field(init=False)

    def __post_init__(self) -> None:
        self.steps = 0


@dataclass
class Array:
    data: Any

    def __array__(self, *_: object, **__: object) -> Any:
        return np.asarray(self.data)


KEYS = st.sampled_from(["w", "b", "bias", "0", "a.b", "dense/kernel", "é", ""])


def _state(layers: Any, steps: Any) -> State:
    made = State(layers)
    made.steps = steps
    return made


def containers(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    few = st.lists(parts, max_size=3)
    return st.one_of(
        few,
        few.map(tuple),
        st.dictionaries(KEYS, parts, max_size=3),
        st.dictionaries(KEYS, parts, max_size=3).map(OrderedDict),
        st.builds(Pair, parts, parts),
        st.builds(Layer, parts, parts, st.sampled_from(["relu", "tanh"])),
        st.builds(_state, parts, parts),
    )


LEAVES = st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=2), st.binary(max_size=2))
TREES = st.recursive(st.none() | LEAVES, containers, max_leaves=12)


def classes(value: Any) -> Any:
    """Return the classes of a tree, and the order of its dicts."""
    if isinstance(value, dict):
        return type(value), [(key, classes(part)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [classes(part) for part in value]
    if isinstance(value, (Layer, State)):
        return type(value), [classes(getattr(value, name)) for name in value.__dataclass_fields__]
    return type(value)


@given(TREES)
def test_it_is_put_together_as_what_it_was(tree: Any) -> None:
    leaves, form = flatten(tree)
    assert all(is_leaf(leaf) for leaf in leaves)
    again = form.unflatten(leaves)
    assert again == tree
    assert classes(again) == classes(tree)
    assert flatten(again) == (leaves, form)


@given(TREES)
def test_forms_are_the_same_whatever_the_leaves(tree: Any) -> None:
    leaves, form = flatten(tree)
    _, other = flatten(form.unflatten(range(len(leaves))))
    assert form == other
    assert hash(form) == hash(other)
    assert str(form) == str(other)
    assert form.difference(other, "x") is None
    for copied in (pickle.loads(pickle.dumps(form)), copy.deepcopy(form)):  # noqa: S301 -- our own bytes
        assert copied == form
        assert repr(copied.unflatten(leaves)) == repr(tree)


@given(TREES)
def test_every_leaf_has_a_name_of_its_own(tree: Any) -> None:
    leaves, form = flatten(tree)
    for prefix in ("x", ""):
        names = form.names(prefix)
        assert len(names) == len(set(names)) == len(leaves) == form.count


def test_leaves_of_a_part() -> None:
    leaves, form = flatten(({"b": 1, "a": 2}, None, 3, [4, [5]]))
    parts = [part.unflatten(leaves[where]) for part, where in zip(form.parts, form.slices(), strict=True)]
    assert parts == [{"b": 1, "a": 2}, None, 3, [4, [5]]]


@given(TREES, TREES)
def test_what_differs_is_named(one: Any, two: Any) -> None:
    first, second = flatten(one)[1], flatten(two)[1]
    found = first.difference(second, "x")
    assert (found is None) == (first == second)
    assert found is None or found.startswith("x")


def test_names() -> None:
    tree = {
        "w": 1,
        "layers": [2, (3,)],
        "pair": Pair(4, {"é": 5}),
        "layer": Layer(6, None),
        "a.b": [7],
        "0": 8,
    }
    leaves, form = flatten(tree)
    assert dict(zip(form.names("p"), leaves, strict=True)) == {
        "p.w": 1,
        "p.layers.0": 2,
        "p.layers.1.0": 3,
        "p.pair.first": 4,
        "p.pair.second.é": 5,
        "p.layer.w": 6,
        "p['a.b'].0": 7,
        "p['0']": 8,
    }
    assert flatten({"w": 1, "b": [2]})[1].names() == ["b.0", "w"]
    assert flatten(1)[1].names("x") == ["x"]
    expected = "{'w': *, 'layers': [*, (*,)], 'pair': Pair(first=*, second={'é': *}), "
    assert str(form) == expected + "'layer': Layer(w=*, b=None, activation='relu'), 'a.b': [*], '0': *}"


def test_order_alone_makes_no_other_form() -> None:
    one, two = flatten({"w": 1, "b": 2}), flatten({"b": 2, "w": 1})
    assert one == two
    assert list(one[1].unflatten([0, 0])) == ["w", "b"]
    assert list(two[1].unflatten([0, 0])) == ["b", "w"]


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        ([1], (1,), "x is [*] and (*,)"),
        ([1], 1, "x is [*] and an array"),
        ({"a": (1, None)}, {"a": (1, 2)}, "x.a.1 is None and an array"),
        ({"a": 1}, {"b": 1}, "x is {'a': *} and {'b': *}"),
        (
            Layer(1, 2, "relu"),
            Layer(1, 2, "tanh"),
            "x is Layer(w=*, b=*, activation='relu') and Layer(w=*, b=*, activation='tanh')",
        ),
        (Layer(1, 2, "relu"), Layer(1, (2, 3), "relu"), "x.b is an array and (*, *)"),
        ([0] * 40, [0] * 41, "x is list of 40 and list of 41"),
    ],
)
def test_differences(one: Any, two: Any, message: str) -> None:
    assert flatten(one)[1].difference(flatten(two)[1], "x") == message


def test_arrays_are_leaves_whatever_else_they_are() -> None:
    array, wrapped = np.ones(3), Array(np.ones(3))
    assert flatten(array) == ([array], LEAF)
    assert flatten([wrapped])[0] == [wrapped]
    assert flatten(np.float32(1))[1] is flatten(Layer)[1] is LEAF


def test_a_class_can_be_one_of_leaves() -> None:
    class Point(NamedTuple):
        x: int

    register_leaf(Point)
    assert flatten([Point(1)])[0] == [Point(1)]


def test_a_dataclass_is_made_without_its_constructor() -> None:
    leaves, form = flatten(Layer(1, 2, "tanh"))
    assert leaves == [1, 2]
    assert form.unflatten([3, 4]) == Layer(3, 4, "tanh")
    assert form != flatten(Layer(1, 2))[1]
    made = flatten(_state(1, 7))[1].unflatten([3, 4])
    assert (made.layers, made.steps) == (3, 4)


def nested(depth: int) -> Any:
    tree: Any = 1
    for _ in range(depth):
        tree = [tree]
    return tree


def test_depth() -> None:
    assert flatten(nested(MAX_DEPTH))[0] == [1]
    own: list[Any] = []
    own += [own, own]
    shared: Any = 1
    for _ in range(MAX_DEPTH + 1):
        shared = (shared, shared)
    for tree in (nested(MAX_DEPTH + 1), nested(100_000), own, {"a": own}, shared):
        with pytest.raises(ValueError, match=r"^params must be nested at most 64 levels deep"):
            flatten(tree, "params")


def test_many_leaves() -> None:
    shared: Any = [0] * 10
    for _ in range(10):
        shared = [shared] * 10
    empty: Any = ()
    for _ in range(MAX_DEPTH - 1):
        empty = (empty, empty)
    for tree in ([0.0] * (MAX_PARTS + 1), shared, empty):
        with pytest.raises(ValueError, match=r"^x must have at most 100000 parts"):
            flatten(tree, "x")


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^each key of a dict in params must be a string, not the int 3$"):
        flatten([{"a": 1, 3: 2}], "params")
    with pytest.raises(
        TypeError, match=r"^the static field activation of Layer in x must be hashable, not an"
    ):
        flatten(Layer(1, 2, []), "x")  # type: ignore[arg-type]  # that it is no string is the point
    with pytest.raises(ValueError, match=r"^leaves must be 2, not 3$"):
        flatten([1, 2])[1].unflatten([1, 2, 3])


def test_classes_that_come_and_go() -> None:
    for number in range(2000):
        cls = type(f"Leaf{number}", (), {})
        assert flatten([cls()])[1] == flatten([1])[1]
    assert isinstance(flatten([Pair(1)])[1], Form)
