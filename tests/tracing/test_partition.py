"""Whole programs of which each rank of a mesh computes a part, as users write them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

MESH = mind_mlir.Mesh("data=2,model=2")
RNG = np.random.default_rng(3)


def _array(*shape: int) -> Any:
    return (RNG.normal(size=shape) * 0.3).astype(np.float32)


X, W, V = _array(4, 6), _array(6, 8), _array(8, 6)


def mlp(x: Any, w: Any, v: Any) -> Any:
    return mnp.tanh(x @ w) @ v


def annotated(x: Any, w: Any, v: Any) -> Any:
    divided = mind_mlir.with_sharding
    return mlp(divided(x, MESH, "data"), divided(w, MESH, "*,model"), divided(v, MESH, "model"))


def _sent(text: str) -> Counter[tuple[str, int]]:
    """Return the collectives of a printed stage that send something, with the bytes."""
    return Counter(
        (
            line.split(" = ")[1].split(" ")[0],
            int(line.split("each rank sends ")[1].split(" ")[0].replace(",", "")),
        )
        for line in text.splitlines()
        if "each rank sends" in line
    )


def test_a_layer_by_columns_and_one_by_rows_are_one_sum() -> None:
    text = mind_mlir.jit(annotated).lower(X, W, V).as_text("partitioned")
    half = X.nbytes // 2  # each rank has half of the rows, and sends half of that twice
    assert _sent(text) == {("AllReduce", half): 1, ("AllGather", half): 1}
    np.testing.assert_allclose(mind_mlir.jit(annotated)(X, W, V), mlp(X, W, V), atol=1e-6)


def test_gradients_are_divided_as_what_they_are_of() -> None:
    def loss(f: Any) -> Any:
        return lambda w, v, x: (f(x, w, v) ** 2).mean()

    value, (dw, dv) = mind_mlir.value_and_grad(loss(annotated), (0, 1))(W, V, X)
    wanted, (one, other) = mind_mlir.value_and_grad(loss(mlp), (0, 1))(W, V, X)
    np.testing.assert_allclose(value, wanted, rtol=1e-6)
    np.testing.assert_allclose(dw, one, atol=1e-6)
    np.testing.assert_allclose(dv, other, atol=1e-6)
    step = mind_mlir.value_and_grad(loss(annotated), (0, 1))
    sent = _sent(step.lower(W, V, X).as_text("partitioned"))
    assert {opcode for opcode, _ in sent} == {"AllReduce", "AllGather"}
    # The sum of the layer, the loss, and the gradients of both matrices, each over the batch.
    assert sum(count for (opcode, _), count in sent.items() if opcode == "AllReduce") == 4


def test_arrays_stay_in_parts() -> None:
    run = mind_mlir.partition(mlp, MESH, ("data", "*,model", None), gather=False)
    result = run(mind_mlir.shard(X, MESH, "data"), W, V)
    assert isinstance(result, mind_mlir.ShardedArray)
    assert str(result.sharding) == "data"
    np.testing.assert_allclose(result.gather(), mlp(X, W, V), atol=1e-6)
    again = run(result, W, V)
    np.testing.assert_allclose(np.asarray(again), mlp(mlp(X, W, V), W, V), atol=1e-6)


def test_results_are_divided_as_is_asked_for() -> None:
    run = mind_mlir.partition(mlp, MESH, ("data", "*,model", "model"), "*,data+model", gather=False)
    with pytest.raises(ValueError, match="result 0: dimension 1, of extent 6, cannot be divided evenly"):
        run(X, W, V)
    run = mind_mlir.partition(mlp, MESH, ("data", "*,model", "model"), "data,model", gather=False)
    result: Any = run(X, W, V)
    assert str(result.sharding) == "data,model"
    assert {part.shape for part in result.parts.values()} == {(2, 3)}
    np.testing.assert_allclose(result.gather(), mlp(X, W, V), atol=1e-6)


def test_what_is_partitioned_can_be_differentiated() -> None:
    run = mind_mlir.partition(mlp, MESH, ("data", "*,model", "model"), "")
    found = mind_mlir.grad(lambda w: (run(X, w, V) ** 2).sum())(W)
    wanted = mind_mlir.grad(lambda w: (mlp(X, w, V) ** 2).sum())(W)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_containers_and_numbers_are_arguments() -> None:
    run = mind_mlir.partition(lambda p, s: {"y": p["w"] * s}, MESH, ({"w": "*,model"}, None))
    np.testing.assert_array_equal(run({"w": W}, 2.0)["y"], W * 2)


def _norm(x: Any, gain: Any) -> Any:
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / mnp.sqrt((centered * centered).mean(axis=-1, keepdims=True) + 1e-5) * gain


def block(p: dict[str, Any], x: Any) -> Any:
    """Return a transformer block of 4 heads."""
    batch, length, width = x.shape
    h = _norm(x, p["gain"])
    q, k, v = (
        (h @ p[name]).reshape(batch, length, 4, width // 4).transpose(0, 2, 1, 3)
        for name in ("wq", "wk", "wv")
    )
    scores = mnp.where(
        np.tril(np.ones((length, length), bool)), q @ k.transpose(0, 1, 3, 2) / 2, np.float32(-1e9)
    )
    weights = mnp.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    x = x + (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["wo"]
    return x + mnp.tanh(_norm(x, p["gain"]) @ p["w1"] + p["bias"]) @ p["w2"]


BLOCK = {name: _array(16, 16) for name in ("wq", "wk", "wv", "wo")}
BLOCK |= {"w1": _array(16, 32), "w2": _array(32, 16), "bias": _array(32), "gain": _array(16)}
COLUMNS, ROWS = "*,model", "model"
SPECS: dict[str, Any] = dict.fromkeys(("wq", "wk", "wv", "w1"), COLUMNS) | dict.fromkeys(("wo", "w2"), ROWS)
SPECS |= dict.fromkeys(("bias", "gain"))


def test_a_transformer_block_has_a_sum_for_attention_and_one_for_its_layers() -> None:
    x = _array(4, 6, 16)
    run = mind_mlir.partition(block, MESH, (SPECS, "data"))
    np.testing.assert_allclose(run(BLOCK, x), mind_mlir.jit(block)(BLOCK, x), atol=1e-5)
    text = mind_mlir.jit(run).lower(BLOCK, x).as_text("partitioned")
    assert _sent(text) == {("AllReduce", x.nbytes // 2): 2, ("AllGather", x.nbytes // 2): 1}
    part = "tensor<f32[2, 2, 6, 6]>"  # of the batch, and of the heads
    assert part in text


def test_collectives_do_not_go_with_annotations() -> None:
    def both(x: Any) -> Any:
        total = mind_mlir.shard_map(lambda part: mind_mlir.all_reduce(part, "data"), MESH, "data", "")
        return total(mind_mlir.with_sharding(x, MESH, "data"))

    with pytest.raises(mind_mlir.UnsupportedError, match="E7001"):
        mind_mlir.jit(both)(X)


@pytest.mark.parametrize(
    ("sharding", "code"), [("rows", "E4312"), ("*,data+model", "E3003"), ("*,*,data", "E4312")]
)
def test_wrong_annotations(sharding: str, code: str) -> None:
    with pytest.raises(mind_mlir.VerificationError, match=code):
        mind_mlir.jit(lambda x: mind_mlir.with_sharding(x, MESH, sharding))(X)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="mesh must be a Mesh"):
        mind_mlir.partition(mlp, "data=2", None)  # type: ignore[arg-type]  # that is the test
    with pytest.raises(ValueError, match="'rows' must be an axis"):
        mind_mlir.partition(mlp, MESH, "rows")(X, W, V)
    with pytest.raises(ValueError, match="cannot stand for"):
        mind_mlir.partition(mlp, MESH, ("data",))(X, W, V)
    with pytest.raises(ValueError, match="takes an array along 'data'"):
        mind_mlir.partition(mlp, MESH, ("data", None, None))(mind_mlir.shard(X, MESH, "*,data"), W, V)
    with pytest.raises(mind_mlir.TracingError, match="E2303"):
        mind_mlir.with_sharding(X, MESH, "data")
    other = mind_mlir.Mesh("data=4")
    with pytest.raises(mind_mlir.VerificationError, match="E4313"):
        mind_mlir.partition(lambda x: mind_mlir.with_sharding(x, other, "data"), MESH)(X)


def _layers(ws: Any, vs: Any, x: Any) -> Any:
    def layer(h: Any, pair: Any) -> Any:
        return h + mnp.tanh(h @ pair[0]) @ pair[1], None

    return mind_mlir.scan(layer, x, (ws, vs))[0]


def test_layers_of_a_scan_are_divided_and_so_are_their_gradients() -> None:
    ws, vs, x = _array(3, 6, 8), _array(3, 8, 6), _array(4, 6)
    specs = ("*,*,model", "*,model", "data")
    run = mind_mlir.partition(_layers, MESH, specs)
    np.testing.assert_allclose(run(ws, vs, x), mind_mlir.jit(_layers)(ws, vs, x), atol=1e-6)
    text = mind_mlir.jit(run).lower(ws, vs, x).as_text("partitioned")
    assert _sent(text) == {("AllReduce", x.nbytes // 2): 1, ("AllGather", x.nbytes // 2): 1}

    def loss(f: Any) -> Any:
        return mind_mlir.value_and_grad(lambda *p: (f(*p) ** 2).mean(), (0, 1))

    value, gradients = mind_mlir.partition(loss(_layers), MESH, specs, (None, specs[:2]))(ws, vs, x)
    wanted, others = loss(_layers)(ws, vs, x)
    np.testing.assert_allclose(value, wanted, rtol=1e-6)
    for one, other in zip(gradients, others, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_branches_and_loops_have_annotations_inside() -> None:
    def program(x: Any) -> Any:
        def doubled(y: Any) -> Any:
            return mind_mlir.with_sharding(y, MESH, "*,model") * 2

        x = mind_mlir.with_sharding(x, MESH, "data")
        x = mind_mlir.cond(x.sum() > 0, doubled, lambda y: y - 1, x)
        return mind_mlir.fori_loop(0, 3, lambda i, y: doubled(y) + i, x)

    plain = np.abs(X) * 2
    for i in range(3):
        plain = plain * 2 + i
    np.testing.assert_array_equal(mind_mlir.jit(program)(np.abs(X)), plain)


def test_rows_of_a_table_are_taken_where_the_indices_are() -> None:
    table, places = _array(10, 6), RNG.integers(0, 10, 8)
    run = mind_mlir.partition(lambda t, i: t[i], MESH, ("*,model", "data"), gather=False)
    result: Any = run(table, places)
    assert str(result.sharding) == "data,model"
    np.testing.assert_array_equal(result.gather(), table[places])
    text = mind_mlir.jit(run).lower(table, places).as_text("partitioned")
    assert {opcode for opcode, _ in _sent(text)} == {"AllGather"}  # of the result alone
