"""Files of arrays: whatever is in them, an array of the wanted type comes out, or a reason why none does."""

from __future__ import annotations

import io
import json
import os
import struct
import threading
import tracemalloc
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cli_harness import findings, invoke, succeed

from mind_mlir.ir.types import DType
from mind_mlir.models.weights.array_files import MAX_HEADER, Archive, ArrayFileError, Header, read_array

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir.ir.attributes import Array

X = np.arange(6, dtype=np.float32).reshape(2, 3)
PROGRAM = '%0 = Input {name="x"} : tensor<f32[2, 3]>\noutputs: %0\n'
SHOWN = "%0 : tensor<f32[2, 3]>\n[[0., 1., 2.],\n [3., 4., 5.]]\n"


def npy(array: Array = X, version: tuple[int, int] | None = None) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version)
    return stream.getvalue()


def with_header(text: str, version: int = 1, data: bytes = X.tobytes()) -> bytes:
    header = text.encode("utf-8" if version == 3 else "latin-1")
    return (
        b"\x93NUMPY"
        + bytes((version, 0))
        + struct.pack("<H" if version == 1 else "<I", len(header))
        + header
        + data
    )


def wanted(header: Header) -> bool:
    return header.dtype == np.float32 and header.shape == (2, 3)


def outcome(path: Path, data: bytes) -> Array | str | None:
    path.write_bytes(data)
    try:
        if path.suffix == ".npy":
            return read_array(str(path), wanted)
        archive = Archive(str(path))
        try:
            return archive.read("x", wanted) if "x" in archive.members else None
        finally:
            archive.close()
    except ArrayFileError as error:
        return str(error)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize(
    "array", [X, np.asfortranarray(X), X.astype(">f4")], ids=["c", "fortran", "big-endian"]
)
def test_every_way_of_storing_an_array(version: tuple[int, int], array: Array, tmp_path: Path) -> None:
    found = outcome(tmp_path / "x.npy", npy(array, version))
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float32
    assert np.array_equal(found, X)


def test_an_array_of_python_2(tmp_path: Path) -> None:
    found = outcome(
        tmp_path / "x.npy", with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}\n")
    )
    assert np.array_equal(np.asarray(found), X)


def test_every_flip_and_cut_of_a_file(tmp_path: Path) -> None:
    data = npy()
    for position in range(data.index(b"\n") + 1):
        for bits in (0x01, 0x02, 0x10, 0x20, 0x80, 0xFF):
            flipped = bytearray(data)
            flipped[position] ^= bits
            outcome(tmp_path / "x.npy", bytes(flipped))
    for length in range(len(data)):
        assert isinstance(outcome(tmp_path / "x.npy", data[:length]), str)


def archive_of(compression: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), data, compression)
    return stream.getvalue()


def test_every_flip_and_cut_of_an_archive(tmp_path: Path) -> None:
    data = archive_of(x=npy())
    assert isinstance(outcome(tmp_path / "x.npz", data), np.ndarray)
    for position in range(len(data)):
        for bits in (0x01, 0x08, 0xFF):
            flipped = bytearray(data)
            flipped[position] ^= bits
            outcome(tmp_path / "x.npz", bytes(flipped))
        outcome(tmp_path / "x.npz", data[:position])


def fine(descr: str) -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2, 3)}}"


HEADERS = {
    "objects": fine("'|O'"),
    "records": fine("[('a', '<f4')]"),
    "records with names": fine("[('naïve ☃', '<f4')]"),
    "commas": fine("'f4,f4'"),
    "strings": fine("'<U3'"),
    "dates": fine("'<M8[ns]'"),
    "bytes": fine("'|V4'"),
    "no such type": fine("'<f3'"),
    "deprecated type": fine("'a4'"),
    "negative": "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3)}",
    "huge": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**62}, {2**62})}}",
    "endless": "{'descr': '<f4', 'fortran_order': False, 'shape': (0x" + "f" * 9000 + ",)}",
    "truth": "{'descr': '<f4', 'fortran_order': False, 'shape': (True, 6)}",
    "no tuple": "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
    "order": "{'descr': '<f4', 'fortran_order': 'no', 'shape': (2, 3)}",
    "key missing": "{'descr': '<f4', 'shape': (2, 3)}",
    "key more": fine("'<f4', 'more': 1"),
    "no dictionary": "[]",
    "code": "__import__('os').abort()",
    "unhashable": "{[]: 1}",
    "deep": "(" * 9000,
    "deep signs": "-" * 9000 + "1",
    "long sum": "1+" * 4500 + "1",
    "nul": "{'descr': '\0'}",
    "escape": fine(r"'\d'"),
    "too long": fine("'<f4'") + " " * MAX_HEADER,
}


@pytest.mark.parametrize("kind", HEADERS)
def test_malformed_headers(kind: str, tmp_path: Path) -> None:
    data = with_header(HEADERS[kind], version=3)
    assert not isinstance(outcome(tmp_path / "x.npy", data), np.ndarray)
    assert not isinstance(outcome(tmp_path / "x.npz", archive_of(x=data)), np.ndarray)
    (tmp_path / "x.npy").write_bytes(data)
    (found,) = findings("run", "-", f"--input=x={tmp_path / 'x.npy'}", stdin=PROGRAM)
    assert found["code"] == ("E6104" if kind == "huge" else "E6105")


@pytest.mark.parametrize("version", [0, 4, 255])
def test_unknown_versions(version: int, tmp_path: Path) -> None:
    found = outcome(tmp_path / "x.npy", b"\x93NUMPY" + bytes((version, 0)) + b"\x10\0\0\0" * 10)
    assert "version" in str(found)


