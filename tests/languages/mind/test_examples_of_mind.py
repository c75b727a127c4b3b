"""The programs in examples/*.mind compute what numpy does, and their gradients are slopes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import programs_of_mind as reference
import pytest
from programs_of_mind import Tree, drawn

import mind_mlir
from mind_mlir.support import pytrees

EXAMPLES = Path(__file__).parents[3] / "examples"
COVERED = {"heat.mind", "mlp.mind", "newton.mind", "power_iteration.mind", "transformer.mind"}


@cache
def program(name: str) -> Any:
    """Return an example; those in f32 in f64, so that finite differences tell slopes."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    return mind_mlir.parse(text.replace("f32", "f64"), name, format="mind")


@cache
def compiled(name: str, function: str) -> Any:
    return mind_mlir.compile(program(name), function=function)


def run(name: str, function: str, **arguments: Any) -> Any:
    """Return the results of a function, which are the same compiled and interpreted."""
    found = compiled(name, function)(**arguments)
    module = compiled(name, function).lower(**arguments).module
    named: dict[str, Any] = {}
    for parameter, argument in arguments.items():
        leaves, form = pytrees.flatten(argument)
        named.update(zip(form.names(parameter), leaves, strict=True))
    leaves, _ = pytrees.flatten(found)
    for ours, oracle in zip(leaves, mind_mlir.interpret(module, named), strict=True):
        np.testing.assert_allclose(ours, oracle, rtol=1e-11, atol=1e-12)
    return found


def same(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    ours, form = pytrees.flatten(found)
    theirs, other = pytrees.flatten(expected)
    assert form == other
    for one, another in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, another, rtol=rtol, atol=1e-12)


def test_every_example_is_covered() -> None:
    assert {path.name for path in EXAMPLES.glob("*.mind")} == COVERED


def test_a_perceptron_learns_as_by_the_chain_rule() -> None:
    random = np.random.default_rng(0)
    params = reference.mlp_params(random)
    state = {"params": params, "velocity": reference.mlp_params(random)}
    x, y = drawn(random, 3, 5, 3), drawn(random, 3, 5, 2)
    same(run("mlp.mind", "predict", p=params, x=x[0]), reference.mlp_predict(params, x[0]))
    same(
        run("mlp.mind", "step", s=state, x=x[0], y=y[0], rate=0.1), reference.mlp_step(state, x[0], y[0], 0.1)
    )
    found = run("mlp.mind", "train", start=state, x=x, y=y, rate=0.1, epochs=4)
    same(found, reference.mlp_train(state, x, y, 0.1, 4))
    slopes = compiled("mlp.mind", "loss").grad()(params, x[0], y[0])
    slopes_agree("mlp.mind", "loss", {"p": params}, {"p": slopes}, x=x[0], y=y[0])


def test_heat_spreads_and_looks_back() -> None:
    random = np.random.default_rng(1)
    start, seen = drawn(random, 6, 7), drawn(random, 6, 7)
    same(run("heat.mind", "diffuse", start=start, rate=0.2, steps=5), reference.diffuse(start, 0.2, 5))
    same(
        run("heat.mind", "settle", start=start, rate=0.2, tolerance=1e-9), reference.settle(start, 0.2, 1e-9)
    )
    arguments = {"seen": seen, "rate": 0.2, "steps": 4}
    back = run("heat.mind", "look_back", start=start, **arguments)
    slopes_agree("heat.mind", "misfit", {"start": start}, {"start": -back}, **arguments)


def test_newton_finds_roots() -> None:
    root, steps = run("newton.mind", "kepler", mean=1.25, eccentricity=0.6)
    assert abs(root - 0.6 * np.sin(root) - 1.25) < 1e-12
    assert 2 < steps < 10
    speed = run("newton.mind", "speed", mean=1.25, eccentricity=0.6)
    np.testing.assert_allclose(speed, 1 / (1 - 0.6 * np.cos(root)), rtol=1e-9)
    same(run("newton.mind", "minimum", a=3.0), np.log(3.0))


def test_power_iteration_finds_the_eigenvalues() -> None:
    random = np.random.default_rng(2)
    a = reference.symmetric(np.array([4.0, 2.0, 0.5, 0.25]), random)
    start = np.ones(4)
    value, vector, _ = run("power_iteration.mind", "largest", a=a, start=start, tolerance=1e-14)
    np.testing.assert_allclose(value, 4, rtol=1e-12)
    np.testing.assert_allclose(a @ vector, 4 * vector, atol=1e-6)
    pair = run("power_iteration.mind", "two_largest", a=a, start=start, tolerance=1e-14)
    np.testing.assert_allclose(pair, [4, 2], rtol=1e-10)
    # The derivative of an eigenvalue is x x^T, which the iteration comes to.
    slope = run("power_iteration.mind", "sensitivity", a=a, start=start, tolerance=1e-14)
    np.testing.assert_allclose(slope, np.outer(vector, vector), atol=1e-5)


def test_a_transformer_and_its_gradient() -> None:
    random = np.random.default_rng(3)
    model = reference.transformer_model(random)
    text, following = random.integers(0, 11, (2, 3, 5))
    same(run("transformer.mind", "logits", p=model, text=text), reference.transformer_logits(model, text))
    loss, slopes = run("transformer.mind", "learn", p=model, text=text, next=following)
    np.testing.assert_allclose(loss, reference.transformer_loss(model, text, following), rtol=1e-10)
    slopes_agree("transformer.mind", "learn", {"p": model}, {"p": slopes}, text=text, next=following)


def slopes_agree(name: str, function: str, wrt: Tree, slopes: Tree, **others: Any) -> None:
    """Compare a gradient with finite differences, along a random direction for each array of it."""
    call = compiled(name, function)
    random = np.random.default_rng(4)
    values, form = pytrees.flatten(wrt)
    gradients, same_form = pytrees.flatten(slopes)
    assert form == same_form
    step = 1e-5
    for place, (value, gradient) in enumerate(zip(values, gradients, strict=True)):
        direction = random.standard_normal(np.shape(value))
        ends = []
        for sign in (1, -1):
            moved = [*values[:place], value + sign * step * direction, *values[place + 1 :]]
            found = call(**form.unflatten(moved), **others)
            ends.append(float(found[0] if isinstance(found, tuple) else found))
        slope = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.mind")), ids=lambda path: path.name)
def test_examples_have_nothing_wrong_in_them(path: Path) -> None:
    assert mind_mlir.load(path).check() == []
    assert path.read_text(encoding="utf-8").startswith("// ")
