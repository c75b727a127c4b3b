"""`jit(interpret=True)`: functions of Python run as they are written, on arrays that hold their numbers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

X = np.array([1, 2, 3], np.float32)


def test_arrays_show_their_numbers() -> None:
    seen: list[Any] = []

    @mind_mlir.jit(interpret=True)
    def f(x: Any, n: Any) -> Any:
        y = x * 2
        seen.extend([repr(y), str(y), f"{y.sum():.1f}", float(y[0]), int(n), y.tolist(), np.asarray(y) + 1])
        if y.sum() > 0:
            y = y + 1
        for i in range(n):
            y = y * i
        return y

    assert f(X, 2).tolist() == [0, 0, 0]
    assert seen[:3] == ["array([2., 4., 6.], dtype=float32)", "[2. 4. 6.]", "12.0"]
    assert seen[3:6] == [2.0, 2, [2, 4, 6]]
    assert seen[6].tolist() == [3, 5, 7]


def test_loops_and_branches_run_as_python_does() -> None:
    seen: list[str] = []

    @mind_mlir.jit(interpret=True)
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            seen.append(f"{i} {c.sum()}")
            return c * 2

        y = mind_mlir.fori_loop(0, 3, body, x)
        n, y = mind_mlir.while_loop(lambda c: c[1].sum() < 500, lambda c: (c[0] + 1, c[1] * 2), (0, y))
        seen.append(str(n))
        y = mind_mlir.cond(y.sum() > 0, lambda: y, lambda: seen[9] and y)
        total, rows = mind_mlir.scan(lambda s, r: (s + r, s), 0.0, y, reverse=True)
        return total, rows

    total, rows = f(X)
    assert seen == ["0 6.0", "1 12.0", "2 24.0", "4"]
    assert (total, rows.tolist(), total.dtype) == (768, [640, 384, 0], np.float32)


def mixed(x: Any, p: dict[str, Any], n: Any) -> Any:
    @mind_mlir.jit
    def inner(y: Any) -> Any:
        return mnp.exp(-y) * p["w"]  # of the function around

    y = mind_mlir.fori_loop(0, n, lambda _, c: mnp.tanh(c) + inner(c), x)
    slope = mind_mlir.grad(lambda z: (z**3 * p["w"]).sum())(y)
    picked = mind_mlir.cond(y[0] > 0, lambda: slope, lambda: y)
    _, rows = mind_mlir.scan(lambda s, r: (s * 0.5 + r, s), 0.0, picked)
    ordered = mnp.sort(picked) + mnp.cumsum(y) + mnp.linalg.norm(y) + y.at[1].set(0.0)
    return {"loss": (rows * ordered).sum() + p["b"], "rows": rows, "count": mnp.argmax(y) + n}


def test_results_and_gradients_are_those_of_compiled_code() -> None:
    p = {"w": np.array([0.5, -1, 2], np.float32), "b": 3}
    compiled, interpreted = mind_mlir.jit(mixed), mind_mlir.jit(mixed, interpret=True)
    one, other = compiled(X, p, 3), interpreted(X, p, 3)
    for name, value in one.items():
        assert (value.dtype, value.shape) == (other[name].dtype, other[name].shape)
        np.testing.assert_allclose(value, other[name], rtol=1e-5)

    def loss(x: Any, p: Any) -> Any:
        return mixed(x, p, 3)["loss"]

    one = mind_mlir.jit(loss).value_and_grad((0, 1))(X, p | {"b": np.float32(3)})
    other = mind_mlir.jit(loss, interpret=True).value_and_grad((0, 1))(X, p | {"b": np.float32(3)})
    assert np.testing.assert_allclose(one[0], other[0], rtol=1e-5) is None
    np.testing.assert_allclose(one[1][0], other[1][0], rtol=1e-4)
    np.testing.assert_allclose(one[1][1]["w"], other[1][1]["w"], rtol=1e-4)
    result, pull = mind_mlir.vjp(mind_mlir.jit(lambda x: x * x, interpret=True), X)
    assert (result.tolist(), pull(X)[0].tolist()) == ([1, 4, 9], [2, 8, 18])


def test_methods_read_their_objects() -> None:
    class Model:
        def __init__(self) -> None:
            self.w, self.power, self.seen = X, 2, "number"

        @mind_mlir.jit(interpret=True)
        def run(self, x: Any) -> Any:
            assert repr(self.w) == repr(X)
            return ((self.w * x) ** self.power).sum()

    model = Model()
    assert model.run(X) == 98
    assert model.run.grad()(X).tolist() == [2, 16, 54]
    model.w = X * 0
    with pytest.raises(AssertionError):
        model.run(X)


def test_two_calls_of_one_gradient_are_of_two_numbers() -> None:
    @mind_mlir.jit(interpret=True)
    def f(x: Any) -> Any:
        g = mind_mlir.grad(lambda y: y * y if y > 1.5 else y)
        return g(x[0]), g(x[1])

    assert [float(each) for each in f(X)] == [1, 4]


def test_the_environment_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_INTERPRET", "1")
    monkeypatch.setattr("mind_mlir.runtime.executable.code_of", None)
    assert mind_mlir.jit(lambda x: x if x.sum() > 0 else -x)(X).tolist() == [1, 2, 3]
    assert mind_mlir.grad(lambda x: mnp.sin(x).sum())(X * 0).tolist() == [1, 1, 1]


def test_nan_is_found_where_it_is_made() -> None:
    f = mind_mlir.jit(lambda x: mnp.where(x > 0, mnp.log(x), 0.0), interpret=True, check_nan=True)
    with pytest.raises(mind_mlir.NotFiniteError, match="makes an infinity at \\[1\\]") as caught:
        f(np.array([1, 0], np.float32))
    location = caught.value.diagnostics[0].location
    assert location is not None
    assert location.source.name == __file__
    g = mind_mlir.jit(lambda y: mnp.sqrt(y).sum(), interpret=True, check_nan=True).grad()
    with pytest.raises(mind_mlir.NotFiniteError, match="in the derivative of"):
        g(np.array([0], np.float32))


def test_mistakes_are_those_of_traces() -> None:
    def run(function: Any) -> Any:
        return mind_mlir.jit(function, interpret=True)(X)

    with pytest.raises(mind_mlir.TracingError) as caught:
        run(lambda x: mind_mlir.while_loop(lambda c: c.sum() < 9, lambda c: c[:2], x))
    assert caught.value.code == "E2321"
    with pytest.raises(mind_mlir.VerificationError) as broken:
        run(lambda x: x + np.ones(4, np.float32))
    assert broken.value.code == "E3001"
    with pytest.raises(mind_mlir.TracingError) as nothing:
        run(lambda x: None)
    assert nothing.value.code == "E2304"
    with pytest.raises(mind_mlir.ExecutionError, match="index 5 is out of bounds"):
        mind_mlir.jit(lambda x, i: x[i], interpret=True)(X, 5)


DEBUGGER = """
import numpy as np, mind_mlir
@mind_mlir.jit
def f(x):
    y = x * 2
    breakpoint()
    return y
f(np.array([1, 2], np.float32))
"""


def test_a_breakpoint_stops_among_numbers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEBUGGER],
        input="p y\np y.sum() > 5\nc\n",
        env={"PYTHONPATH": ":".join(sys.path), "MIND_MLIR_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "array([2., 4.], dtype=float32)" in done.stdout
    assert "array(True)" in done.stdout
