"""A model is called with arrays, keeps its weights, and is a program as any other."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads ONNX models, which the extra test installs")
from onnx_models import INT64, model, node, perceptron, reshaped

import mind_mlir
from mind_mlir.diagnostics import ArgumentError, ExecutionError, UnsupportedError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def layer(weights: dict[str, Any], x: Any) -> Any:
    return np.maximum(x @ weights["w"] + weights["b"], 0)


def test_a_model_is_called_by_place_and_by_name() -> None:
    read = mind_mlir.from_onnx(perceptron())
    wanted = layer(read.weights, ROWS)
    np.testing.assert_allclose(read(ROWS), wanted, rtol=1e-6)
    np.testing.assert_allclose(read(x=ROWS), wanted, rtol=1e-6)
    np.testing.assert_allclose(read(ROWS[:1]), wanted[:1], rtol=1e-6)
    assert repr(read) == "<Model graph(x)>"


def test_weights_are_those_of_the_call() -> None:
    read = mind_mlir.from_onnx(perceptron())
    before = read(ROWS)
    read.weights["b"] = read.weights["b"] + np.float32(100)
    np.testing.assert_allclose(read(ROWS), layer(read.weights, ROWS), rtol=1e-5)
    assert (read(ROWS) > before + 90).all()
    read.weights["w"][:] = 0
    np.testing.assert_allclose(read(ROWS), layer(read.weights, ROWS), rtol=1e-5)


def test_weights_of_a_frozen_model_are_part_of_its_code() -> None:
    read = mind_mlir.from_onnx(perceptron(), frozen=True)
    wanted = read(ROWS)
    read.weights["b"] = read.weights["b"] + np.float32(100)
    np.testing.assert_array_equal(read(ROWS), wanted)
    assert 'name="x"' in read.lower(ROWS).as_text()
    assert 'name="w"' not in read.lower(ROWS).as_text()


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda read: read(), "E6101"),
        (lambda read: read(ROWS, ROWS), "E6102"),
        (lambda read: read(ROWS, x=ROWS), "E6102"),
        (lambda read: read(y=ROWS), "E6102"),
        (lambda read: read(ROWS.astype(np.float64)), "E6103"),
        (lambda read: read(ROWS[0]), "E6104"),
        (lambda read: read(ROWS[:, :2]), "E6104"),
        (lambda read: read(sum), "E6105"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call: Callable[[Any], Any], code: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        call(mind_mlir.from_onnx(perceptron()))
    assert caught.value.code == code


@pytest.mark.parametrize(("buckets", "count"), [(None, 2), ([16], 1)])
def test_extents_in_a_range_have_one_program(buckets: Any, count: int) -> None:
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "length", axis=0),
        node("Range", "zero length one", "places"),
        node("Gather", "table places", "rows", axis=0),
        node("Add", "x rows", "moved"),
        node("ReduceMean", "moved axes", "z", keepdims=0),
    ]
    table = np.arange(60, dtype=np.float32).reshape(20, 3)
    values = {
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "axes": np.array([0], np.int64),
        "table": table,
    }
    read = mind_mlir.from_onnx(model(nodes, {"x": ["n", 3]}, ("z",), values), buckets=buckets)
    for extent in range(10, 17):
        x = np.random.default_rng(extent).standard_normal((extent, 3)).astype(np.float32)
        np.testing.assert_allclose(read(x), (x + table[:extent]).mean(axis=0), rtol=1e-5)
    assert (read.compiled, read.reason) == (count, None)


def test_one_extent_has_one_number_in_a_call() -> None:
    read = mind_mlir.from_onnx(model([node("Add", "x y", "z")], {"x": ["n"], "y": ["n"]}, ("z",)))
    one, three = np.ones(1, np.float32), np.ones(3, np.float32)
    assert read(three, three).tolist() == [2, 2, 2]
    with pytest.raises(ArgumentError) as caught:
        read(three, one)
    assert caught.value.code == "E6107"


def test_open_extents_are_settled_by_name() -> None:
    with pytest.raises(VerificationError) as caught:
        mind_mlir.from_onnx(perceptron()).as_text()
    assert caught.value.code == "E4303"
    read = mind_mlir.from_onnx(perceptron(), bindings={"rows": 2})
    assert '{name="x"} : tensor<f32[2, 3]>' in read.as_text()
    with pytest.raises(ArgumentError):
        read(ROWS[:1])
    with pytest.raises(ValueError, match="no open extent"):
        mind_mlir.from_onnx(perceptron(), bindings={"row": 2})


def test_numbers_that_decide_a_shape_are_part_of_the_program() -> None:
    read = mind_mlir.from_onnx(reshaped())
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    assert read(x, np.array([3, 4])).shape == (3, 4)
    assert read(x, np.array([-1])).shape == (12,)
    assert read(x, np.array([3, 4])).shape == (3, 4)
    with pytest.raises(UnsupportedError) as caught:
        read.lower(x, mind_mlir.TensorType(mind_mlir.DType.SI64, (2,)))
    assert caught.value.code == "E7001"


def test_large_inputs_decide_no_shape_unless_they_are_named() -> None:
    counted = model([node("NonZero", "x", "y")], {"x": [2, 2]}, ("y",))
    x = np.array([[0, 1], [2, 0]], np.float32)
    with pytest.raises(UnsupportedError, match="how many elements"):
        mind_mlir.from_onnx(counted)(x)
    assert mind_mlir.from_onnx(counted, static="x")(x).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="no input"):
        mind_mlir.from_onnx(counted, static="z")


def test_gradients_flow_to_arguments_and_weights() -> None:
    read = mind_mlir.from_onnx(perceptron())

    def loss(weights: Any, x: Any) -> Any:
        return (read.apply(weights, x) ** 2).sum()

    weights = dict(read.weights)
    slope = mind_mlir.grad(loss)(weights, ROWS)
    result = layer(weights, ROWS)
    np.testing.assert_allclose(slope["b"], 2 * result.sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(slope["w"], 2 * ROWS.T @ result, rtol=1e-5)
    of_x = mind_mlir.grad(lambda x: read(x).sum())(ROWS)
    np.testing.assert_allclose(of_x, (result > 0).astype(np.float32) @ weights["w"].T, rtol=1e-5)
    with pytest.raises(TypeError, match="traced"):
        read.apply({}, ROWS)


def test_a_model_is_a_program() -> None:
    read: Any = mind_mlir.from_onnx(perceptron())
    run = mind_mlir.compile(read, bindings={"rows": 2})
    np.testing.assert_allclose(run(ROWS)[0], layer(read.weights, ROWS), rtol=1e-6)
    (found,) = mind_mlir.interpret(read, {"x": ROWS})
    np.testing.assert_allclose(found, layer(read.weights, ROWS), rtol=1e-6)
    assert mind_mlir.verify(read) is read


def test_sequences_are_lists() -> None:
    nodes = [node("SequenceConstruct", "x i", "s"), node("SequenceAt", "s one", "y")]
    read = mind_mlir.from_onnx(
        model(nodes, {"x": (INT64, [2]), "i": (INT64, [1])}, ("s", "y"), {"one": np.array(1)})
    )
    listed, second = read(np.array([1, 2]), np.array([7]))
    assert [each.tolist() for each in listed] == [[1, 2], [7]]
    assert second.tolist() == [7]


def test_messages_name_the_node_and_models_are_pickled() -> None:
    nodes = [node("Neg", "x", "n"), node("Gather", "n i", "y")]
    read = model(nodes, {"x": [3], "i": (INT64, [1])}, ("y",))
    run = pickle.loads(pickle.dumps(mind_mlir.from_onnx(read)))  # noqa: S301 -- our own bytes
    assert run(np.ones(3, np.float32), np.array([2])) == -1
    with pytest.raises(ExecutionError) as error:
        run(np.ones(3, np.float32), np.array([9]))
    assert "2 | y = Gather(n, i)" in str(error.value)
