"""`shard_map`: what each rank computes of its parts, gradients through it, and what is told of mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import (
    ArtefactError,
    ExecutionError,
    Mesh,
    NotFiniteError,
    ShardedArray,
    TracingError,
    UnsupportedError,
    shard_map,
)

if TYPE_CHECKING:
    from pathlib import Path

GRID = Mesh("data=2,model=2")
RNG = np.random.default_rng(3)
X, W1, W2 = (RNG.standard_normal(shape) for shape in ((8, 6), (6, 10), (10, 4)))


def layers(x: Any, w1: Any, w2: Any) -> Any:
    """Compute two layers, the first with its columns divided and the second with its rows."""
    return mind_mlir.all_reduce(mnp.tanh(x @ w1) @ w2, "model")


DIVIDED = shard_map(layers, GRID, ("data", "*,model", "model"), "data")


def test_divided_layers_are_the_layers() -> None:
    np.testing.assert_allclose(DIVIDED(X, W1, W2), np.tanh(X @ W1) @ W2)


def test_results_may_stay_in_parts_and_come_back_as_arguments() -> None:
    apart = shard_map(layers, GRID, ("data", "*,model", "model"), "data", gather=False)
    found = apart(X, mind_mlir.shard(W1, GRID, "*,model"), W2)
    assert isinstance(found, ShardedArray)
    assert found.shape == (8, 4)
    assert {part.shape for part in found.parts.values()} == {(4, 4)}
    np.testing.assert_array_equal(np.asarray(found), DIVIDED(X, W1, W2))
    np.testing.assert_array_equal(found.gather(), DIVIDED(X, W1, W2))
    double = shard_map(lambda y: y + y, GRID, "data", "data")
    np.testing.assert_array_equal(double(found), 2 * found.gather())


def test_gradients_go_through_it_as_through_the_whole_function() -> None:
    def loss(x: Any, w1: Any, w2: Any) -> Any:
        return mnp.sum(mnp.square(DIVIDED(x, w1, w2)))

    def whole(x: Any, w1: Any, w2: Any) -> Any:
        return mnp.sum(mnp.square(mnp.tanh(x @ w1) @ w2))

    value, found = mind_mlir.value_and_grad(loss, (0, 1, 2))(X, W1, W2)
    expected, wanted = mind_mlir.value_and_grad(whole, (0, 1, 2))(X, W1, W2)
    np.testing.assert_allclose(value, expected)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_gradients_within_it_are_reduced_by_whoever_wants_them() -> None:
    mesh = Mesh("data=4")

    def step(w: Any, x: Any) -> Any:
        value, slope = mind_mlir.value_and_grad(lambda w: mnp.mean(mnp.square(x @ w)))(w)
        return mind_mlir.all_reduce(value, "data", "mean"), mind_mlir.all_reduce(slope, "data", "mean")

    value, slope = shard_map(step, mesh, ("", "data"), "")(W1, X)
    wanted = mind_mlir.value_and_grad(lambda w: mnp.mean(mnp.square(mnp.asarray(X) @ w)))(W1)
    np.testing.assert_allclose(value, wanted[0])
    np.testing.assert_allclose(slope, wanted[1])


def test_loops_and_scans_meet_in_each_step() -> None:
    mesh = Mesh("ring=4")

    def ring(x: Any) -> Any:
        total, moved = mind_mlir.fori_loop(
            0, 4, lambda _, s: (s[0] + s[1], mind_mlir.shift(s[1], "ring")), (x * 0.0, x)
        )
        last, _ = mind_mlir.scan(
            lambda s, _: (mind_mlir.all_reduce(s, "ring", "mean"), s), moved, None, length=2
        )
        return total, last

    x = np.arange(8.0)
    total, last = shard_map(ring, mesh, "ring", "ring")(x)
    np.testing.assert_array_equal(total, np.tile(x.reshape(4, 2).sum(0), 4))
    np.testing.assert_array_equal(last, np.tile(x.reshape(4, 2).mean(0), 4))


def test_the_interpreter_runs_all_ranks() -> None:
    lowered = mind_mlir.jit(DIVIDED).lower(X, W1, W2)
    names = [parameter.name for parameter in mind_mlir.compile(lowered.module)["main"].parameters]
    (found,) = mind_mlir.interpret(lowered.module, dict(zip(names, (X, W1, W2), strict=True)))
    np.testing.assert_allclose(found, DIVIDED(X, W1, W2))


def test_an_exception_in_one_rank_is_the_caller_s() -> None:
    def f(x: Any) -> Any:
        return mind_mlir.all_reduce(x[mind_mlir.axis_index("data") * 5], "data")

    with pytest.raises(ExecutionError, match="E6001"):
        shard_map(f, Mesh("data=2"), "", "")(np.ones(3))


@pytest.mark.parametrize(
    ("in_specs", "words"),
    [
        ("rows", "'rows' must be an axis"),
        (("data",), "cannot stand for"),
        ("data,*,model", "has 3 dimensions"),
        (("*,data", "", ""), "cannot be divided evenly"),
    ],
)
def test_shardings_that_do_not_fit_are_told(in_specs: Any, words: str) -> None:
    mesh = Mesh("data=4,model=2")
    with pytest.raises(ValueError, match=words):
        shard_map(layers, mesh, in_specs, "")(X, W1, W2)


def test_collectives_need_a_mesh_around_them() -> None:
    with pytest.raises(TracingError, match="E2326"):
        mind_mlir.jit(lambda x: mind_mlir.all_reduce(x, "data"))(X)


def test_an_array_in_other_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="shard it so, or gather it"):
        DIVIDED(X, mind_mlir.shard(W1, GRID, "model"), W2)


def test_one_within_another_is_refused() -> None:
    with pytest.raises(TracingError, match="E2327"):
        shard_map(lambda *args: DIVIDED(*args)[0], GRID, "", "")(X, W1, W2)


def test_mistakes_in_ranks_are_not_placed_in_threads_of_the_library() -> None:
    with pytest.raises(ValueError, match="has 1 dimensions, and the array 0"):
        shard_map(lambda x: x[0, 0], GRID, "data", "data")(X)


def test_arguments_by_name_are_told_to_be_given_by_position() -> None:
    with pytest.raises(TypeError, match=r"layers takes its arguments by position.*give w2 so"):
        DIVIDED(X, W1, w2=W2)


def test_what_makes_a_nan_is_found_in_the_rank_that_does() -> None:
    def f(x: Any) -> Any:
        sums = mind_mlir.all_reduce(mnp.log(x), "data")
        return mind_mlir.shift(mind_mlir.all_reduce(sums * 0, "data", "max"), "data")

    checked = shard_map(f, Mesh("data=4"), "data", "data", gather=False, check_nan=True)
    np.testing.assert_array_equal(checked(np.ones(8)), np.zeros(8))
    with pytest.raises(NotFiniteError, match=r"E6006.* Log ") as caught:
        checked(np.array([1, 2, 3, 4, -1.0, 1, 1, 1]))
    assert "mnp.log(x)" in str(caught.value)


def test_profiles_and_artefacts_are_refused_with_what_to_do(tmp_path: Path) -> None:
    executable = mind_mlir.jit(DIVIDED).lower(X, W1, W2).compile()
    with pytest.raises(UnsupportedError, match="this process runs 4 ranks of the mesh data=2,model=2"):
        executable.profile(X, W1, W2)
    with pytest.raises(ArtefactError, match=r"E6504.*no artefact has collectives"):
        mind_mlir.package(executable.module, tmp_path)
