"""Branches and loops are decided when a model is read, where they are known, and by the program elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads ONNX models, which the extra test installs")
from onnx_models import FLOAT, INT64, model, node, onnx

import mind_mlir
from mind_mlir.diagnostics import UnsupportedError

BOOL = 9


def body(nodes: list[Any], inputs: dict[str, tuple[int, list[Any]]], outputs: dict[str, Any]) -> Any:
    """Return a graph within a node."""
    make = onnx.helper.make_tensor_value_info
    ports = [make(name, *each) for name, each in inputs.items()]
    return onnx.helper.make_graph(nodes, "body", ports, [make(name, *each) for name, each in outputs.items()])


def doubling(steps: int) -> Any:
    """Return a loop of ``steps`` that doubles ``x``, and stacks the numbers of the steps."""
    nodes = [node("Add", "v v", "next"), node("Identity", "c", "more"), node("Cast", "i", "row", to=FLOAT)]
    inner = body(
        nodes,
        {"i": (INT64, []), "c": (BOOL, []), "v": (FLOAT, [])},
        {"more": (BOOL, []), "next": (FLOAT, []), "row": (FLOAT, [])},
    )
    loop = node("Loop", "steps yes x", "last rows", body=inner)
    return model([loop], {"x": []}, ("last", "rows"), {"steps": np.array(steps), "yes": np.array(True)})


def opcodes(read: Any, *args: Any) -> list[str]:
    """Return the operations of a model's program."""
    text: str = read.lower(*args).as_text()
    return [line.split("=")[1].split()[0] for line in text.splitlines() if " = " in line]


@pytest.mark.parametrize(("steps", "wanted"), [(5, False), (100, True)])
def test_loops_of_known_length(steps: int, wanted: bool) -> None:
    read = mind_mlir.from_onnx(doubling(steps))
    last, rows = read(np.float32(1))
    assert last == 2.0**steps
    assert rows.tolist() == list(range(steps))
    assert ("Scan" in opcodes(read, np.float32(1))) is wanted


def test_a_loop_that_never_runs() -> None:
    last, rows = mind_mlir.from_onnx(doubling(0))(np.float32(3))
    assert last == 3
    assert rows.shape == (0,)


def branching() -> Any:
    then = body([node("Neg", "x", "a")], {}, {"a": (FLOAT, [2])})
    otherwise = body([node("Add", "x x", "b")], {}, {"b": (FLOAT, [2])})
    nodes = [node("ReduceSum", "x", "s", keepdims=0), node("Less", "s zero", "p")]
    nodes.append(node("If", "p", "y", then_branch=then, else_branch=otherwise))
    return model(nodes, {"x": [2]}, ("y",), {"zero": np.float32(0)})


def test_a_branch_that_the_data_decides() -> None:
    read = mind_mlir.from_onnx(branching())
    assert read(np.array([1, 2], np.float32)).tolist() == [2, 4]
    assert read(np.array([1, -2], np.float32)).tolist() == [-1, 2]
    assert "Cond" in opcodes(read, np.zeros(2, np.float32))


def test_branches_with_other_shapes_are_decided_by_inputs_that_are_known() -> None:
    then = body([node("Identity", "x", "a")], {}, {"a": (FLOAT, [2])})
    otherwise = body([node("Concat", "x x", "b", axis=0)], {}, {"b": (FLOAT, [4])})
    chosen = node("If", "p", "y", then_branch=then, else_branch=otherwise)
    read = mind_mlir.from_onnx(model([chosen], {"x": [2], "p": (BOOL, [])}, ("y",)))
    x = np.array([1, 2], np.float32)
    assert read(x, np.array(True)).tolist() == [1, 2]
    assert read(x, np.array(False)).tolist() == [1, 2, 1, 2]


def test_steps_that_the_data_counts_stack_nothing() -> None:
    inner = body(
        [node("Add", "v v", "next"), node("Less", "next x", "more")],
        {"i": (INT64, []), "c": (BOOL, []), "v": (FLOAT, [])},
        {"more": (BOOL, []), "next": (FLOAT, []), "next2": (FLOAT, [])},
    )
    inner.node.append(node("Identity", "next", "next2"))
    loop = node("Loop", "- - one", "last rows", body=inner)
    with pytest.raises(UnsupportedError) as caught:
        mind_mlir.from_onnx(model([loop], {"x": [2, 2]}, ("last", "rows"), {"one": np.float32(1)}))(
            np.ones((2, 2), np.float32)
        )
    assert caught.value.code == "E7001"
    assert "stacked" in caught.value.diagnostics[0].message


def test_a_scan_reads_rows_and_stacks_results() -> None:
    inner = body(
        [node("Add", "s row", "next"), node("Identity", "next", "out")],
        {"s": (FLOAT, [2]), "row": (FLOAT, [2])},
        {"next": (FLOAT, [2]), "out": (FLOAT, [2])},
    )
    nodes = [node("Scan", "s x", "last rows", body=inner, num_scan_inputs=1, scan_input_directions=[1])]
    read = mind_mlir.from_onnx(model(nodes, {"s": [2], "x": [3, 2]}, ("last", "rows")))
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    last, rows = read(np.zeros(2, np.float32), x)
    assert last.tolist() == x.sum(axis=0).tolist()
    assert rows.tolist() == np.cumsum(x[::-1], axis=0).tolist()


def test_loops_that_change_sequences_are_written_out() -> None:
    inner = onnx.parser.parse_graph("""
    body (int64 i, bool c, seq(float[2]) s) => (bool more, seq(float[2]) longer)
    { more = Identity(c)
      longer = SequenceInsert(s, x) }
    """)
    nodes = [
        node("SequenceEmpty", "", "none"),
        node("Loop", "steps - none", "all", body=inner),
        node("ConcatFromSequence", "all", "y", axis=0),
    ]
    read = mind_mlir.from_onnx(model(nodes, {"x": [2], "steps": (INT64, [])}, ("y",)))
    assert read(np.array([1, 2], np.float32), np.array(3)).tolist() == [1, 2] * 3
