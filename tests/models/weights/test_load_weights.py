"""Weights of all formats come out as they were written, mapped, under their names."""

from __future__ import annotations

import json
import pickle
import struct
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
import weight_files

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir.ir.attributes import Array

ARRAYS: dict[str, Array] = {
    "w": np.arange(12, dtype=np.float32).reshape(3, 4),
    "h": np.arange(8, dtype=np.float16),
    "n": np.array([-1, 2**40]),
    "s": np.array(2.5),
    "none": np.empty((0, 3), np.float32),
    "t": np.array([True, False]),
    "odd": np.arange(3, dtype=np.int8),
}


def is_mapped(array: Array) -> bool:
    """Return whether an array is a view of a file in memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return type(base).__name__ in ("mmap", "memoryview")


def check(weights: mind_mlir.Weights, expected: dict[str, Array]) -> None:
    assert list(weights) == list(expected)
    for name, array in expected.items():
        found = weights[name]
        assert isinstance(found, np.ndarray)
        assert found.dtype == array.dtype
        assert found.shape == array.shape
        assert found.tobytes() == array.tobytes()
        assert not found.flags.writeable
        assert found.flags.c_contiguous
        assert found.flags.aligned
        assert weights[name] is found


def test_safetensors(tmp_path: Path) -> None:
    arrays = {**ARRAYS, "b": np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)}
    path = tmp_path / "model.bin"
    path.write_bytes(weight_files.safetensors_of(arrays))
    weights = mind_mlir.load_weights(path)
    check(weights, arrays)
    assert weights.format == "safetensors"
    assert repr(weights) == f"<Weights {path}: 8 tensors, safetensors>"
    with pytest.raises(KeyError):
        weights["x"]


@pytest.mark.parametrize("spaces", range(9))
def test_data_at_odd_places_is_copied_once(tmp_path: Path, spaces: int) -> None:
    path = tmp_path / "model.safetensors"
    data = weight_files.safetensors_of({"w": ARRAYS["w"]}, " " * spaces)
    path.write_bytes(data)
    weights = mind_mlir.load_weights(path)
    check(weights, {"w": ARRAYS["w"]})
    array = weights["w"]
    assert isinstance(array, np.ndarray)
    assert is_mapped(array) == ((len(data) - array.nbytes) % 4 == 0)
    assert np.array_equal(mind_mlir.jit(lambda w: w + 1)(array), ARRAYS["w"] + 1)


def test_metadata_of_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(weight_files.safetensors({"__metadata__": {"format": "pt"}}))
    weights = mind_mlir.load_weights(path)
    assert weights.metadata == {"format": "pt"}
    assert not len(weights)


def test_shards(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(weight_files.safetensors_of({"w": ARRAYS["w"]}))
    (tmp_path / "b.safetensors").write_bytes(weight_files.safetensors_of({"h": ARRAYS["h"]}))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"h": "b.safetensors", "w": "a.safetensors"}}))
    for path in (index, tmp_path):
        check(mind_mlir.load_weights(path), {"h": ARRAYS["h"], "w": ARRAYS["w"]})


def test_gguf(tmp_path: Path) -> None:
    arrays = {name: array for name, array in ARRAYS.items() if name not in ("t", "s")}
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "eps": 0.5,
        "tokenizer.ggml.tokens": ["a", "\u0120b", ""],
        "scores": [1.0, -2.0],
        "types": [1, -1],
        "yes": True,
    }
    path = tmp_path / "model.gguf"
    for version in (2, 3):
        path.write_bytes(weight_files.gguf(arrays, metadata, version=version))
        weights = mind_mlir.load_weights(path)
        check(weights, arrays)
        assert weights.metadata == metadata


def test_bf16_of_gguf_and_another_alignment(tmp_path: Path) -> None:
    array = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    content = weight_files.gguf(
        {"a": np.ones(1, np.int8), "b": (30, (2, 3), array.tobytes())},
        {"general.alignment": 64},
        alignment=64,
    )
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    check(mind_mlir.load_weights(path), {"a": np.ones(1, np.int8), "b": array})


@pytest.mark.parametrize(("kind", "number", "size"), [("Q8_0", 8, 34), ("Q4_0", 2, 18)])
def test_quantised_tensors(tmp_path: Path, kind: str, number: int, size: int) -> None:
    blocks = weight_files.quantized_blocks(kind, (3, 64))
    path = tmp_path / "model.gguf"
    path.write_bytes(weight_files.gguf({"w": (number, (3, 64), blocks)}))
    found = mind_mlir.load_weights(path)["w"]
    assert isinstance(found, mind_mlir.QuantizedWeights)
    assert found.kind == kind
    assert found.shape == (3, 64)
    assert found.nbytes == len(blocks)
    assert found.blocks.shape == (3, 2, size)
    assert is_mapped(found.blocks)
    assert not found.blocks.flags.writeable
    expected = np.array(
        [
            number
            for begin in range(0, len(blocks), size)
            for number in block(kind, blocks[begin : begin + size])
        ],
        np.float32,
    )
    assert np.array_equal(found.dequantized(), expected.reshape(3, 64))
    other = mind_mlir.load_weights(path, dequantize=True)["w"]
    assert isinstance(other, np.ndarray)
    assert np.array_equal(other, expected.reshape(3, 64))


def block(kind: str, data: bytes) -> list[float]:
    """Return the numbers of one block, one after the other as the format describes them."""
    (scale,) = struct.unpack("<e", data[:2])
    if kind == "Q8_0":
        return [scale * each for each in struct.unpack("<32b", data[2:])]
    return [scale * ((each & 15) - 8) for each in data[2:]] + [scale * ((each >> 4) - 8) for each in data[2:]]


def test_quantised_weights_are_containers_of_compiled_functions(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(weight_files.gguf({"w": (8, (3, 64), weight_files.quantized_blocks("Q8_0", (3, 64)))}))
    weights = dict(mind_mlir.load_weights(path))
    found = weights["w"]

    @mind_mlir.jit
    def scales(given: dict[str, Any]) -> object:
        assert given["w"].kind == "Q8_0"
        assert given["w"].shape == (3, 64)
        return mnp.sum(given["w"].blocks.astype(np.float32))

    assert isinstance(found, mind_mlir.QuantizedWeights)
    assert scales(weights) == found.blocks.sum()


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    arrays = {**ARRAYS, "columns": np.asfortranarray(ARRAYS["w"]), "big": np.arange(3, dtype=">i4")}
    expected = {**arrays, "columns": ARRAYS["w"], "big": np.arange(3, dtype=np.int32)}
    for save in (np.savez, np.savez_compressed):
        save(path, allow_pickle=False, **arrays)
        check(mind_mlir.load_weights(path), expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path: Path, order: Any) -> None:
    path = tmp_path / "w.npy"
    np.save(path, np.array(ARRAYS["w"], order=order))
    weights = mind_mlir.load_weights(str(path))
    check(weights, {"w": ARRAYS["w"]})
    array = weights["w"]
    assert isinstance(array, np.ndarray)
    assert is_mapped(array) == (order == "C")


def test_links_are_followed_and_pickles_are_paths(tmp_path: Path) -> None:
    np.save(tmp_path / "real.npy", ARRAYS["w"])
    (tmp_path / "w.npy").symlink_to(tmp_path / "real.npy")
    weights = mind_mlir.load_weights(tmp_path / "w.npy")
    data = pickle.dumps(weights)
    assert len(data) < 500
    check(pickle.loads(data), {"w": ARRAYS["w"]})  # noqa: S301 -- our own


def test_constants_and_arguments_are_the_mapped_arrays(tmp_path: Path) -> None:
    """Neither is a copy made of an argument, nor does it matter that the arrays cannot be written to."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(weight_files.safetensors_of({"x": np.ones((2, 3), np.float32), "w": ARRAYS["w"]}))
    weights = mind_mlir.load_weights(path)
    module = mind_mlir.parse(
        '%0 = Input {name="x"} : tensor<f32[2, 3]>\n%1 = Input {name="w"} : tensor<f32[3, 4]>\n'
        "%2 = MatMul (%0, %1) : tensor<f32[2, 4]>\noutputs: %2\n"
    )
    expected = np.ones((2, 3), np.float32) @ ARRAYS["w"]
    (found,) = mind_mlir.compile(module)(**weights)
    assert np.array_equal(found, expected)
    (found,) = mind_mlir.compile(module, constants={"w": weights["w"]})(weights["x"])
    assert np.array_equal(found, expected)
    assert np.array_equal(mind_mlir.jit(lambda given: given["x"] @ given["w"])(weights), expected)


