"""Output files appear whole or not at all."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, BinaryIO

import pytest
from cli_harness import SUM, invoke, succeed

from mind_mlir.cli.output import OutputError, replace_file, write_file

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_written_with_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_file(tmp_path / "file", b"data")
    assert (tmp_path / "file").read_bytes() == b"data"
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there_and_no_temporary_file(
    error: type[BaseException], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"before")

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    with pytest.raises(error):
        replace_file(tmp_path / "file", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"before"


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before")
    (tmp_path / "link").symlink_to("file")
    write_file(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"after"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"data")
    reader.join()
    assert found == [b"data"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["", "missing/file", "file/inside", "x" * 300, "nul\0"])
def test_places_that_cannot_be_written_to(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        write_file(tmp_path / name, b"data")


def test_a_name_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    write_file(tmp_path / ("x" * 255), b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["x" * 255]


def test_commands_write_to_devices_and_standard_output() -> None:
    assert succeed("compile", "-", "--emit=core", "-o", os.devnull, stdin=SUM) == ""
    assert succeed("compile", "-", "--emit=core", "-o", "-", stdin=SUM) == SUM


def test_an_output_in_a_directory_that_is_missing(tmp_path: Path) -> None:
    result = invoke("ops", "--markdown", "-o", tmp_path / "missing" / "ops.md")
    assert result.exit_code == 1
    assert "cannot write" in result.stderr
    assert "No such file or directory" in result.stderr
