"""Another release of the compiler in the place of the one that a process runs: its code is not kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir.cache import fingerprint
from mind_mlir.cache.key import key_of_text
from mind_mlir.runtime import call, kept_images, threads
from mind_mlir.runtime.call import CALLS_BEFORE
from mind_mlir.support import version
from mind_mlir.support.speed_ups import Attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGE = Path(mind_mlir.__file__).parent

#: Compiles for the first time when it is told to.
PROGRAM = """
import sys
import numpy as np
import mind_mlir
module = mind_mlir.parse('''%0 = Input {name="x"} : tensor<f32[4]>
%1 = Add (%0, %0) : tensor<f32[4]>
outputs: %1
''')
print(mind_mlir.__file__, flush=True)
sys.stdin.readline()
assert mind_mlir.compile(module)(np.ones(4, np.float32))[0].tolist() == [2] * 4
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder that the package stands in."""
    found = tmp_path / "site"
    shutil.copytree(PACKAGE, found / "mind_mlir")
    return found


def record(site: Path, release: str) -> None:
    """Write down what is installed, as installers do last."""
    path = site / f"mind_mlir-{release}.dist-info" / "RECORD"
    path.parent.mkdir()
    path.write_text(f"the files of {release}")


class Process:
    """A process that has loaded the package, and compiles when `compile` says so."""

    def __init__(self, site: Path, cache: Path) -> None:
        settings = {"PYTHONPATH": str(site), "MIND_MLIR_CACHE": "on", "MIND_MLIR_CACHE_DIR": str(cache)}
        self._child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | settings,
            cwd=site,
            text=True,
        )
        assert self._child.stdout is not None
        assert self._child.stdout.readline().strip() == str(site / "mind_mlir" / "__init__.py")

    def compile(self) -> None:
        self._child.communicate("go\n")
        assert self._child.returncode == 0


def upgrade(site: Path) -> None:
    """Put release 2 in the place of release 1, as installers do: the old one goes first."""
    shutil.rmtree(site / "mind_mlir-1.dist-info")
    source = site / "mind_mlir" / "lowering" / "to_llvm.py"
    text = source.read_text()
    source.unlink()
    source.write_text(text + "# release 2\n")
    record(site, "2")


def edit(site: Path) -> None:
    """Change a file so that neither its size nor its time says so."""
    source = site / "mind_mlir" / "lowering" / "to_llvm.py"
    before = source.stat()
    text = source.read_text()
    source.write_text(text.replace("return", "retrun", 1).replace("retrun", "return", 1))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], None]] = {"an upgrade": upgrade, "an edit": edit}


@pytest.mark.parametrize("change", CHANGES)
def test_a_process_that_runs_another_release_keeps_nothing(change: str, site: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    if change == "an upgrade":
        record(site, "1")
    old = Process(site, cache)
    CHANGES[change](site)
    old.compile()
    assert not list(cache.glob("*.code"))


def test_the_release_that_stands_there_keeps_its_code(site: Path, tmp_path: Path) -> None:
    record(site, "1")
    Process(site, tmp_path / "cache").compile()
    assert list((tmp_path / "cache").glob("*.code"))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a file of a package that this process is taken to have loaded just now."""
    source = tmp_path / "mind_mlir" / "passes" / "a.py"
    source.parent.mkdir(parents=True)
    source.write_text("1")
    monkeypatch.setattr(fingerprint, "_PACKAGE", tmp_path / "mind_mlir")
    monkeypatch.setattr(version, "LOADED_NS", time.time_ns() + 3600 * 10**9)
    caches = (fingerprint._look, fingerprint.compiler_fingerprint)
    for each in caches:
        each.cache_clear()
    yield source
    monkeypatch.undo()
    for each in caches:
        each.cache_clear()


def test_what_changes_while_code_is_made_is_noticed(installed: Path) -> None:
    assert fingerprint.compiler_fingerprint() is not None
    assert fingerprint.is_as_loaded()
    before = installed.stat()
    time.sleep(0.05)  # longer than a tick
    installed.write_text("2")
    os.utime(installed, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not fingerprint.is_as_loaded()


def test_what_is_gone_is_noticed(installed: Path) -> None:
    assert fingerprint.is_as_loaded()
    installed.unlink()
    assert not fingerprint.is_as_loaded()


def test_what_has_changed_since_loading_began_has_no_key(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version, "LOADED_NS", installed.stat().st_ctime_ns)
    assert fingerprint.compiler_fingerprint() is None
    assert key_of_text("text") is None


@pytest.fixture
def other_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the runtime's texts of another release where this process looks for its own."""
    for path in (PACKAGE / "runtime").glob("*.mlir"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(kept_images, "_FOLDER", tmp_path)
    monkeypatch.setattr(threads._PoolState, "pool", None)
    monkeypatch.setattr(threads._PoolState, "image", None)
    monkeypatch.setattr(call._NativeCalls, "available", None)
    monkeypatch.setattr(call._NativeCalls, "image", None)
    monkeypatch.setattr(call._NativeCalls, "attempts", Attempts(CALLS_BEFORE, CALLS_BEFORE))
    kept_images.runtime_text.cache_clear()
    yield
    kept_images.runtime_text.cache_clear()


@pytest.mark.usefixtures("other_texts")
def test_texts_of_another_release_become_no_code() -> None:
    """They say where release 1 keeps what calls read, in the words of release 2."""
    with pytest.raises(mind_mlir.UnsupportedError, match="start the process anew"):
        call.enable()
    module = mind_mlir.parse(
        '%0 = Input {name="x"} : tensor<f32[1048576]>\n%1 = Neg (%0) : tensor<f32[1048576]>\noutputs: %1\n'
    )
    x, run = np.ones(1 << 20, np.float32), mind_mlir.compile(module, cache=False)
    for _ in range(CALLS_BEFORE + 1):
        assert run(x)[0][-1] == -1
    assert run._words is None
    assert threads._PoolState.pool is None