def test_files_of_the_libraries_themselves(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    arrays = {name: np.ascontiguousarray(array) for name, array in ARRAYS.items()}
    library.save_file(arrays, tmp_path / "model.safetensors", {"made": "here"})
    weights = mind_mlir.load_weights(tmp_path)
    assert weights.metadata == {"made": "here"}
    check(weights, {name: arrays[name] for name in weights})
    assert weights.keys() == arrays.keys()


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_K", "Q5_1", "Q6_K"])
def test_gguf_of_the_library_itself(tmp_path: Path, kind: str) -> None:
    library = pytest.importorskip("gguf")
    type_ = library.GGMLQuantizationType[kind]
    count, size = library.GGML_QUANT_SIZES[type_]
    data = np.random.default_rng(0).integers(0, 60, (2, 512 // count * size), np.uint8)
    writer = library.GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_tensor("w", data, raw_dtype=type_)
    writer.add_block_count(3)
    for write in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{write}_to_file")()
    writer.close()
    weights = mind_mlir.load_weights(tmp_path / "model.gguf", dequantize=True)
    expected = library.quants.dequantize(data, type_)
    found = weights["w"]
    assert isinstance(found, np.ndarray)
    assert found.shape == (2, 512)
    assert np.array_equal(found, expected, equal_nan=True)
    assert weights.metadata["llama.block_count"] == 3


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)])
def test_products_read_weights_at_any_place(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    """Files put weights at multiples of their elements' size, and not at those of vectors or lines."""
    random = np.random.default_rng(0)
    weight = random.standard_normal((48, 96)).astype(np.float32).astype(dtype)
    product = mind_mlir.jit(lambda x, w: (x @ w.T).astype(np.float32))
    path, places = tmp_path / "model.safetensors", set()
    for rows in (1, 40):
        x = random.standard_normal((rows, 96)).astype(np.float32).astype(dtype)
        expected = product(x, weight)
        for spaces in range(64):
            path.unlink(missing_ok=True)  # the one before is still mapped
            path.write_bytes(weight_files.safetensors_of({"w": weight}, " " * spaces))
            array = mind_mlir.load_weights(path)["w"]
            assert isinstance(array, np.ndarray)
            places.add(array.ctypes.data % 64)
            assert product(x, array).tobytes() == expected.tobytes()
    assert len(places) == 64 // dtype.itemsize


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_numbers_in_blocks(kind: Any) -> None:
    numbers = np.random.default_rng(0).standard_normal((2, 3, 64)).astype(np.float32)
    numbers[0, 0, :32] = 0
    made = mind_mlir.QuantizedWeights.of(numbers, kind)
    assert made.shape == numbers.shape
    most = np.abs(numbers).reshape(2, 3, 2, 32).max(axis=-1, keepdims=True)
    errors = np.abs(made.dequantized() - numbers).reshape(2, 3, 2, 32)
    assert (errors <= most * {"Q8_0": 0.5 / 127 + 2**-11, "Q4_0": 1 / 8 + 2**-10}[kind]).all()
    for wrong in (numbers[..., :31], np.float32(1)):
        with pytest.raises(ValueError, match="numbers must have rows of a multiple of 32"):
            mind_mlir.QuantizedWeights.of(wrong, kind)
    with pytest.raises(ValueError, match="kind must be one of Q8_0, Q4_0, not the str 'Q5_0'"):
        mind_mlir.QuantizedWeights.of(numbers, "Q5_0")  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_blocks_are_those_of_the_library(kind: Any) -> None:
    library = pytest.importorskip("gguf")
    numbers = np.random.default_rng(0).standard_normal((50, 640)).astype(np.float32)
    expected = library.quants.quantize(numbers, library.GGMLQuantizationType[kind])
    assert np.array_equal(mind_mlir.QuantizedWeights.of(numbers, kind).blocks.reshape(50, -1), expected)
