"""Where the system shows or gives little: no ``/proc``, few descriptors, small files, little stack."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mind_mlir import UnsupportedError
from mind_mlir.cache import fingerprint
from mind_mlir.codegen import written as writing
from mind_mlir.codegen.written import written
from mind_mlir.target import FEATURES, host, host_architecture
from mind_mlir.target.host import announced_caches, announced_flags

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="code is made on Linux")

PROGRAM = """
import mind_mlir, numpy as np, os, resource
module = mind_mlir.parse('''
%x = Input {name="x"} : tensor<f32[64, 64]>
%y = MatMul (%x, %x) : tensor<f32[64, 64]>
%z = Exp (%y) : tensor<f32[64, 64]>
outputs: %z
''')
def run():
    try:
        print(mind_mlir.compile(module, cache=False)(np.zeros((64, 64), np.float32))[0].sum())
    except mind_mlir.MindError as error:
        print(error.code)
"""


def run(*lines: str, limits: str = "true") -> str:
    """Return what a process of its own prints after `PROGRAM` and ``lines``; it ends well."""
    program = "\n".join((PROGRAM, *lines))
    done = subprocess.run(
        ["sh", "-c", f'{limits}; exec "$0" "$@"', sys.executable, "-c", program],  # noqa: S607 -- any shell
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # Python keeps half of what it could not write
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_c_library_says_what_linux_says() -> None:
    machine = host_architecture()
    known = {word for feature in FEATURES[machine].values() for word in feature.linux}
    assert announced_flags(machine) == host.host_flags() & known
    sizes = host._host_caches()
    assert {level: size for level, size in sizes.items() if level < 3} == (announced_caches() or sizes)


def test_without_files_about_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = host.host_features()
    for cached in (host.host_flags, host.host_target):
        monkeypatch.setattr(host, cached.__name__, cached.__wrapped__)
    for name in ("_CPUINFO", "_CACHES"):
        monkeypatch.setattr(host, name, tmp_path / "nothing")
    monkeypatch.setattr(fingerprint, "_CPUINFO", tmp_path / "nothing")
    assert host.host_features() == expected
    target = host.host_target()
    assert (target.vector_bytes, target.machine) == (host.host_target().vector_bytes, host_architecture())
    assert set(fingerprint._processor()) >= set(announced_flags(host_architecture()))


def write(path: str) -> None:
    """Write as LLVM does: open, truncate, write in pieces, and close."""
    with Path(path).open("wb") as file:
        for _ in range(100):
            file.write(b"0123456789" * 1000)


@pytest.mark.parametrize("way", ["memory", "no /proc", "limited files"])
def test_what_is_written(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way == "no /proc":
        monkeypatch.setattr(os.path, "exists", lambda _: False)
    if way == "limited files":
        monkeypatch.setattr(writing, "_limits_files", lambda: True)
    assert written(write) == b"0123456789" * 100_000
    with pytest.raises(UnsupportedError, match="E7102"):  # as LLVM leaves it where it cannot open the file
        written(lambda _: None)


def test_no_threads_for_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(writing, "_limits_files", lambda: True)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(UnsupportedError, match="E7102"):
        written(write)


def test_files_of_limited_size() -> None:
    """LLVM ended the process."""
    assert run("run()", limits="ulimit -f 1") == "4096.0\n"


def test_no_descriptors_left() -> None:
    """LLVM said that it could not open its file, and we that this was a bug of ours."""
    lines = (
        "run()",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
        "module = mind_mlir.parse(str(module).replace('64, 64', '32, 32'))",
        "from mind_mlir.codegen import written",
        "import mind_mlir.diagnostics.render",
        "held = []",
        "make = os.memfd_create",
        "def fill(name):",
        "    found = make(name)",
        "    try:",
        "        while True: held.append(os.dup(0))",
        "    except OSError: return found",
        "os.memfd_create = fill",
        "run()",
        "os.memfd_create = make",
        "for each in held: os.close(each)",
        "module = mind_mlir.parse(str(module).replace('32, 32', '64, 64'))",
        "run()",
    )
    assert run(*lines) == "4096.0\nE7102\n4096.0\n"


@pytest.mark.parametrize("kilobytes", [128, 512])
def test_little_stack_in_the_first_thread(kilobytes: int) -> None:
    assert run("run()", limits=f"ulimit -s {kilobytes}") == "E7103\n"


@pytest.mark.parametrize("kilobytes", [128, 512])
def test_little_stack_in_another_thread(kilobytes: int) -> None:
    lines = (
        "import threading",
        f"threading.stack_size({kilobytes} << 10)",
        "thread = threading.Thread(target=run)",
        "thread.start()",
        "thread.join()",
        f"assert threading.stack_size() == {kilobytes} << 10",
        "run()",
    )
    assert run(*lines) == "E7103\n4096.0\n"