def test_a_header_of_gigabytes(tmp_path: Path) -> None:
    found = outcome(tmp_path / "x.npy", b"\x93NUMPY\x02\0\xff\xff\xff\xff" + bytes(100))
    assert found == "its header of 4294967295 bytes is too long for an array of numbers"


def run(tmp_path: Path, data: bytes) -> list[dict[str, object]]:
    (tmp_path / "a.npz").write_bytes(data)
    return findings("run", "-", f"--input={tmp_path / 'a.npz'}", stdin=PROGRAM)


BOMB = bytes(32 << 20)


@pytest.mark.parametrize(
    ("data", "code", "why"),
    [
        (
            with_header(fine("'<f4'"), data=BOMB),
            "E6105",
            "promises 24 bytes of data, the archive",
        ),
        (npy(np.zeros(8 << 20, np.float32)), "E6104", "has shape [8388608]"),
        (BOMB, "E6105", "no numpy file"),
    ],
)
def test_a_bomb_is_refused_before_it_is_unpacked(data: bytes, code: str, why: str, tmp_path: Path) -> None:
    packed = archive_of(x=data)
    del data
    tracemalloc.start()
    try:
        found = run(tmp_path, packed)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert [finding["code"] for finding in found] == [code]
    assert why in str(found[0]["message"])


def test_arrays_that_nobody_wants_are_not_read(tmp_path: Path) -> None:
    (found,) = run(
        tmp_path, archive_of(zipfile.ZIP_STORED, x=npy(), **{f"y{index}": b"" for index in range(20)})
    )
    assert found["code"] == "E6102"
    assert str(found["message"]).endswith("y8, y9 and 10 more")


def encrypted() -> bytes:
    data = bytearray(archive_of(zipfile.ZIP_STORED, x=npy()))
    data[6] |= 1  # the flags in the member's own header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    return bytes(data)


def twice() -> bytes:
    return archive_of(x=npy(), y=npy()).replace(b"y.npy", b"x.npy")


def zip64() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file, file.open("x.npy", "w", force_zip64=True) as member:
        member.write(npy())
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "code", "why"),
    [
        (encrypted(), "E6105", "'x': it is encrypted"),
        (archive_of(zipfile.ZIP_LZMA, x=npy()), "E6105", "compressed in a way"),
        (archive_of(zipfile.ZIP_BZIP2, x=npy()), "E6105", "compressed in a way"),
        (twice(), "E6102", "several arrays of one name: x"),
        (archive_of(x=archive_of(x=npy())), "E6105", "'x': it is an archive"),
        (npy(), "E6105", "it is a single array; pass it as --input NAME="),
        (b"PK\x05\x06" + bytes(18), "E6101", "input 'x' is missing"),
        (b"PK\x03\x04", "E6105", "not a zip file"),
        (b"", "E6105", "not a zip file"),
    ],
)
def test_archives_that_are_odd(data: bytes, code: str, why: str, tmp_path: Path) -> None:
    (found,) = run(tmp_path, data)
    assert found["code"] == code
    assert why in str(found["message"])


def test_a_large_archive_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(zip64())
    assert invoke("run", "-", f"--input={tmp_path / 'a.npz'}", stdin=PROGRAM).stdout == SHOWN


def test_two_archives_that_give_the_same(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        (tmp_path / name).write_bytes(archive_of(x=npy()))
    args = [f"--input={tmp_path / name}" for name in ("a.npz", "b.npz")]
    (found,) = findings("run", "-", *args, stdin=PROGRAM)
    assert found["code"] == "E6102"
    assert found["message"].endswith("repeats what another archive gives: x")


def test_an_array_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    writer = threading.Thread(target=lambda: (tmp_path / "x").write_bytes(npy()))
    writer.start()
    assert invoke("run", "-", "--interpret", f"--input=x={tmp_path / 'x'}", stdin=PROGRAM).stdout == SHOWN
    writer.join()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/", "", "a" * 5000, "nul\0"])
def test_places_that_hold_no_array(path: str) -> None:
    for spec in (f"x={path}", f"{path}.npz"):
        result = invoke("run", "-", "--input", spec, stdin=PROGRAM)
        assert result.exit_code == (2 if spec == "x=" else 1)


@pytest.mark.parametrize("name", ["bf16", "fp8_e4m3", "fp8_e5m2", "si4", "ui4"])
@pytest.mark.parametrize("shape", ["", ", 3"])
def test_outputs_of_narrow_dtypes_are_files_that_numpy_and_we_read(
    name: str, shape: str, tmp_path: Path
) -> None:
    type_, dtype = f"tensor<{name}{shape}>", DType.from_name(name)
    program = tmp_path / "program.ptir"
    program.write_text(f"func @main(%x: {type_}) -> {type_} {{\n  return %x\n}}\n")
    given = "[1, -2, 3]" if name != "ui4" else "[1, 2, 15]"
    given = given if shape else "3"
    shown = succeed("run", program, "--input", f"x={given}", "-o", tmp_path / "x.npy")
    assert shown == ""
    assert dtype is not None
    assert np.load(tmp_path / "x.npy").view(dtype.numpy).tolist() == json.loads(given)
    again = succeed("run", program, "--input", f"x={tmp_path / 'x.npy'}")
    assert again == succeed("run", program, "--input", f"x={given}")
    assert again.splitlines()[1] == given
