"""Graphs that torch has made are run without it, and give what it gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.diagnostics import UnsupportedError
from mind_mlir.ir.types import DType
from mind_mlir.models.torch.graph import ArrayType, FxGraph, FxNode, Input, Ref, SourceLine
from mind_mlir.models.torch.running import GraphFunction, check
from mind_mlir.models.torch.stored import from_data, to_data
from mind_mlir.tracing.jit import JitFunction

FOLDER = Path(__file__).parent / "graphs"
RECORDED = sorted(path.stem for path in FOLDER.glob("*.json"))
F32 = ArrayType(DType.F32, (2, 3))


def array_of(data: dict[str, Any]) -> np.ndarray[Any, Any]:
    dtype = DType.from_name(data["dtype"])
    assert dtype is not None
    return np.array(data["data"], dtype.numpy).reshape(data["shape"])


def function_of(graph: FxGraph) -> JitFunction[..., list[Any]]:
    places = [place for place, each in enumerate(graph.outputs) if isinstance(each, Ref)]
    function = GraphFunction(graph, [None] * len(graph.inputs), places, [None] * len(graph.outputs))
    return JitFunction(function, promotes=False)


def graph_of(*nodes: FxNode) -> FxGraph:
    return FxGraph((Input("x", F32),), nodes, (Ref(nodes[-1].name),))


def node(name: str, operator: str, *args: Any, place: SourceLine | None = None, **kwargs: Any) -> FxNode:
    return FxNode(name, operator, args, kwargs, (F32,), place)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_graphs_give_what_torch_gave(name: str) -> None:
    data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    graph = from_data(data["graph"])
    found = iter(function_of(graph)(*map(array_of, data["inputs"])))
    for each, expected in zip(graph.outputs, data["outputs"], strict=True):
        if isinstance(each, Ref):
            result, wanted = next(found), array_of(expected)
            assert result.dtype == wanted.dtype
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
    assert from_data(to_data(graph)) == graph


def test_interpreter_agrees() -> None:
    data = json.loads((FOLDER / "perceptron_inference.json").read_text(encoding="utf-8"))
    graph, inputs = from_data(data["graph"]), [array_of(each) for each in data["inputs"]]
    module = function_of(graph).lower(*inputs).module
    names = [each.name for each in graph.inputs]
    (found,) = mind_mlir.interpret(module, dict(zip(names, inputs, strict=True)))
    np.testing.assert_allclose(found, array_of(data["outputs"][0]), rtol=1e-4, atol=1e-5)


def test_all_that_is_missing_is_named_at_once() -> None:
    place = SourceLine(__file__, 5)
    graph = graph_of(
        node("a", "aten.unheard_of.default", Ref("x"), place=place),
        node("b", "aten.unheard_of.default", Ref("a")),
        node("c", "aten.strange.Tensor", Ref("b")),
    )
    with pytest.raises(UnsupportedError) as caught:
        check(graph)
    first, second = caught.value.diagnostics
    assert first.code == second.code == "E7001"
    assert (
        first.message
        == f"aten.unheard_of.default is not read (2 times: {__file__}:5): there is no rule for it"
    )
    assert first.location is not None
    assert first.location.line == 5
    assert second.message == "aten.strange.Tensor is not read (once): there is no rule for it"


def test_refusals_of_rules_are_collected() -> None:
    graph = graph_of(
        node("a", "aten.pow.Tensor_Scalar", Ref("x"), 2),
        node("b", "aten.as_strided.default", Ref("a"), [3, 2], [1, 3]),
        node("c", "aten.view.dtype", Ref("b"), DType.F64),
    )
    with pytest.raises(UnsupportedError) as caught:
        function_of(graph).lower(mind_mlir.TensorType(DType.F32, (2, 3)))
    assert [each.context["operation"] for each in caught.value.diagnostics] == [
        "aten.as_strided.default",
        "aten.view.dtype",
    ]


def test_operations_know_the_line_that_they_come_from() -> None:
    graph = graph_of(node("a", "aten.exp.default", Ref("x"), place=SourceLine(__file__, 1)))
    module = function_of(graph).lower(mind_mlir.TensorType(DType.F32, (2, 3))).module
    (exponential,) = [each for each in module.functions[0].entry.operations if each.opcode == "Exp"]
    assert exponential.location is not None
    assert (exponential.location.source.name, exponential.location.line) == (__file__, 1)


def test_random_numbers_come_from_the_seed() -> None:
    graph = FxGraph(
        (Input("x", F32),),
        (
            FxNode("a", "aten.rand_like.default", (Ref("x"),), {}, (F32,)),
            FxNode("b", "aten.rand_like.default", (Ref("x"),), {}, (F32,)),
        ),
        (Ref("a"), Ref("b")),
    )
    run, x = function_of(graph), np.zeros((2, 3), np.float32)
    one, two = run(x, np.uint64(1)), run(x, np.uint64(2))
    np.testing.assert_array_equal(one, run(x, np.uint64(1)))
    assert len({each.tobytes() for each in (*one, *two)}) == 4
