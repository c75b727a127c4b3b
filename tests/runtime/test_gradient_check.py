"""`check_grad`: gradients beside differences: what agrees, what does not, and where there are edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.passes.in_f64 import in_f64
from mind_mlir.passes.verify import verify

RANDOM = np.random.default_rng(0)
W, X = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (5, 3)))


def layer(p: dict[str, Any], x: Any) -> Any:
    return (mnp.tanh(x @ p["w"] + p["b"]) ** 2).sum(axis=1)


def test_right_gradients_agree() -> None:
    found = mind_mlir.check_grad(layer, {"w": W, "b": np.zeros(4, np.float32)}, X)
    assert found.agrees
    assert [each.name for each in found.arguments] == ["p.b", "p.w", "x"]
    assert all(each.worst.error < 1e-5 and len(each.slopes) == 6 for each in found.arguments)
    lines = str(found).splitlines()
    assert lines[0].split() == ["argument", "type", "compared", "error", "outcome", "worst"]
    assert lines[-1] == "the gradients agree (errors up to 0.001 are allowed)"


def test_the_same_seed_gives_the_same_table() -> None:
    arguments = {"w": W, "b": np.zeros(4, np.float32)}, X
    one, same, other = (str(mind_mlir.check_grad(layer, *arguments, seed=seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_a_wrong_gradient_is_found_and_the_element_named() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * mnp.stop_gradient(x) + y

    found = mind_mlir.check_grad(f, np.array([1, 2, 3], np.float32), np.array([1, 1, 1], np.float32))
    assert not found.agrees
    wrong, right = found.arguments
    assert (wrong.worst.outcome, right.worst.outcome) == ("differs", "agrees")
    assert "[2]: 3 by the gradient, 6 by differences" in [str(each) for each in wrong.slopes]
    assert str(found).splitlines()[-1].startswith("the gradients of x differ")


def test_one_wrong_element_in_many_is_found() -> None:
    """A direction has a part in every element."""
    x = np.linspace(1, 2, 1000)

    def f(x: Any) -> Any:
        kept = mnp.where(np.arange(1000) == 500, mnp.stop_gradient(x), x)
        return (x * kept).sum()

    assert not mind_mlir.check_grad(f, x).agrees


def test_edges_are_no_differences() -> None:
    found = mind_mlir.check_grad(lambda x: mnp.where(x > 0, x, 0.0), np.array([-1, 0, 1], np.float32))
    assert found.agrees
    (x,) = found.arguments
    assert "has an edge here" in {each.outcome for each in x.slopes}


def test_what_is_not_finite_does_not_agree() -> None:
    found = mind_mlir.check_grad(mnp.log, np.array([1, -1], np.float32))
    assert not found.agrees
    assert found.arguments[0].worst.outcome == "is not finite"


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_every_width(dtype: str) -> None:
    def f(x: Any) -> Any:
        y = x.astype(dtype)
        return (mnp.exp(y) * y).astype("f32").sum()

    found = mind_mlir.check_grad(f, np.array([0.5, -1, 0.25, 1], np.float32))
    assert found.agrees
    assert found.tolerance == {"f64": 1e-3, "f32": 1e-3, "f16": 5e-2, "bf16": 5e-2}[dtype]


def test_loops_branches_integers_and_methods() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = W[:, 0]

        def run(self, x: Any, n: Any, i: Any) -> Any:
            y = mind_mlir.fori_loop(0, n, lambda _, c: mnp.sin(c) * self.w, x)
            return mind_mlir.cond(y.sum() > 0, lambda: y * 2, lambda: y * y) + x[i].sum()

    found = mind_mlir.check_grad(Model().run, np.array([1, 2, 3], np.float32), 4, np.array([2, 0]))
    assert found.agrees
    assert "x" in [each.name for each in found.arguments]


def test_operations_that_depend_on_the_width_keep_theirs() -> None:
    def f(x: Any) -> Any:
        bits = mnp.bitcast(x, dtype="ui32")
        return mnp.bitcast(bits, dtype="f32") + x

    module = in_f64(verify(mind_mlir.jit(f).lower(np.array([1, 2], np.float32)).module))
    (result,) = mind_mlir.interpret(module, {"x": np.array([1.0, 2.5])})
    assert (result.dtype, result.tolist()) == (np.float64, [2, 5])


def test_what_cannot_be_differentiated() -> None:
    with pytest.raises(mind_mlir.AutodiffError):
        mind_mlir.check_grad(lambda i: i * 2, np.array([1, 2]))
    with pytest.raises(TypeError):
        mind_mlir.check_grad(7)  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(TypeError, match="seed"):
        mind_mlir.check_grad(layer, {"w": W, "b": W[0]}, X, seed="x")  # type: ignore[arg-type]  # as above


def test_arguments_without_elements(recwarn: pytest.WarningsRecorder) -> None:
    found = mind_mlir.check_grad(lambda x, y: x.sum() + y * 2, np.zeros((0, 3)), 1.5)
    assert [(each.name, len(each.slopes)) for each in found.arguments] == [("y", 1)]
    assert " 1 slope " in f"{found}"
    for nothing in (mind_mlir.check_grad(lambda x: x.sum(), np.zeros(0)), mind_mlir.check_grad(lambda: 1.0)):
        assert nothing.agrees
        assert f"{nothing}" == "no argument has elements that are floats: there are no gradients to compare"
    assert not mind_mlir.check_grad(lambda x: (x * np.inf).sum(), np.ones(3)).agrees
    assert not recwarn.list
