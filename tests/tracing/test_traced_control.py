"""Branches and loops of traced functions: against Python's own, in nested containers, and their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import TracingError, cond, fori_loop, scan, while_loop

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]], np.float32)


#: For what its annotations do not allow.
untyped: Any = while_loop


class State(NamedTuple):
    steps: Any
    value: Any


def both(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result within a function that is traced, which is that outside of one."""
    found, alone = mind_mlir.jit(function)(*arguments), function(*arguments)
    for one, other in zip(flat(found), flat(alone), strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    return found


def flat(tree: Any) -> list[Any]:
    return mind_mlir.support.pytrees.flatten(tree)[0]


def test_branches() -> None:
    def function(x: Any, least: Any) -> Any:
        def big(y: Any) -> Any:
            return {"y": y * least, "n": 1, "from": (x[0], 2.5)}

        def small(y: Any) -> Any:
            return {"n": mnp.astype(x.sum(), "i32"), "y": -y, "from": (y, 1)}

        return cond(x.sum() > least, big, small, x[1])

    for least in (np.float32(3), np.float32(30)):
        found = both(function, X, least)
        assert list(found) == ["y", "n", "from"]
        expected = X[1] * least if least == 3 else -X[1]
        np.testing.assert_array_equal(found["y"], expected)
        assert (found["n"].dtype, found["from"][1].dtype) == (np.int32, np.float64)


def test_a_number_is_a_predicate() -> None:
    choose = mind_mlir.jit(lambda n: cond(n, lambda: 1, lambda: 2.5))
    assert [float(choose(np.int32(n))) for n in (0, -3)] == [2.5, 1]
    assert float(cond(True, lambda: 1, lambda: 2)) == 1


def test_while() -> None:
    def collatz(n: Any) -> Any:
        def step(state: State) -> State:
            halved = cond(state.value % 2 == 0, lambda: state.value // 2, lambda: 3 * state.value + 1)
            return State(state.steps + 1, halved)

        return while_loop(lambda state: state.value != 1, step, State(0, n))

    for start, steps in ((1, 0), (6, 8), (27, 111)):
        found = both(collatz, np.int64(start))
        assert isinstance(found, State)
        assert (int(found.steps), int(found.value)) == (steps, 1)


def test_counted() -> None:
    def function(x: Any, lower: Any, upper: Any) -> Any:
        rows = mnp.asarray(x)

        def step(i: Any, carried: Any) -> Any:
            total, (kept, nothing), product = carried
            return total + mnp.take(rows, i) * i, [kept, nothing], product * 1.5

        return fori_loop(lower, upper, step, (0, [x, None], 1))

    total, (kept, nothing), product = both(function, X[0], 1, 3)
    np.testing.assert_array_equal(total, X[0, 1] + 2 * X[0, 2])
    np.testing.assert_array_equal(kept, X[0])
    assert (total.dtype, product.dtype, float(product), nothing) == (np.float32, np.float64, 2.25, None)
    assert float(both(function, X[0], 3, 1)[0]) == 0
    counted = both(lambda n, x: fori_loop(n, 5, lambda i, s: s * 0.5 + i, x), np.array(2), np.float32(1))
    assert (counted.dtype, float(counted)) == (np.float32, 6.125)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse: bool) -> None:
    def step(carried: Any, slices: Any) -> Any:
        total = carried["s"] + slices[0] * slices[1].sum()
        return {"s": total}, (total, slices[1])

    def function(xs: Any, ys: Any) -> Any:
        return scan(step, {"s": 0.0}, (xs, ys), reverse=reverse)

    xs = np.array([2.0, -1.0], np.float32)
    last, (sums, rows) = both(function, xs, X)
    total, expected = np.float32(0), []
    order = [1, 0] if reverse else [0, 1]
    for place in order:
        total = total + xs[place] * X[place].sum()
        expected.append(total)
    np.testing.assert_allclose(last["s"], total, rtol=1e-6)
    np.testing.assert_allclose(sums[order], expected, rtol=1e-6)
    np.testing.assert_array_equal(rows, X)


def test_scan_without_arrays() -> None:
    last, powers = both(lambda x: scan(lambda c, _: (c * x, c), 1, None, length=4), np.float32(3))
    assert (float(last), powers.tolist(), powers.dtype) == (81, [1, 3, 9, 27], np.float32)
    nothing, doubled = both(lambda x: scan(lambda c, row: (c, row * 2), None, x), X)
    assert nothing is None
    np.testing.assert_array_equal(doubled, X * 2)
    last, none = both(lambda x: scan(lambda c, row: (c + row, None), x[0], x, length=2), X)
    assert none is None
    np.testing.assert_array_equal(last, 2 * X[0] + X[1])


def test_loops_within_loops_read_what_is_around_them() -> None:
    def function(x: Any) -> Any:
        @mind_mlir.jit
        def row(i: Any) -> Any:
            return x[i] * 2

        def inner(i: Any, total: Any) -> Any:
            return fori_loop(0, x.shape[1], lambda j, t: t + row(i)[j] * x[i, j], total)

        return fori_loop(0, x.shape[0], inner, 0.0)

    np.testing.assert_allclose(mind_mlir.jit(function)(X), 2 * (X**2).sum(), rtol=1e-6)


def test_a_step_is_traced_again_where_a_number_becomes_an_array() -> None:
    seen = []

    def step(i: Any, total: Any) -> Any:
        seen.append(total.dtype)
        return total + X[0]

    shape_changes = mind_mlir.jit(lambda: fori_loop(0, 3, step, 0.0))
    with pytest.raises(TracingError, match="init is tensor<f64"):
        shape_changes()
    seen.clear()
    found: Any = mind_mlir.jit(lambda x: fori_loop(0, 2, lambda i, s: step(i, s).sum() * x[i, i] + s, 0))(X)
    assert seen == [np.int64, np.float32]
    assert found.dtype == np.float32


def slope(function: Callable[[Any], Any], x: Any, direction: Any) -> Any:
    compiled = mind_mlir.jit(function)
    return (compiled(x + 1e-6 * direction) - compiled(x - 1e-6 * direction)) / 2e-6


@pytest.mark.parametrize(
    "function",
    [
        lambda x: cond(x.sum() > 1, lambda: 2 * (x**3).sum(), lambda: -x.sum()),
        lambda x: fori_loop(0, 3, lambda i, s: s * x[0, i] + mnp.sin(x[1, i]), 1.0),
        lambda x: while_loop(lambda v: v < 50, lambda v: v * v + x[0, 0], (x * x).sum()),
        lambda x: scan(lambda c, r: (c * r.sum(), mnp.exp(c)), 0.5, x, reverse=True)[1].sum(),
    ],
    ids=["cond", "fori_loop", "while_loop", "scan"],
)
def test_gradients(function: Callable[[Any], Any]) -> None:
    x = X.astype(np.float64)
    direction = np.random.default_rng(2).standard_normal(x.shape)
    found = mind_mlir.grad(function)(x)
    np.testing.assert_allclose((found * direction).sum(), slope(function, x, direction), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (
            lambda: cond(True if X.size else X, lambda: X, lambda: X[0]),
            "E2320",
            "the result of cond is tensor<f32[2, 3]> in one",
        ),
        (
            lambda: cond(True, lambda: {"a": X, "b": (1, X)}, lambda: {"a": X, "b": (1, X.astype("f8"))}),
            "E2320",
            "the result.b.1 of cond",
        ),
        (lambda: cond(True, lambda: (X, X), lambda: [X, X]), "E2320", "the result is (*, *) and [*, *]"),
        (
            lambda: fori_loop(0, 3, lambda i, c: (c[0], c[1].astype("f64")), (X, X)),
            "E2321",
            "init.1 is tensor<f32[2, 3]>, and body_fun returns tensor<f64[2, 3]>",
        ),
        (
            lambda: untyped(lambda c: True, lambda c: [c[0]], (X,)),
            "E2321",
            "body_fun carries another container on than it is given: init is (*,) and [*]",
        ),
        (lambda: scan(lambda c, x: c, X[0], X), "E2321", "f returns an object of type TracedArray"),
        (
            lambda: while_loop(lambda c: c > 0, lambda c: c, X),
            "E2322",
            "what cond_fun returns is tensor<i1[2, 3]>, no scalar",
        ),
        (lambda: cond(X, lambda: 1, lambda: 2), "E2322", "the predicate of cond is tensor<f32[2, 3]>"),
        (
            lambda: cond((True, False), lambda: 1, lambda: 2),
            "E2322",
            "the predicate of cond is (*, *), a container",
        ),
        (
            lambda: scan(lambda c, x: (c, x), 0, {"a": X, "b": X[0]}),
            "E2323",
            "xs.b of scan has 3 slices, and xs.a says 2",
        ),
        (
            lambda: scan(lambda c, x: (c, x), 0, X, length=3),
            "E2323",
            "xs of scan has 2 slices, and length says 3",
        ),
        (
            lambda: scan(lambda c, x: (c, x), 0, np.float32(1)),
            "E2323",
            "xs of scan is tensor<f32[]>, which has no leading axis",
        ),
        (lambda: scan(lambda c, x: (c, x), 0, None), "E2323", "scan is given no arrays, and no length"),
        (lambda: cond(True, lambda: None, lambda: None), "E2324", "the branches of cond return no arrays"),
        (lambda: while_loop(lambda c: True, lambda c: c, ()), "E2324", "while_loop carries no arrays"),
        (
            lambda: fori_loop(0, 2.5, lambda i, c: c, X),
            "E2325",
            "upper of fori_loop is tensor<f64[]>, no integer scalar",
        ),
        (
            lambda: mind_mlir.jit(lambda n: fori_loop(0, n, lambda i, c: c, X), promotion="strict")(
                np.ones(2)
            ),
            "E2325",
            "upper of fori_loop is tensor<f64[2]>, no integer scalar",
        ),
    ],
)
def test_mistakes(call: Callable[[], Any], code: str, message: str) -> None:
    with pytest.raises(TracingError) as caught:
        mind_mlir.jit(call)()
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert message in found.message
    assert found.location is not None


def test_values_of_a_step_stay_in_it() -> None:
    kept: list[Any] = []

    @mind_mlir.jit
    def function(x: Any) -> Any:
        def step(i: Any, carried: Any) -> Any:
            kept.append(carried * i)
            return carried + 1

        fori_loop(0, 3, step, x)
        return kept[0]

    with pytest.raises(TracingError, match="E2303"):
        function(X)


def test_arguments_of_another_kind() -> None:
    with pytest.raises(TypeError, match=r"(?m)^true_fn must be callable, not an object of type ndarray$"):
        cond(True, X, X)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match=r"(?m)^length must be an integer, not the float 2.5$"):
        scan(lambda c, x: (c, x), 0, None, length=2.5)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ValueError, match=r"(?m)^length must not be negative, but is -1$"):
        mind_mlir.jit(lambda: scan(lambda c, x: (c, x), 0, None, length=-1))()
