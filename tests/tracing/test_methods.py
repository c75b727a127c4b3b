"""Methods of objects that change between calls: nothing goes stale, and nothing is kept alive."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import TracingError, jit

X = np.arange(4, dtype=np.float32)


class Layer:
    def __init__(self, w: Any) -> None:
        self.w = w

    def apply(self, x: Any) -> Any:
        return x * self.w


class Model:
    """What programs of users look like: arrays, numbers, nested objects, and what no method reads."""

    gain = 1.0

    def __init__(self, factor: float = 3.0) -> None:
        self.factor = factor
        self.bias = X.copy()
        self.layers = [Layer(X + 1), Layer(X + 2)]
        self.params = {"v": X + 3, 7: X}
        self.history: list[float] = []
        self.traces: list[int] = []

    @property
    def doubled(self) -> Any:
        return self.bias * 2

    @jit
    def run(self, x: Any) -> Any:
        TRACES.append(1)
        for layer in self.layers:
            x = layer.apply(x)
        return x * self.factor * self.gain + self.doubled + self.params["v"]

    @jit
    def loss(self, x: Any) -> Any:
        return (self.run(x) * x).sum()

    def __call__(self, x: Any) -> Any:
        return x * self.factor + self.bias


TRACES: list[int] = []


def plainly(model: Model, x: Any) -> Any:
    for layer in model.layers:
        x = layer.apply(x)
    return x * np.float32(model.factor * model.gain) + model.doubled + model.params["v"]


def traced(model: Model, x: Any = X) -> int:
    """Return how often a call traces that gives what Python does."""
    before = len(TRACES)
    np.testing.assert_allclose(model.run(x), plainly(model, x), rtol=1e-6)
    return len(TRACES) - before


def test_what_changes_is_seen() -> None:
    model = Model()
    assert traced(model) == 1
    for _ in range(120):  # with and without the code for a form
        model.bias += 1
        model.bias = model.bias + 1
        model.layers[0].w[1] = 9
        model.history.append(1.0)  # which no method reads
        assert traced(model) == 0
    model.factor = 4.0
    assert traced(model) == 1
    model.factor = 3.0
    assert traced(model) == 0
    model.gain = 2.0  # in front of that of the class
    assert traced(model) == 1
    model.layers.append(Layer(X))
    assert traced(model) == 1
    model.layers[1] = model.layers[2]
    assert traced(model) == 1
    model.params["v"] = X.astype(np.float32)[:1]
    assert traced(model) == 1
    assert traced(Model()) == 0  # objects share what they are the same in
    assert traced(Model(4.0)) == 0


def test_gradients_see_it() -> None:
    model = Model()
    for scale in (1, 2, 3):
        model.layers[0].w = np.full(4, scale, np.float32)
        slope = 2 * model.layers[0].w * model.layers[1].w * 3 * X + model.bias * 2 + model.params["v"]
        np.testing.assert_allclose(model.loss.grad()(X), slope, rtol=1e-6)
        value, back = model.loss.vjp(X)
        assert value == pytest.approx(float((plainly(model, X) * X).sum()))
        np.testing.assert_allclose(back(np.float32(1))[0], slope, rtol=1e-6)


def test_functions_that_call_methods_see_it() -> None:
    model, other = Model(), Model(5.0)
    outer = jit(lambda x: model.run(x) + other.run(x))
    for _ in range(120):
        model.bias += 1
        other.layers[1].w += 1
        np.testing.assert_allclose(outer(X), plainly(model, X) + plainly(other, X), rtol=1e-6)
    other.factor = 1.0
    np.testing.assert_allclose(outer(X), plainly(model, X) + plainly(other, X), rtol=1e-6)


def test_bound_methods_and_callable_objects_see_it() -> None:
    model = Model()
    functions = [jit(model), jit(model.__call__)]
    slope = mind_mlir.grad(lambda x: model(x).sum())
    for _ in range(3):
        model.bias += 1
        model.factor += 1
        for function in functions:
            np.testing.assert_allclose(function(X), model(X))
    np.testing.assert_allclose(slope(X), np.full(4, model.factor))
    assert mind_mlir.grad(model.loss)(X).shape == (4,)


def test_branches_read_too() -> None:
    class Gate:
        def __init__(self) -> None:
            self.w = X + 1

        @jit
        def run(self, x: Any) -> Any:
            first = mind_mlir.cond(x.sum() > 0, lambda: x * self.w, lambda: x)
            return mind_mlir.fori_loop(0, 3, lambda _, y: y + self.w, first) - self.w

    gate = Gate()
    for _ in range(2):
        gate.w += 1
        np.testing.assert_allclose(gate.run(X), X * gate.w + 2 * gate.w)


def test_objects_are_collected() -> None:
    model = Model()
    model.parent = model  # type: ignore[attr-defined]  # as objects of users refer to one another
    for _ in range(120):
        model.run(X)
        model.loss.grad()(X)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_several_ways_to_one_object() -> None:
    class Pair:
        def __init__(self) -> None:
            self.one = self.other = Layer(X)

        @jit
        def run(self, x: Any) -> Any:
            return x + 1 if self.one is self.other else x - 1

    pair = Pair()
    np.testing.assert_array_equal(pair.run(X), X + 1)
    pair.other = Layer(X)
    np.testing.assert_array_equal(pair.run(X), X - 1)
    pair.one = pair.other
    np.testing.assert_array_equal(pair.run(X), X + 1)


def test_what_is_compared_is_compared_exactly() -> None:
    class Holder:
        value: Any = 0.0

        @jit
        def run(self, x: Any) -> Any:
            return x * 0 + (np.copysign(1.0, self.value) if isinstance(self.value, float) else 7)

    holder = Holder()
    for value, wanted in ((0.0, 1), (-0.0, -1), (0, 7), (False, 7), (float("nan"), 1), (np.int64(3), 7)):
        holder.value = value
        np.testing.assert_array_equal(holder.run(X), X * 0 + wanted)


def test_classes_of_all_kinds() -> None:
    class Registered:
        known: list[type] = []  # noqa: RUF012 -- a registry

        def __init_subclass__(cls) -> None:
            Registered.known.append(cls)

    class Slotted(Registered):
        __slots__ = ("shift", "w")

        def __init__(self) -> None:
            self.w, self.shift = X, 1.0

        @jit
        def run(self, x: Any) -> Any:
            assert isinstance(self, Slotted)
            assert self.__class__ is Slotted
            return x * self.w + self.shift + getattr(self, "missing", 0.0)

        def __getattr__(self, name: str) -> float:
            return {"missing": 2.0}[name]

    @dataclass
    class Settings:
        rate: float
        name: str

    class WithSettings:
        def __init__(self) -> None:
            self.settings = Settings(0.5, "a")

        @jit
        def run(self, x: Any) -> Any:
            return x * self.settings.rate

    slotted, settings = Slotted(), WithSettings()
    for step in range(3):
        slotted.w, slotted.shift = X + step, float(step)
        settings.settings.rate = float(step)
        np.testing.assert_allclose(slotted.run(X), X * slotted.w + step + 2)
        np.testing.assert_allclose(settings.run(X), X * step)
    assert Registered.known == [Slotted]


def test_methods_do_not_write() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        @jit
        def run(self, x: Any) -> Any:
            self.count += 1
            return x

    counter = Counter()
    with pytest.raises(TracingError, match=r"Counter is written to \(count\)") as caught:
        counter.run(X)
    assert caught.value.code == "E2306"
    assert counter.count == 0


def test_lower_names_what_is_read() -> None:
    executable = Model().run.lower(X).compile()
    names = [each.name for each in executable.parameters]
    assert names == ["x", "self.layers.0.w", "self.layers.1.w", "self.bias", "self.params.v", "self.params.7"]
