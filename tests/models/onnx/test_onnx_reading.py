"""ONNX files are read as they are meant, and what is wrong with one is a diagnostic."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads ONNX models, which the extra test installs")
from onnx_models import INT64, model, node, onnx, perceptron

import mind_mlir
from mind_mlir.diagnostics import MindError, ParseError, UnsupportedError, VerificationError

if TYPE_CHECKING:
    from pathlib import Path

ONE = np.ones((1, 3), np.float32)


def code_of(source: Any, *args: Any) -> str:
    """Return the code of what is wrong with a model, or with a call of it."""
    with pytest.raises(MindError) as caught:
        mind_mlir.from_onnx(source)(*args)
    return caught.value.code


def test_a_file_its_bytes_and_its_message_are_one_model(tmp_path: Path) -> None:
    proto = perceptron()
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    wanted = mind_mlir.from_onnx(proto)(ONE)
    for source in (path, str(path), path.read_bytes()):
        np.testing.assert_array_equal(mind_mlir.from_onnx(source)(ONE), wanted)
    with pytest.raises(TypeError, match="source"):
        mind_mlir.from_onnx(3)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    data = perceptron().SerializeToString()
    assert code_of(tmp_path / "gone.onnx") == "E1106"
    assert code_of(tmp_path) == "E1106"
    assert code_of(data[: len(data) // 2]) == "E1120"
    assert code_of(b"no model") == "E1120"
    assert code_of(b"") == "E1120"


def test_onnx_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert code_of(b"") == "E7003"


def external(proto: Any, folder: Path, location: str = "weights.bin") -> Path:
    """Write a model whose large tensors lie in a file of their own."""
    path = folder / "model.onnx"
    onnx.save_model(
        proto,
        path,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
        convert_attribute=False,
    )
    if location != "weights.bin":
        proto = onnx.load(path, load_external_data=False)
        for tensor in proto.graph.initializer:
            tensor.external_data[0].value = location
        path.write_bytes(proto.SerializeToString())
    return path


def test_external_data_is_read_where_it_lies(tmp_path: Path) -> None:
    read = mind_mlir.from_onnx(external(perceptron(), tmp_path))
    np.testing.assert_array_equal(read(ONE), mind_mlir.from_onnx(perceptron())(ONE))
    assert not read.weights["w"].flags.owndata
    before = (tmp_path / "weights.bin").read_bytes()
    read.weights["w"][:] = 0
    assert (read(ONE) == np.maximum(read.weights["b"], 0)).all()
    assert (tmp_path / "weights.bin").read_bytes() == before


def test_external_data_stays_in_the_folder_of_its_model(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(1000))
    folder = tmp_path / "models"
    folder.mkdir()
    for location in ("../secret", str(tmp_path / "secret"), "", "gone.bin", "."):
        assert code_of(external(perceptron(), folder, location)) == "E1120"
    (folder / "link").symlink_to(tmp_path / "secret")
    assert code_of(external(perceptron(), folder, "link")) == "E1120"
    path = external(perceptron(), folder)
    (folder / "weights.bin").write_bytes(b"short")
    assert code_of(path) == "E1120"
    assert code_of(path.read_bytes()) == "E1120"


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("Relu", "gone", "y")], "'gone', which is defined nowhere"),
        ([node("Add", "x z", "y"), node("Relu", "y", "z")], "wait for one another"),
        ([node("Relu", "x", "y"), node("Relu", "x", "y")], "defined twice"),
        ([node("Relu", "x", "z")], "output 'y'"),
    ],
)
def test_names_are_defined_once_and_before_they_are_read(nodes: list[Any], words: str) -> None:
    with pytest.raises(ParseError, match=words) as caught:
        mind_mlir.from_onnx(model(nodes, {"x": [3]}, ("y",)))
    assert caught.value.code == "E1120"


def test_nodes_may_stand_in_any_order() -> None:
    read = mind_mlir.from_onnx(model([node("Relu", "h", "y"), node("Neg", "x", "h")], {"x": [2]}, ("y",)))
    assert read(np.array([-1, 1], np.float32)).tolist() == [1, 0]


def test_many_nodes_in_the_wrong_order_are_put_in_order() -> None:
    nodes = [node("Neg", f"v{at}", f"v{at + 1}") for at in range(5000)]
    read = mind_mlir.from_onnx(model(nodes[::-1], {"v0": [1]}, ("v5000",)), bindings=None)
    assert [each.name for each in read.inputs] == ["v0"]


def test_functions_that_call_others_twice_each_do_not_run_for_ever() -> None:
    opset = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("own", 1)]
    functions = [onnx.helper.make_function("own", "F0", ["x"], ["y"], [node("Neg", "x", "y")], opset)]
    for at in range(1, 40):
        calls = [node(f"F{at - 1}", "x", "h", domain="own"), node(f"F{at - 1}", "h", "y", domain="own")]
        functions.append(onnx.helper.make_function("own", f"F{at}", ["x"], ["y"], calls, opset))
    made = model([node("F39", "x", "y", domain="own")], {"x": [1]}, ("y",), functions=tuple(functions))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mind_mlir.models.onnx.evaluation._MAX_NODES", 1000)
        assert code_of(made, np.ones(1, np.float32)) == "E7001"


def test_all_missing_operators_are_named_at_once() -> None:
    nodes = [
        node("Wavelet", "x", "a"),
        node("Wavelet", "a", "b"),
        node("Shrug", "b", "y", domain="com.site"),
    ]
    with pytest.raises(UnsupportedError) as caught:
        mind_mlir.from_onnx(model(nodes, {"x": [2]}, ("y",)))
    texts = [each.message for each in caught.value.diagnostics]
    assert texts[0].startswith("operator Wavelet is not read (2 times: 'a', 'b')")
    assert texts[1].startswith("operator com.site.Shrug is not read (once: 'y')")


def test_functions_of_a_model_are_called_with_their_attributes() -> None:
    scaled = onnx.helper.make_function(
        "own", "Scaled", ["x"], ["y"], [_scale_by_reference(), node("Mul", "x a", "y")],
        [onnx.helper.make_opsetid("", 20)], ["factor"],
    )  # fmt: skip
    nodes = [node("Scaled", "x", "y", domain="own", factor=3.0)]
    read = mind_mlir.from_onnx(model(nodes, {"x": [2]}, ("y",), functions=(scaled,)))
    assert read(np.array([1, 2], np.float32)).tolist() == [3, 6]


def _scale_by_reference() -> Any:
    made = node("Constant", "", "a")
    made.attribute.add(name="value_float", ref_attr_name="factor", type=onnx.AttributeProto.FLOAT)
    return made


def test_functions_that_call_themselves_end() -> None:
    opset = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("own", 1)]
    again = onnx.helper.make_function(
        "own", "Again", ["x"], ["y"], [node("Again", "x", "y", domain="own")], opset
    )
    endless = model([node("Again", "x", "y", domain="own")], {"x": [2]}, ("y",), functions=(again,))
    assert code_of(endless, np.ones(2, np.float32)) == "E2420"


def test_older_operator_sets_are_converted() -> None:
    old = model([node("Add", "x b", "y", broadcast=1, axis=0)], {"x": [2, 3], "b": [2]}, ("y",), opset=6)
    read = mind_mlir.from_onnx(old)
    assert read(np.zeros((2, 3), np.float32), np.array([1, 2], np.float32)).tolist() == [[1] * 3, [2] * 3]


def test_softmax_of_older_operator_sets_is_over_all_axes_behind() -> None:
    read = mind_mlir.from_onnx(model([node("Softmax", "x", "y")], {"x": [1, 2, 2]}, ("y",), opset=11))
    np.testing.assert_allclose(read(np.zeros((1, 2, 2), np.float32)), np.full((1, 2, 2), 0.25), rtol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        ([node("MatMul", "x x", "y")], [2, 3]),
        ([node("Transpose", "x", "y", perm=[0, 5])], [2, 3]),
        ([node("Softmax", "x", "y", axis=4)], [2, 3]),
        ([node("Softmax", "x", "y", axis="one")], [2, 3]),
        ([node("Conv", "x x", "y", kernel_shape=[9])], [1, 1, 3]),
        ([node("Relu", "-", "y")], [2, 3]),
        ([node("Flatten", "x", "y", axis=7)], [2, 3]),
    ],
)
def test_nodes_that_break_a_rule_are_named(nodes: list[Any], shape: list[int]) -> None:
    with pytest.raises(VerificationError) as caught:
        mind_mlir.from_onnx(model(nodes, {"x": shape}, ("y",)))(np.ones(shape, np.float32))
    assert caught.value.code == "E2420"
    assert nodes[0].op_type in caught.value.diagnostics[0].message


@pytest.mark.parametrize("extents", [[2**40], [2**62, 4], [-3]])
def test_absurd_extents_are_refused_before_anything_is_made(extents: list[int]) -> None:
    huge = model([node("ConstantOfShape", "shape", "y")], {}, ("y",), {"shape": np.array(extents)})
    assert code_of(huge) in ("E2420", "E7001", "E6004")
    wide = model([node("Expand", "x shape", "y")], {"x": [1]}, ("y",), {"shape": np.array(extents)})
    assert code_of(wide, np.ones(1, np.float32)) in ("E2420", "E7001", "E6004")
    looped = model([node("Range", "zero end one", "y")], {}, ("y",), {"zero": 0, "one": 1, "end": 2**50})
    assert code_of(looped) == "E7001"


def test_strings_and_dtypes_of_others_are_refused() -> None:
    text = model([node("Identity", "x", "y")], {"x": (8, [1])}, ("y",))
    assert code_of(text, np.array(["a"], object)) in ("E6105", "E7001")
    cast = model([node("Cast", "x", "y", to=18)], {"x": [2]}, ("y",))
    assert code_of(cast, np.ones(2, np.float32)) == "E7001"


def test_a_loop_that_decides_its_end_while_it_runs() -> None:
    make = onnx.helper
    ports = [make.make_tensor_value_info(name, kind, []) for name, kind in (("i", INT64), ("c", 9), ("v", 1))]
    results = [make.make_tensor_value_info("more", 9, []), make.make_tensor_value_info("next", 1, [])]
    body = make.make_graph(
        [node("Add", "v v", "next"), node("Less", "next limit", "more")], "body", ports, results
    )
    nodes = [node("Loop", "- - x", "y", body=body)]
    read = mind_mlir.from_onnx(model(nodes, {"x": [], "limit": []}, ("y",)))
    assert read(np.float32(1), np.float32(100)) == 128
    assert read(np.float32(3), np.float32(4)) == 6
