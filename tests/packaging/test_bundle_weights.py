"""Bundles with weights outside of the code, in the bundle or elsewhere, which processes share."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
import weight_files

import mind_mlir
from mind_mlir.packaging.manifest import MANIFEST, sealed, unsealed

if TYPE_CHECKING:
    from collections.abc import Callable

MODULE = mind_mlir.parse(
    "func @main(%w: tensor<f32[3, 4]>, %x: tensor<f32[2, 3]>, %flags: tensor<i1[4]>, %b: tensor<f64[4]>) -> "
    "(tensor<f32[2, 4]>) {\n^entry:\n"
    "  %0 = MatMul (%x, %w) : tensor<f32[2, 4]>\n"
    "  %1 = Cast (%b) {dtype=f32} : tensor<f32[4]>\n"
    "  %2 = Cast (%flags) {dtype=f32} : tensor<f32[4]>\n"
    "  %3 = Mul (%1, %2) : tensor<f32[4]>\n"
    "  %4 = Add (%0, %3) : tensor<f32[2, 4]>\n  return %4\n}\n"
    "func @other(%w: tensor<f32[3, 4]>) -> (tensor<f32[4]>) {\n^entry:\n"
    "  %0 = Sum (%w) {axes=[0], keepdims=false} : tensor<f32[4]>\n  return %0\n}\n"
)
W = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.array([0.5, 1, 2, 4])
FLAGS = np.array([True, False, True, True])
X = np.ones((2, 3), np.float32)
EXPECTED = X @ W + B.astype(np.float32) * FLAGS
GIVEN = {"w": W, "b": B, "flags": FLAGS}


def packaged(path: Path, weights: Any = GIVEN) -> Path:
    return mind_mlir.package(MODULE, path, name="net", target="sse", threads=1, weights=weights)


def test_a_bundle_has_its_weights(tmp_path: Path) -> None:
    path = packaged(tmp_path / "net")
    assert sorted(each.name for each in path.iterdir() if each.suffix != ".so") == [
        *("manifest.json", "net.h", "net.o", "net.safetensors"),
    ]
    assert (packaged(tmp_path / "again") / MANIFEST).read_bytes() == (path / MANIFEST).read_bytes()
    for bundle in (mind_mlir.load_bundle(path), mind_mlir.load_bundle(path, check_weights=True)):
        assert [each.name for each in bundle.parameters] == ["x"]
        assert [each.name for each in bundle.entries["main"].parameters] == ["x"]
        for _ in range(5):  # calls become native, where they can
            assert np.array_equal(bundle(X)[0], EXPECTED)
        assert np.array_equal(bundle["other"]()[0], W.sum(axis=0))
        assert np.array_equal(pickle.loads(pickle.dumps(bundle["main"]))(x=X)[0], EXPECTED)  # noqa: S301
        out = np.empty((2, 4), np.float32)
        assert bundle(X, out=out)[0] is out
        bound = bundle.bind(X)
        for _ in range(5):
            assert np.array_equal(bound()[0], EXPECTED)
        with pytest.raises(mind_mlir.ArgumentError, match="there is no input 'w'"):
            bundle(X, w=W)
    weights = mind_mlir.load_weights(path / "net.safetensors")
    assert np.array_equal(np.asarray(weights["b"]), B)
    packaged(path)  # it takes the place of the other one


def test_a_bundle_refers_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    file = tmp_path / "models" / "model.safetensors"
    file.write_bytes(weight_files.safetensors_of({**GIVEN, "more": np.ones(2)}))
    path = packaged(tmp_path / "net", file)
    assert not (path / "net.safetensors").exists()
    assert unsealed((path / MANIFEST).read_bytes())["weights"]["file"] == "../models/model.safetensors"
    bundle = mind_mlir.load_bundle(path, check_weights=True)
    assert np.array_equal(bundle(X)[0], EXPECTED)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "models").rename(moved / "models")
    with pytest.raises(mind_mlir.ArtefactError, match="No such file or directory"):
        mind_mlir.load_bundle(path)
    path.rename(moved / "net")
    assert np.array_equal(mind_mlir.load_bundle(moved / "net")(X)[0], EXPECTED)


def test_weights_are_mapped_and_shared(tmp_path: Path) -> None:
    """No process has pages of its own for the weights; the file is in the map of each."""
    module = mind_mlir.parse(
        '%0 = Input {name="w"} : tensor<f32[1024, 1024]>\n'
        "%1 = Sum (%0) {axes=[], keepdims=false} : tensor<f32[]>\noutputs: %1\n"
    )
    path = mind_mlir.package(module, tmp_path / "net", weights={"w": np.ones((1024, 1024), np.float32)})
    code = (
        "import sys, mind_mlir, re\n"
        "bundle = mind_mlir.load_bundle(sys.argv[1])\n"
        "assert bundle()[0] == 1024 * 1024\n"
        "before, entry = open('/proc/self/smaps').read().split('net.safetensors', 1)\n"
        "print(before.splitlines()[-1].split()[1], re.search(r'Anonymous: +(\\d+) kB', entry)[1])\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert found.stdout.split() == ["r--s", "0"]


def test_weights_of_narrow_floats(tmp_path: Path) -> None:
    types = [
        mind_mlir.TensorType(mind_mlir.DType.BF16, (4,)),
        mind_mlir.TensorType(mind_mlir.DType.SI8, (1,)),
    ]
    module = mind_mlir.jit(lambda b, odd: b * 2 + odd).lower(*types).module
    given = {"b": B.astype(ml_dtypes.bfloat16), "odd": np.array([1], np.int8)}
    path = mind_mlir.package(module, tmp_path / "net", weights=given)
    assert mind_mlir.load_bundle(path)()[0].tolist() == [2, 3, 5, 9]


def resealed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    fields = unsealed((path / MANIFEST).read_bytes())
    del fields["sha256"]
    change(fields["weights"])
    (path / MANIFEST).write_bytes(sealed(fields))


def refused(path: Path, message: str, **options: bool) -> None:
    with pytest.raises(mind_mlir.ArtefactError, match=re.escape(message)) as caught:
        mind_mlir.load_bundle(path, **options)
    assert caught.value.code == "E6501"


def test_weights_that_were_changed(tmp_path: Path) -> None:
    path = packaged(tmp_path / "net")
    file = path / "net.safetensors"
    whole = file.read_bytes()
    for changed, message in (
        (whole[:-1], f"net.safetensors has {len(whole) - 1} bytes instead of {len(whole)}"),
        (whole[:-1] + b"x", "net.safetensors was changed after the bundle was written"),
        (b"x" * len(whole), "net.safetensors was changed after the bundle was written"),
        (b"", "it is empty"),
    ):
        file.write_bytes(changed)
        refused(path, message)
    file.unlink()
    refused(path, "No such file or directory")


def test_the_whole_file_is_compared_where_that_is_wanted(tmp_path: Path) -> None:
    module = mind_mlir.parse('%0 = Input {name="w"} : tensor<f32[524288]>\noutputs: %0\n')
    path = mind_mlir.package(module, tmp_path / "net", weights={"w": np.zeros(524288, np.float32)})
    with (path / "net.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"x")
    mind_mlir.load_bundle(path)
    refused(path, "net.safetensors was changed after the bundle was written", check_weights=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.update(names=["x"]), "net.safetensors has no weights 'x'"),
        (lambda weights: weights.update(names=[1]), "what it says of a file of weights is malformed"),
        (lambda weights: weights.update(sha256="x"), "what it says of a file of weights is malformed"),
        (lambda weights: weights.update(bytes="1"), "bytes must be of type int"),
        (lambda weights: weights.pop("file"), "file must be of type str"),
        (lambda weights: weights.update(file=MANIFEST), f"{MANIFEST} has"),
        (lambda weights: weights.update(file="\0"), "null"),
    ],
)
def test_manifests_that_say_something_else(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    path = packaged(tmp_path / "net")
    resealed(path, change)
    refused(path, message)


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    path = packaged(tmp_path / "net")
    other = mind_mlir.parse('%0 = Input {name="w"} : tensor<f32[4]>\noutputs: %0\n')
    mind_mlir.package(other, tmp_path / "other", name="net", weights={"w": np.ones(4, np.float32)})
    said = unsealed((tmp_path / "other" / MANIFEST).read_bytes())["weights"]
    (path / "net.safetensors").write_bytes((tmp_path / "other" / "net.safetensors").read_bytes())
    resealed(path, lambda weights: weights.update(json.loads(json.dumps(said))))
    refused(path, "argument 'w' has shape [4], expected [3, 4]")


def test_mistakes_of_callers(tmp_path: Path) -> None:
    path = tmp_path / "net"
    for weights, code in (
        ({"v": W}, "E6102"),
        ({"w": W[0]}, "E6104"),
        ({"w": W.astype(np.float64)}, "E6103"),
        ({"w": "text"}, "E6105"),
    ):
        with pytest.raises(mind_mlir.ArgumentError) as caught:
            packaged(path, weights)
        assert caught.value.code == code
    file = tmp_path / "model.safetensors"
    file.write_bytes(weight_files.safetensors_of({"v": W}))
    with pytest.raises(mind_mlir.ArgumentError, match="the file has weights for no input"):
        packaged(path, file)
    index = tmp_path / "index.json"
    index.write_text(json.dumps({"weight_map": {"v": "model.safetensors"}}))
    for place in (index, tmp_path):
        with pytest.raises(mind_mlir.ArtefactError, match="one file of weights, not to several"):
            packaged(path, place)
    with pytest.raises(mind_mlir.ArtefactError, match="No such file or directory"):
        packaged(path, tmp_path / "absent")
    with pytest.raises(TypeError, match="weights must be a mapping from names to arrays, or the path"):
        packaged(path, 3)
    with pytest.raises(ValueError, match="weights are for bundles: leave them out of kind='object'"):
        mind_mlir.package(MODULE, path, "object", weights=GIVEN)
    with pytest.raises(TypeError, match="check_weights must be True or False"):
        mind_mlir.load_bundle(path, check_weights="yes")  # type: ignore[arg-type]  # the mistake
    assert not path.exists()
