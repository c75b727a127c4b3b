"""`from_jax` where jax is installed: the functions of the recorded programs, traced here and now."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import recorded
from test_jax_programs import NEAR

import mind_mlir

if TYPE_CHECKING:
    from collections.abc import Callable

HAS_JAX = importlib.util.find_spec("jax") is not None
needs_jax = pytest.mark.skipif(not HAS_JAX, reason="jax is not installed")
#: Functions, and the arguments to call them with; none where jax is not installed.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
if HAS_JAX:
    import jax
    import jax_programs

    FUNCTIONS = {name: (function, arguments) for name, function, arguments in jax_programs.functions()}


@needs_jax
@pytest.mark.parametrize("name", FUNCTIONS or ["none"])
def test_functions_agree_with_jax(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    executable = mind_mlir.compile(mind_mlir.from_jax(function, *arguments), function="main")
    found = executable(*jax_programs.leaves(arguments))
    expected = jax_programs.leaves(jax.jit(function)(*arguments))
    near = NEAR.get(name, 2e-5)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=near, atol=near)


@needs_jax
def test_every_function_is_recorded() -> None:
    assert set(FUNCTIONS) == {name for name in recorded.read() if not name.startswith("gradient of ")}


@needs_jax
def test_jitted_functions_and_shapes_do() -> None:
    function = jax.jit(lambda tree: tree["x"] + tree["y"])
    shape = jax.ShapeDtypeStruct((3,), np.float32)
    executable = mind_mlir.compile(mind_mlir.from_jax(function, {"x": shape, "y": shape}))
    one = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(executable(one, one)[0], 2 * one)


@needs_jax
@pytest.mark.parametrize("static", [(), (2,)], ids=["traced", "static"])
def test_arguments_that_are_not_used_stay(static: tuple[int, ...]) -> None:
    one, unused = np.arange(3, dtype=np.float32), np.ones((2, 2), np.float32)
    function = jax.jit(lambda x, _, factor, y: x - factor * y, static_argnums=static)
    given = [one, unused, np.float32(3), one]
    executable = mind_mlir.compile(mind_mlir.from_jax(function, *given))
    (found,) = executable(*[each for place, each in enumerate(given) if place not in static])
    np.testing.assert_array_equal(found, -2 * one)


def test_without_jax_it_says_so() -> None:
    code = """
import sys
sys.modules["jax"] = None
import mind_mlir
try:
    mind_mlir.from_jax(lambda x: x, 1.0)
except mind_mlir.UnsupportedError as error:
    print(error.diagnostics[0].code, error.diagnostics[0].message)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "E7003 jax is not installed\n"


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="function"):
        mind_mlir.from_jax(3)  # type: ignore[arg-type]  # the mistake


@needs_jax
def test_gradients_stop_where_jax_stops_them() -> None:
    """In loops, branches and functions too: jax itself lowers `stop_gradient` to nothing."""

    def quantised(x: Any, book: Any) -> Any:
        distances = jax.numpy.sum((x[:, None] - book) ** 2, axis=-1)
        nearest = book[jax.numpy.argmin(distances, axis=1)]
        straight = x + jax.lax.stop_gradient(nearest - x)
        return jax.numpy.sum(straight**2) + jax.numpy.mean((nearest - jax.lax.stop_gradient(x)) ** 2)

    def looped(x: Any, y: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            state = jax.lax.cond(
                state.sum() > 0,
                lambda at: at * jax.lax.stop_gradient(jax.numpy.sin(at)),
                jax.jit(lambda at: at + jax.lax.stop_gradient(at) * at),
                state,
            )
            return state + row, state.sum()

        return jax.lax.scan(step, x[0], x)[1].sum() + y.sum()

    rng = np.random.default_rng(0)
    x, book = (rng.standard_normal((rows, 3)).astype(np.float32) for rows in (5, 7))
    for function in (quantised, looped):
        gradient = mind_mlir.differentiate(mind_mlir.from_jax(function, x, book)).module
        expected = jax.value_and_grad(function, (0, 1))(x, book)
        for one, other in zip(mind_mlir.compile(gradient)(x, book), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
