"""The examples of control flow: equal to their numpy rules, and with the right gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from control_references import EXAMPLES
from unrolling import unroll

import mind_mlir

Array: TypeAlias = npt.NDArray[Any]

FOLDER = Path(__file__).parents[1] / "examples" / "control"


def example(name: str) -> mind_mlir.Module:
    return mind_mlir.verify(mind_mlir.load(FOLDER / f"{name}.ir", format="core"))


def floats(values: tuple[Array, ...]) -> list[Array]:
    return [value for value in values if value.dtype.kind == "f"]


def test_every_example_has_a_reference() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ir")) == sorted(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_compiled_and_interpreted_are_the_numpy_rule(name: str) -> None:
    reference, arguments, _ = EXAMPLES[name]
    expected = reference(**arguments)
    module = example(name)
    for found in (mind_mlir.compile(module)(**arguments), mind_mlir.interpret(module, arguments)):
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", EXAMPLES)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    """The slope along a random direction, of the sum of the results."""
    reference, arguments, wrt = EXAMPLES[name]
    gradient = mind_mlir.differentiate(example(name), wrt=wrt)
    slopes = mind_mlir.compile(gradient.module)(**arguments)[-len(wrt) :]
    random = np.random.default_rng(1)
    counts = [int(value) for value in reference(**arguments) if np.asarray(value).dtype.kind == "i"]
    directions = {key: random.standard_normal(arguments[key].shape) for key in wrt}

    def total(step: float) -> float:
        moved = {key: arguments[key] + step * direction for key, direction in directions.items()}
        results = reference(**{**arguments, **moved})
        assert [int(value) for value in results if np.asarray(value).dtype.kind == "i"] == counts
        return float(sum(np.sum(value) for value in results if np.asarray(value).dtype.kind == "f"))

    # So narrow that loops that end by a tolerance take as many steps on either side.
    width = 1e-7
    difference = (8 * (total(width) - total(-width)) - (total(2 * width) - total(-2 * width))) / (12 * width)
    slope = sum(float(np.sum(s * directions[key])) for key, s in zip(wrt, slopes, strict=True))
    np.testing.assert_allclose(slope, difference, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", EXAMPLES)
def test_gradients_are_those_of_the_unrolled_program(name: str) -> None:
    _, arguments, wrt = EXAMPLES[name]
    if name == "heat":  # some hundred steps, which unrolled are thousands of operations
        arguments = {**arguments, "start": np.round(arguments["start"] * 1e-5, 7)}
    module = example(name)
    loops = mind_mlir.compile(mind_mlir.differentiate(module, wrt=wrt).module)(**arguments)
    unrolled = mind_mlir.verify(unroll(module, arguments))
    steps = mind_mlir.interpret(mind_mlir.differentiate(unrolled, wrt=wrt).module, arguments)
    for ours, theirs in zip(loops[-len(wrt) :], steps[-len(wrt) :], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["branch", "nested_loops", "irreducible"])
@pytest.mark.parametrize("sign", [1, -1])
def test_every_way_through_a_branch(name: str, sign: int) -> None:
    reference, arguments, _ = EXAMPLES[name]
    moved = {k: v if v.dtype.kind != "f" else sign * 2 * v for k, v in arguments.items()}
    found = mind_mlir.compile(example(name))(**moved)
    for ours, theirs in zip(found, reference(**moved), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
