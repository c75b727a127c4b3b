"""What is written for perf: read back as perf reads it."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest
from debug_objects import SOFTMAX, object_of

import mind_mlir
from mind_mlir.image import perf
from mind_mlir.image.linking import link
from mind_mlir.image.loading import Loaded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mind_mlir.image.image import Image

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="perf is a tool of Linux")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return link([object_of(mind_mlir.parse(SOFTMAX, "models/net.ir"))])


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Begin as a new process does, and write to a directory of the test."""
    monkeypatch.setattr(perf, "_state", perf._PerfState())
    monkeypatch.setattr(perf, "_MAPS", tmp_path)
    monkeypatch.setenv("JITDUMPDIR", str(tmp_path))


def test_the_map_has_a_line_for_each_function(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"perf-{os.getpid()}.map"
    path.write_text("1000 10 py::main\n")  # as CPython does, in the same process
    monkeypatch.setenv("MIND_MLIR_PERF", "map")
    loaded = Loaded(image)
    first, *lines = path.read_text().splitlines()
    assert first == "1000 10 py::main"
    found = [line.split(" ", 2) for line in lines]
    assert [(int(start, 16) - loaded.address, int(size, 16), name) for start, size, name in found] == [
        (symbol.offset, symbol.size, symbol.name) for symbol in image.symbols if symbol.offset < image.text
    ]
    assert "net.main_kernel_1.Mul" in {name for *_, name in found}


def test_functions_that_are_compiled_are_in_the_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_PERF", "map")
    source = '%0 = Input {name="x"} : tensor<f32[4]>\n%1 = Exp (%0) : tensor<f32[4]>\noutputs: %1\n'
    kept = mind_mlir.compile(mind_mlir.parse(source, "exp.ir"), threads=1, debug=True)
    path = tmp_path / f"perf-{os.getpid()}.map"
    assert "mind.entry.main" in [line.split()[2] for line in path.read_text().splitlines()]
    del kept


def test_what_an_older_process_of_this_number_has_written_goes(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"perf-{os.getpid()}.map"
    path.write_text("1000 10 gone\n")
    os.utime(path, (1, 1))
    monkeypatch.setenv("MIND_MLIR_PERF", "map")
    Loaded(image)
    assert "gone" not in path.read_text()


@pytest.mark.parametrize("name", ["perf-{}.map", "jit-{}.dump"])
def test_no_link_is_followed(
    name: str, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / name.format(os.getpid())).symlink_to(tmp_path / "precious")
    monkeypatch.setenv("MIND_MLIR_PERF", "map" if "map" in name else "jitdump")
    with pytest.warns(RuntimeWarning, match="perf is told of no code"):
        Loaded(image)
    Loaded(image)  # which says so once
    assert (tmp_path / "precious").read_text() == "kept"


class _Record(NamedTuple):
    kind: int
    time: int
    content: bytes


def _records(data: bytes) -> Iterator[_Record]:
    at = struct.unpack_from("=I", data, 8)[0]  # the size of the header
    while at < len(data):
        kind, size, time = struct.unpack_from("=IIQ", data, at)
        yield _Record(kind, time, data[at + 16 : at + size])
        at += size


def _text(data: bytes) -> str:
    return data[: data.index(b"\0")].decode()


def test_the_dump_has_code_and_lines_of_each_function(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIND_MLIR_PERF", "jitdump")
    loaded = Loaded(image)
    data = (tmp_path / f"jit-{os.getpid()}.dump").read_bytes()
    magic, version, size, machine, _, pid, began, flags = struct.unpack_from("=IIIIIIQQ", data)
    assert (magic, version, size, pid, flags) == (0x4A695444, 1, 40, os.getpid(), 0)
    assert machine == {"x86_64": 62, "aarch64": 183}[image.machine]
    lines: dict[int, list[tuple[int, int, str]]] = {}
    names, numbers, times = [], set(), [began]
    for record in _records(data):
        times.append(record.time)
        if record.kind == 2:  # JIT_CODE_DEBUG_INFO
            start, count = struct.unpack_from("=QQ", record.content)
            at = 16
            for _ in range(count):
                address, line, _ = struct.unpack_from("=QII", record.content, at)
                file = _text(record.content[at + 16 :])
                at += 16 + len(file) + 1
                lines.setdefault(start, []).append((address, line, file))
            assert at == len(record.content)
            continue
        assert record.kind == 0  # JIT_CODE_LOAD
        pid, _, address, code, size, number = struct.unpack_from("=IIQQQQ", record.content)
        name = _text(record.content[40:])
        symbol = next(each for each in image.symbols if each.name == name)
        assert (pid, code, address) == (os.getpid(), address, loaded.address + symbol.offset)
        instructions = record.content[40 + len(name) + 1 :]
        assert len(instructions) == size == symbol.size
        names.append(name)
        numbers.add(number)
        for at, line, file in lines.get(code, []):  # which come before the code
            assert code <= at < code + size
            assert file == "models/net.ir"
            assert line in range(2, 8)
    assert names == [symbol.name for symbol in image.symbols if symbol.offset < image.text]
    assert len(numbers) == len(names)
    assert times == sorted(times)
    mul = loaded.address + image.offset_of("net.main_kernel_1.Mul")
    assert {line for _, line, _ in lines[mul]} == {7}
    with open("/proc/self/maps") as maps:  # noqa: PTH123 -- no file but a view of the kernel
        marks = [line for line in maps if f"jit-{os.getpid()}.dump" in line]
    assert len(marks) == 1
    assert "r-xp" in marks[0]  # by which perf finds the file


def test_nothing_is_written_unless_asked_for(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MIND_MLIR_PERF", raising=False)
    Loaded(image)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("MIND_MLIR_PERF", "yes")
    with pytest.raises(ValueError, match="MIND_MLIR_PERF must be one of map, jitdump, not 'yes'"):
        Loaded(image)


_FORKS = """
import os, pathlib, sys
from mind_mlir.image import perf
from mind_mlir.image.linking import link
from mind_mlir.image.loading import Loaded
perf._MAPS = pathlib.Path(sys.argv[2])
data = pathlib.Path(sys.argv[1]).read_bytes()
first = Loaded(link([data]))
child = os.fork()
second = Loaded(link([data]))
if not child:
    print(os.getpid(), first.address, second.address, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_forked_process_writes_a_file_of_its_own(image: Image, tmp_path: Path) -> None:
    path = tmp_path / "net.o"
    (tmp_path / "maps").mkdir()
    path.write_bytes(object_of(mind_mlir.parse(SOFTMAX, "net.ir")))
    command = [sys.executable, "-c", _FORKS, str(path), str(tmp_path / "maps")]
    environment = {**os.environ, "MIND_MLIR_PERF": "map"}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    child, *addresses = map(int, said.split())
    maps = {int(each.stem.split("-")[1]): each.read_text() for each in (tmp_path / "maps").iterdir()}
    assert len(maps) == 2
    starts = [line.split()[0] for line in maps[child].splitlines()]
    assert [f"{address:x}" in starts for address in addresses] == [True, True]
    assert len(starts) == 2 * sum(each.offset < image.text for each in image.symbols)
