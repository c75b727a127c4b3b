"""Shared libraries are made by the linker that is there; where it is missing or fails, that is said."""

from __future__ import annotations

import ctypes
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir.diagnostics import ArtefactError
from mind_mlir.image.loading import host_machine
from mind_mlir.packaging import shared
from mind_mlir.packaging.shared import find_linker, shared_library

if TYPE_CHECKING:
    from pathlib import Path

HOST = host_machine()
TANH = """\
%0 = Input {name="x"} : tensor<f32[512, 512]>
%1 = Tanh (%0) : tensor<f32[512, 512]>
outputs: %1
"""
#: A linker that tells what it was given: its library is its command line, and the list of exports.
HONEST = """\
#!/bin/sh
[ -z "$FAILS" ] || { for line in 1 2 3; do echo "bad symbol $line"; done; exit 3; }
for word; do
  [ "$last" != -o ] || out=$word
  case $word in --version-script=*) list=${word#*=};; esac
  last=$word
done
{ echo "$0 $@"; cat "$list"; } > "$out"
"""


@pytest.fixture(autouse=True)
def _linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("CC", raising=False)


def tools(folder: Path, *names: str) -> str:
    """Make programs of these names, and return the PATH that has them and a shell."""
    for name in names:
        (folder / name).write_text(HONEST)
        (folder / name).chmod(stat.S_IRWXU)
    return str(folder)


def test_compilers_come_before_linkers(tmp_path: Path) -> None:
    for names in (("ld.lld",), ("ld.lld", "ld"), ("ld", "clang"), ("clang", "gcc"), ("gcc", "cc")):
        linker = find_linker(HOST, {"PATH": tools(tmp_path, *names)})
        assert linker is not None
        assert (linker.command, linker.is_driver) == ((names[-1],), names[-1] not in ("ld", "ld.lld"))


def test_the_compiler_of_the_environment(tmp_path: Path) -> None:
    path = tools(tmp_path, "cc", "tool")
    linker = find_linker(HOST, {"PATH": path, "CC": "tool -m64 '-DX=a b'"})
    assert linker is not None
    assert linker.command == ("tool", "-m64", "-DX=a b")
    for wrong in ("no-such-tool -m64", "'open"):
        with pytest.raises(ArtefactError, match="E6503") as raised:
            find_linker(HOST, {"PATH": path, "CC": wrong})
        assert "CC" in raised.value.diagnostics[0].message


def test_other_machines_need_their_own_compiler(tmp_path: Path) -> None:
    assert find_linker("riscv64", {"PATH": tools(tmp_path, "cc", "ld", "ld.lld")}) is None
    assert find_linker("riscv64", {"PATH": tools(tmp_path, "riscv64-linux-gnu-gcc")}) is not None


def test_without_a_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for machine, package in ((HOST, "gcc"), ("riscv64", "gcc-riscv64-linux-gnu")):
        with pytest.raises(ArtefactError, match="E6503") as raised:
            shared_library(b"", library="lib", soname="liblib.so", machine=machine, threads=False)
        (found,) = raised.value.diagnostics
        assert f"apt install {package}'" in str(found.help)
        assert f"dnf install {package}'" in str(found.help)
        assert "--emit=object" in str(found.help)


@pytest.mark.parametrize("name", ["cc", "ld"])
def test_what_a_linker_is_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tools(tmp_path, name)}:/bin:/usr/bin")
    candidates = ((name,), ()) if name == "cc" else ((), (name,))
    monkeypatch.setattr(shared, "_candidates", lambda _: candidates)
    made = shared_library(
        b"code", library="net", soname="libnet.so", machine=HOST, threads=name == "cc"
    ).decode()
    words = made.split()
    for option in ("-shared", "-soname=libnet.so", "relro", "now", "noexecstack", "defs"):
        assert option in words
    assert ("-Xlinker" in words) == (name == "cc")
    assert ("nodelete" in words) == (name == "cc")
    assert ("-lm" in words) == (name == "cc")
    assert "{ global: net_*; local: *; };" in made


def test_what_a_failing_linker_says_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tools(tmp_path, 'failing')}:/bin:/usr/bin")
    monkeypatch.setenv("CC", "failing")
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(ArtefactError, match="E6503") as raised:
        shared_library(b"code", library="net", soname="libnet.so", machine=HOST, threads=True)
    (found,) = raised.value.diagnostics
    assert "'failing' failed with status 3" in found.message
    assert found.notes == tuple(f"failing: bad symbol {line}" for line in (1, 2, 3))


@pytest.mark.skipif(shutil.which("cc") is None or shutil.which("nm") is None, reason="needs a C compiler, nm")
def test_a_library_shows_its_functions_and_needs_the_c_library_alone(tmp_path: Path) -> None:
    module = mind_mlir.parse(TANH)
    path = mind_mlir.package(module, tmp_path / "libnet.so", "shared")
    listed = subprocess.run(["/usr/bin/env", "nm", "-D", path], capture_output=True, text=True, check=True)
    kinds = [line.split()[-2:] for line in listed.stdout.splitlines()]
    shown = [name for kind, name in kinds if kind not in "Uwv"]
    assert sorted(shown) == ["net_main", "net_message", "net_set_num_threads"]
    libc = ctypes.CDLL(None)
    needed = [name.partition("@")[0] for kind, name in kinds if kind == "U"]
    assert [name for name in needed if not hasattr(libc, name)] == []
    library = ctypes.CDLL(str(path))
    x = np.linspace(-3, 3, 512 * 512, dtype=np.float32)
    y = np.empty_like(x)
    memory = np.empty(1 << 20, np.uint8)
    aligned = memory.ctypes.data + -memory.ctypes.data % 64
    pointers = [ctypes.c_void_p(each) for each in (x.ctypes.data, y.ctypes.data, aligned)]
    assert library.net_main(*pointers) == 0
    (expected,) = mind_mlir.compile(module)(x.reshape(512, 512))
    assert y.tobytes() == expected.tobytes()
