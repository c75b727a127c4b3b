"""Output files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import threading
from typing import TYPE_CHECKING, BinaryIO

import pytest
from cli_harness import BIN, SUM, invoke, succeed

from mind_mlir.outputs import files as output
from mind_mlir.outputs.errors import OutputError
from mind_mlir.outputs.files import replace_file, write_file

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


# What is replaced


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"before")
    file.chmod(mode)
    (tmp_path / "link").symlink_to("file")
    seen: list[int] = []

    def write(stream: BinaryIO) -> None:
        (temporary,) = tmp_path.glob(".*.tmp")
        seen.append(stat.S_IMODE(temporary.stat().st_mode))
        stream.write(b"after")

    for name in ("file", "link"):
        replace_file(tmp_path / name, write)
        assert file.read_bytes() == b"after"
        assert stat.S_IMODE(file.stat().st_mode) == mode
    assert seen == [0o600, 0o600]  # nobody else may read it while it is made


def test_a_file_keeps_its_owner_where_we_may_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"before")
    asked: list[tuple[int, int]] = []

    def chown(_: object, user: int, group: int) -> None:
        asked.append((user, group))
        raise PermissionError

    before = list((tmp_path / "file").stat())
    before[4:6] = [4321, 1234]
    monkeypatch.setattr(output, "_status", lambda _: os.stat_result(before))
    monkeypatch.setattr(os, "chown", chown)
    write_file(tmp_path / "file", b"after")
    assert asked == [(4321, 1234)]
    assert (tmp_path / "file").read_bytes() == b"after"


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EACCES, errno.EROFS])
def test_a_file_that_can_be_written_but_not_replaced(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(type(tmp_path), "replace", refuse)  # as for a file that is a mount point
    (tmp_path / "file").write_bytes(b"a longer text than after")
    write_file(tmp_path / "file", b"after")
    assert (tmp_path / "file").read_bytes() == b"after"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(OutputError):
        write_file(tmp_path / "new", b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"before")
    real = os.open

    def guarded(path: Path, flags: int, mode: int = 0o777) -> int:
        if path == tmp_path / "file" and flags & os.O_WRONLY:  # the administrator may write everything
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", guarded)
    with pytest.raises(OutputError, match="Permission denied"):
        write_file(tmp_path / "file", b"after")
    assert (tmp_path / "file").read_bytes() == b"before"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_descriptor_is_continued(name: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+") as file:
        file.write("before\n")
        file.flush()
        subprocess.run(
            [BIN / "mind-mlir", "compile", "-", "--emit=core", "-o", name],
            input=SUM.encode(),
            stdout=file,
            check=True,
            timeout=60,
        )
    assert (tmp_path / "out").read_text() == f"before\n{SUM}"


def test_a_directory_in_the_place_of_a_file_and_the_reverse(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = invoke("compile", "-", "--emit=core", "-o", tmp_path, stdin=SUM)
    assert "error[E7101]: cannot write" in result.stderr
    assert "Is a directory" in result.stderr
    result = invoke("compile", "-", "--emit=core", "--dump-stages", tmp_path / "file", stdin=SUM)
    assert result.exit_code == 1
    assert "error[E7101]: cannot create directory" in result.stderr
