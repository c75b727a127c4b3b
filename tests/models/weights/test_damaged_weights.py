"""Files of weights that are damaged, cut, or lie about themselves: a diagnostic, and nothing else."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import time
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import weight_files
from weight_files import gguf, safetensors, text

import mind_mlir

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
EIGHT = bytes(8)


def head(tensors: int = 0, entries: int = 0, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries) + rest


def tensor(name: str = "w", shape: tuple[int, ...] = (8,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def at_32(data: bytes, *content: bytes) -> bytes:
    return data + bytes(-len(data) % 32) + b"".join(content)


def archive(name: str, data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(name, data)
    return stream.getvalue()


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


DAMAGED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "it is empty"),
    "text": (b"hello, world, this is text", "it is of no format that is known"),
    "one byte": (b"{", "the index is not JSON: Expecting property name"),
    "long header": (safetensors({}, length=3), "its header of 3 bytes is longer than the file, or than is"),
    "no end of the header": (safetensors({}, length=2**63), "its header of 9223372036854775808 bytes"),
    "no JSON": (safetensors("{]"), "its header is not JSON: Expecting property name"),
    "not UTF-8": (struct.pack("<Q", 4) + b'{"\xff"', "its header is not JSON: 'utf-8' codec"),
    "NaN": (safetensors('{"w": NaN}'), "its header is not JSON: NaN is no number of JSON"),
    "many digits": (safetensors(f'{{"w": {"9" * 5000}}}'), "its header is not JSON: Exceeds the limit"),
    "deep": (safetensors('{"w":' + "[" * 100_000), "its header is not JSON: maximum recursion depth"),
    "twice": (safetensors('{"w": 1, "w": 2}'), "its header is not JSON: it has 'w' twice"),
    "no tensor": (safetensors({"w": 1}), "tensor 'w' has other fields than dtype, shape and data_offsets"),
    "no extents": (safetensors({"w": F32 | {"shape": [True]}}), "the dtype, shape or place of tensor 'w'"),
    "below zero": (safetensors({"w": F32 | {"shape": [-1, -2]}}), "the dtype, shape or place of tensor 'w'"),
    "one offset": (
        safetensors({"w": F32 | {"data_offsets": [0]}}),
        "the dtype, shape or place of tensor 'w'",
    ),
    "size": (
        safetensors({"w": F32 | {"shape": [3]}}, EIGHT),
        "tensor 'w', F32 of [3], takes 12 bytes, but has",
    ),
    "overflow": (
        safetensors({"w": F32 | {"shape": [2**62, 2**62]}}, EIGHT),
        "a tensor has more bytes than any",
    ),
    "empty overflow": (
        safetensors({"w": {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}}),
        "a tensor has more bytes than any memory",
    ),
    "rank": (safetensors({"w": F32 | {"shape": [1] * 65}}, EIGHT), "a tensor has 65 dimensions"),
    "cut": (safetensors({"w": F32}, bytes(7)), "its tensors have 8 bytes, but 7 follow the header"),
    "more": (safetensors({"w": F32}, bytes(9)), "its tensors have 8 bytes, but 9 follow the header"),
    "overlap": (safetensors({"w": F32, "x": F32}, EIGHT), "tensor 'x' overlaps the one before it"),
    "gap": (
        safetensors({"w": F32, "x": F32 | {"data_offsets": [9, 17]}}, bytes(17)),
        "tensor 'x' leaves a gap before it",
    ),
    "metadata": (safetensors({"__metadata__": {"a": 1}}), "__metadata__ maps names to what is no text"),
    "index of nothing": (b'{"weight_map": []}', "it is JSON, but no index"),
    "index of another folder": (
        json.dumps({"weight_map": {"w": "../w.safetensors"}}).encode(),
        "the index names '../w.safetensors', which is no file beside it",
    ),
    "index of no file": (b'{"weight_map": {"w": "x"}}', "x: No such file or directory"),
    "index of itself": (b'{"weight_map": {"w": "model"}}', "model: its header of"),
    "short GGUF": (b"GGUF", "it says at byte 4 that 1 elements follow, but ends at byte 4"),
    "GGUF of version 1": (head(version=1), "its format is of version 1; versions 2 and 3 are read"),
    "big-endian": (head(version=3 << 24), "in the byte order of another machine"),
    "many tensors": (head(tensors=2**63), "that 9223372036854775808 elements follow, but ends at byte 24"),
    "many entries": (head(entries=2**63), "that 9223372036854775808 elements follow, but ends at byte 24"),
    "long key": (head(0, 1, struct.pack("<Q", 2**62) + bytes(32)), "elements follow, but ends at byte 64"),
    "type of value": (
        head(0, 1, text("k") + struct.pack("<IQ", 77, 0)),
        "a value of type 77, which there is not",
    ),
    "long list": (
        head(0, 1, text("k") + struct.pack("<IIQ", 9, 0, 2**61)),
        "that 2305843009213693952 elements follow",
    ),
    "list of lists": (
        head(0, 1, text("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 50),
        "it has an array of elements of type 9 in 4 others",
    ),
    "key twice": (head(0, 2, (text("k") + struct.pack("<II", 4, 1)) * 2), "it has 'k' twice"),
    "alignment": (gguf({}, {"general.alignment": 3}), "its general.alignment is no power of two"),
    "GGUF of one name": (
        at_32(head(2, 0, tensor() + tensor(offset=32)), bytes(64)),
        "it has 2 tensors called 'w'",
    ),
    "GGUF overlap": (at_32(head(2, 0, tensor() + tensor("x")), bytes(64)), "tensor 'x' overlaps 'w'"),
    "GGUF at odd place": (
        at_32(head(1, 0, tensor(offset=4)), bytes(64)),
        "begins at no multiple of 32 bytes",
    ),
    "GGUF of many extents": (head(1, 0, text("w") + struct.pack("<IQQ", 2**31, 0, 0)), "elements follow"),
    "GGUF of odd blocks": (head(1, 0, tensor(shape=(8,), kind=8)), "'w' are no blocks of 32 numbers"),
    "GGUF of no rows": (head(1, 0, tensor(shape=(), kind=8) + EIGHT), "'w' are no blocks of 32 numbers"),
    "GGUF cut": (at_32(head(1, 0, tensor()), bytes(31)), "it ends at byte 95, before byte 96"),
    "GGUF far away": (head(1, 0, tensor(offset=2**63)), "before byte 9223372036854775904"),
    "GGUF large": (head(1, 0, tensor(shape=(2**63, 2**63))), "a tensor has more bytes than any memory"),
    "cut array": (npy(np.ones(3))[:-1], "its header promises 24 bytes of data, but 23 follow"),
    "array of objects": (npy(np.array([{}], object)), "its elements are Python objects"),
    "archive of text": (archive("data.pkl", b"x"), "'data.pkl' in it is no array"),
    "archive of a damaged array": (archive("w.npy", b"x"), "'w': it is no numpy file"),
    "archive of a cut array": (
        archive("w.npy", npy(np.ones(3))[:-1]),
        "'w' has another size than the archive",
    ),
    "cut archive": (archive("w.npy", npy(np.ones(3)))[:-30], "File is not a zip file"),
}


def read(path: Path, **options: bool) -> mind_mlir.MindError | None:
    """Read all there is; what it is that is wrong."""
    try:
        weights = mind_mlir.load_weights(path, **options)
        for each in weights.values():
            if isinstance(each, mind_mlir.QuantizedWeights):
                each.dequantized()
            else:
                each.sum()
    except mind_mlir.MindError as error:
        return error
    return None


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files(tmp_path: Path, case: str) -> None:
    content, message = DAMAGED[case]
    path = tmp_path / "model"
    path.write_bytes(content)
    error = read(path)
    assert isinstance(error, mind_mlir.ArtefactError)
    assert error.code == "E6505"
    (found,) = error.diagnostics
    assert message in found.message
    assert found.message.startswith(f"cannot read weights from '{path}': ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (safetensors({"w": F32 | {"dtype": "F4"}}, EIGHT), "tensor 'w' is of F4"),
        (
            at_32(head(3, 0, tensor(kind=12) + tensor("x", kind=12) + tensor("y", kind=99))),
            "tensors that are not kept as they lie: 2 of Q4_K, 1 of type 99",
        ),
        (npy(np.zeros(2, "V2")), "array 'model' is of 2 bytes an element, without a type"),
        (archive("w.npy", npy(np.zeros(2, "V2"))), "array 'w' is of 2 bytes an element"),
    ],
)
def test_unknown_types(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model"
    path.write_bytes(content)
    error = read(path)
    assert isinstance(error, mind_mlir.ArtefactError)
    assert error.code == "E6506"
    assert message in error.diagnostics[0].message


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path / "pipe", "it is no regular file"),
        (tmp_path / "absent", "No such file or directory"),
        (tmp_path, "the directory has neither model.safetensors.index.json nor model.safetensors"),
        (f"{tmp_path}/\0", "null"),
        ("", "No such file or directory"),
    ):
        with pytest.raises(mind_mlir.ArtefactError, match=message) as caught:
            mind_mlir.load_weights(path)
        assert caught.value.code == "E6505"
    with pytest.raises(TypeError, match=r"path must be a string or an os\.PathLike, not the int 3"):
        mind_mlir.load_weights(3)
    with pytest.raises(TypeError, match="dequantize must be True or False, not the int 1"):
        mind_mlir.load_weights(tmp_path, dequantize=1)  # type: ignore[arg-type]  # the mistake that is tested


def test_an_archive_that_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez_compressed(path, w=np.ones(3), x=np.ones(3))
    weights = mind_mlir.load_weights(path)
    np.savez_compressed(path, x=np.ones(3))
    with pytest.raises(mind_mlir.ArtefactError, match="the archive has changed: 'w' is gone"):
        weights["w"]


WHOLE: dict[str, Callable[[], bytes]] = {
    "safetensors": lambda: weight_files.safetensors_of({"w": np.ones((2, 3)), "x": np.arange(5)}),
    "GGUF": lambda: gguf(
        {"w": np.ones((2, 3)), "q": (8, (2, 32), weight_files.quantized_blocks("Q8_0", (2, 32)))},
        {"general.name": "n", "list": [1, 2], "texts": ["a", "bc"], "general.alignment": 32},
    ),
    "npz": lambda: archive("w.npy", npy(np.ones((2, 3)))),
    "npy": lambda: npy(np.ones((2, 3))),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_random_damage_is_a_diagnostic(tmp_path: Path, kind: str) -> None:
    """Bytes are changed, words made large, pieces left out and doubled: no other exception comes."""
    whole, path = WHOLE[kind](), tmp_path / "model"
    draw = random.Random(kind)  # noqa: S311 -- the same damage in every run
    began, refused = time.monotonic(), 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(data))
            match draw.randrange(5):
                case 0:
                    data[place] = draw.randrange(256)
                case 1:
                    data[place] ^= 1 << draw.randrange(8)
                case 2:
                    size = draw.choice((1, 4, 8))
                    data[place : place + size] = draw.choice((b"\xff", b"\0", b"\x7f")) * size
                case 3:
                    del data[place : place + draw.randint(1, 16)]
                case _:
                    data[place:place] = data[place : place + draw.randint(1, 16)]
            data = data or bytearray(b"x")
        path.write_bytes(data)
        with np.errstate(all="ignore"):
            refused += read(path) is not None
    assert refused > 100
    assert time.monotonic() - began < 60
    for length in range(0, len(whole.rstrip(b"\0")), 7):
        path.write_bytes(whole[:length])
        assert read(path) is not None
