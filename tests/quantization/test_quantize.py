"""Programs whose weights become numbers of few bits: what changes, what is left, and the errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from mind_mlir import Module

RNG = np.random.default_rng(2)
X = RNG.standard_normal((3, 64)).astype(np.float32)
W1, W2, W3 = (RNG.standard_normal(shape).astype(np.float32) for shape in ((64, 96), (32, 96), (32, 7)))


def network(x: Any, w1: Any, w2: Any, w3: Any) -> Any:
    hidden = mnp.tanh(x @ w1)
    return mnp.tanh(hidden @ w2.T) @ w3, hidden


def with_parameters() -> Module:
    return mind_mlir.jit(network).lower(X, W1, W2, W3).module


def opcodes(module: Module) -> list[str]:
    return [op.opcode for op in module.functions[0].entry.operations]


def test_parameters_are_replaced_by_others_of_their_names() -> None:
    given = {"w1": W1, "w2": W2, "w3": W3}
    model = mind_mlir.quantize(with_parameters(), format="q8_0", weights=given, examples={"x": X})
    assert opcodes(model.module).count("QuantizedDot") == 3
    assert {"MatMul", "Transpose"}.isdisjoint(opcodes(model.module))
    shapes = {name: array.shape for name, array in model.weights.items()}
    assert shapes == {"w1": (96, 2, 34), "w2": (32, 3, 34), "w3": (7, 1, 34)}
    assert [layer.weight for layer in model.layers] == ["w1", "w2", "w3"]
    assert [layer.shape for layer in model.layers] == [(96, 64), (32, 96), (7, 32)]
    found = mind_mlir.compile(model.module)(x=X, **model.weights)
    exact = mind_mlir.compile(with_parameters())(x=X, **given)
    for number, (left, right) in enumerate(zip(found, exact, strict=True)):
        error = np.linalg.norm(left - right) / np.linalg.norm(right)
        assert error == pytest.approx(model.output_errors[number])
        assert error < 0.05


def test_errors_of_a_layer_are_those_of_its_weight_and_of_its_product_alone() -> None:
    module = mind_mlir.jit(lambda x, w: x @ w).lower(X, W1).module
    model = mind_mlir.quantize(
        module, format="int4", group=32, activations="float", weights={"w": W1}, examples={"x": X}
    )
    (layer,) = model.layers
    held = tuple(model.weights[name] for name in ("w", "w.scale", "w.zero_point"))
    decoded = mind_mlir.decode_weights(held, format="int4").T
    assert layer.weight_error == pytest.approx(np.linalg.norm(decoded - W1) / np.linalg.norm(W1))
    expected = np.linalg.norm(X @ decoded - X @ W1) / np.linalg.norm(X @ W1)
    assert layer.output_error == pytest.approx(expected, rel=1e-3)
    assert model.output_errors == pytest.approx([expected], rel=1e-3)
    assert layer.bytes == (W1.nbytes, sum(each.nbytes for each in held))


@pytest.mark.parametrize("name", ["q8_0", "q4_0", "int8", "int4", "fp8"])
def test_constants_are_weights(name: str) -> None:
    module = mind_mlir.jit(lambda x: network(x, W1, W2, W3)).lower(X).module
    model = mind_mlir.quantize(module, format=name, group=32, examples={"x": X})
    assert not model.weights
    assert len(model.layers) == 3
    bound = {"q8_0": 0.02, "int8": 0.02, "fp8": 0.06}.get(name, 0.2)
    assert all(0 < layer.weight_error < bound for layer in model.layers)
    assert all(layer.output_error is not None and layer.output_error < bound for layer in model.layers)


def test_what_is_used_otherwise_stays_beside_its_numbers() -> None:
    module = mind_mlir.jit(lambda x, w: (x @ w) * w.sum()).lower(X, W1).module
    model = mind_mlir.quantize(module, weights={"w": W1}, examples={"x": X})
    names = [parameter.name for parameter in model.module.functions[0].parameters]
    assert names == ["x", "w", "w.columns"]
    (found,) = mind_mlir.compile(model.module)(x=X, w=W1, **model.weights)
    np.testing.assert_allclose(found, (X @ W1) * W1.sum(), rtol=0.1, atol=abs(W1.sum()))


def test_one_weight_of_two_products_is_encoded_once() -> None:
    module = mind_mlir.jit(lambda x, w: (x @ w, (x + 1) @ w)).lower(X, W1).module
    model = mind_mlir.quantize(module, weights={"w": W1})
    assert list(model.weights) == ["w"]
    assert len(model.layers) == 2


def test_rows_that_are_no_multiple_of_a_group_are_left_with_the_reason() -> None:
    module = mind_mlir.jit(lambda x: x[:, :40] @ W1[:40]).lower(X).module
    model = mind_mlir.quantize(module)
    assert not model.layers
    (left,) = model.left
    assert "40 elements" in left.reason
    assert left.reason in str(model)


def test_the_table_has_a_line_for_each_layer() -> None:
    model = mind_mlir.quantize(with_parameters(), weights={"w1": W1, "w2": W2, "w3": W3})
    head, names, *lines = str(model).splitlines()
    assert head == "weights of format q8_0"
    assert names.split()[:3] == ["product", "weight", "shape"]
    assert [line.split()[1] for line in lines] == ["w1", "w2", "w3"]
    assert all(layer.output_error is None for layer in model.layers)


def test_products_of_a_vector_and_dot_general_are_known() -> None:
    def both(v: Any, w: Any) -> Any:
        return w @ v, mnp.einsum("k,kn->n", v, w.T)

    vector = X[0]
    module = mind_mlir.jit(both).lower(vector, W1.T).module
    model = mind_mlir.quantize(module, weights={"w": np.ascontiguousarray(W1.T)}, examples={"v": vector})
    assert len(model.layers) == 2
    assert max(model.output_errors) < 0.02


def test_products_in_loops_and_branches_have_the_errors_of_all_iterations() -> None:
    square = (W1[:, :64] / 8).copy()

    def looped(x: Any, w: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            known = mind_mlir.cond(h.sum() > -1e9, lambda: h @ square.T, lambda: h)
            return mnp.tanh(known @ w), None

        return mind_mlir.scan(step, x, None, length=3)[0]

    model = mind_mlir.quantize(
        mind_mlir.jit(looped).lower(X, square).module, weights={"w": square}, examples={"x": X}
    )
    assert str(model.module).count("QuantizedDot") == 2
    assert list(model.weights) == ["w"]
    h, off, size = X, np.zeros(2), np.zeros(2)
    product = mind_mlir.jit(lambda x, b: mnp.quantized_matmul(x, b, format="q8_0", activations="int8"))
    for _ in range(3):
        for place, w in enumerate((square.T, square)):
            (blocks,) = mind_mlir.encode_weights(np.ascontiguousarray(w.T), format="q8_0")
            exact = h @ w
            off[place] += np.square(product(h, blocks) - exact).sum()
            size[place] += np.square(exact).sum()
            h = exact if place == 0 else np.tanh(exact)
    errors = [layer.output_error for layer in model.layers]
    assert errors == pytest.approx(np.sqrt(off / size), rel=1e-3)
    found = mind_mlir.compile(model.module)(x=X, **model.weights)
    assert np.linalg.norm(found[0] - h) / np.linalg.norm(h) == pytest.approx(model.output_errors[0], rel=1e-2)


def test_unknown_weights_are_named() -> None:
    with pytest.raises(mind_mlir.ArgumentError, match=r"E6102.*'w4'"):
        mind_mlir.quantize(with_parameters(), weights={"w4": W1})
    with pytest.raises(mind_mlir.ArgumentError):
        mind_mlir.quantize(with_parameters(), weights={"w1": W1[:3]})


def test_wrong_options_say_what_there_is() -> None:
    with pytest.raises(ValueError, match="format"):
        mind_mlir.quantize(with_parameters(), format="q5_0")
    with pytest.raises(ValueError, match="group"):
        mind_mlir.quantize(with_parameters(), format="int8", group=48)
    with pytest.raises(ValueError, match="activations"):
        mind_mlir.quantize(with_parameters(), format="fp8", activations="int8")
    with pytest.raises(ValueError, match="group"):
        mind_mlir.encode_weights(W1, format="int8", group=64)
    with pytest.raises(ValueError, match="matrix"):
        mind_mlir.encode_weights(W1[0], format="q8_0")


@pytest.mark.parametrize(("name", "steps"), [("q8_0", 127), ("int8", 127), ("q4_0", 8), ("int4", 7.5)])
def test_encoded_weights_are_off_by_half_a_step_at_most(name: str, steps: float) -> None:
    held = mind_mlir.encode_weights(W2, format=name, group=32)
    found = mind_mlir.decode_weights(held, format=name)
    groups = np.abs(W2).reshape(32, 3, 32).max(axis=2, keepdims=True)
    error = np.abs(found - W2).reshape(32, 3, 32) / groups
    # A step more than half of one: the scale is an f16, and q4_0 has a number less on one side.
    assert error.max() < (1.01 if name == "q4_0" else 0.51) / steps


def test_zeros_stay_zeros_in_every_format() -> None:
    for name in ("q8_0", "q4_0", "int8", "int4", "fp8"):
        held = mind_mlir.encode_weights(np.zeros((2, 64)), format=name)
        assert not mind_mlir.decode_weights(held, format=name).any()
