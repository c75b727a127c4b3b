"""Where no memory may be both written and run, what is compiled runs, and compiling says what forbids it."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.codegen import library
from mind_mlir.image import loading, pages
from mind_mlir.image.loading import Loaded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PR_SET_MDWE, _PR_GET_MDWE, _REFUSE_EXEC_GAIN = 65, 66, 1

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="code is compiled on Linux alone")

#: What a process under the policy has in common with one that is not.
COMMON = """
import ctypes, sys
import numpy as np
import mind_mlir
from mind_mlir.runtime import call
cache, bundle = sys.argv[1:]
x = np.ones(1 << 20, np.float32)
text = '''%0 = Input {name="x"} : tensor<f32[1048576]>
%1 = Add (%0, %0) : tensor<f32[1048576]>
%2 = Exp (%1) : tensor<f32[1048576]>
outputs: %1, %2
'''
module = mind_mlir.parse(text, format="core")

def check(run):
    for _ in range(3):
        twice, power = run(x)
        assert (twice == 2).all()
        assert abs(power - 7.389056).max() < 1e-5
"""

BEFORE = """
check(mind_mlir.compile(module, cache=cache))
call.enable()
mind_mlir.package(module, bundle)
"""

UNDER = """
assert ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0
run = mind_mlir.compile(module, cache=cache)
assert "codegen" not in run.timings
check(run)
assert call.enable()
check(run)
assert run._words is not None
check(mind_mlir.load_bundle(bundle))
check(lambda x: mind_mlir.interpret(module, {"x": x}))
gradient = mind_mlir.differentiate(module).module
assert "llvm.func" in mind_mlir.Executable.as_text(run, "llvm")
for _ in range(3):
    try:
        mind_mlir.compile(gradient, cache=cache)
    except mind_mlir.UnsupportedError as error:
        assert error.diagnostics[0].code == "E7104" and "PR_SET_MDWE" in str(error)
    else:
        raise AssertionError("it compiled")
check(run)
"""


def has_policy() -> bool:
    return int(ctypes.CDLL(None).prctl(_PR_GET_MDWE, 0, 0, 0, 0)) >= 0


def succeeds(program: str, *arguments: Path) -> None:
    settings = {
        "MIND_MLIR_CACHE": "on",
        "MIND_MLIR_CACHE_DIR": str(arguments[0]),
        "MIND_MLIR_NUM_THREADS": "2",
    }
    command = [sys.executable, "-c", COMMON + program, *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not has_policy(), reason="this Linux has no PR_SET_MDWE")
def test_what_is_compiled_runs_and_compiling_is_refused(tmp_path: Path) -> None:
    succeeds(BEFORE, tmp_path / "cache", tmp_path / "bundle")
    succeeds(UNDER, tmp_path / "cache", tmp_path / "bundle")


# Systems that refuse in other ways


def doubled() -> mind_mlir.Executable:
    text = '%0 = Input {name="x"} : tensor<f32[4]>\n%1 = Add (%0, %0) : tensor<f32[4]>\noutputs: %1\n'
    return mind_mlir.compile(mind_mlir.parse(text, format="core"))


def refusing(reason: int) -> Callable[[int, int, int], int]:
    before = pages._protected
    return lambda address, size, how: reason if how & 4 else before(address, size, how)


def in_file(address: int) -> bool:
    """Return whether code is in a file in memory."""
    with open("/proc/self/maps") as maps:  # noqa: PTH123 -- no file of ours
        for line in maps:
            start, end = (int(each, 16) for each in line.split(" ", 1)[0].split("-"))
            if start <= address < end:
                assert line.split()[1] == "r-xp"
                return "memfd:" in line
    raise AssertionError("it is nowhere")


def loaded_code() -> Loaded:
    """Return code that returns seven, which is made under no policy."""
    text = "llvm.func @seven() -> i64 { %0 = llvm.mlir.constant(7 : i64) : i64\nllvm.return %0 : i64 }"
    return Loaded(library.compile_text(text))


def seven(code: Loaded) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(code.address_of("seven"))())


@pytest.mark.parametrize("reason", [errno.EACCES, errno.EPERM])
@pytest.mark.parametrize("old", [False, True], ids=["today's Linux", "an old one"])
def test_code_is_loaded_from_a_file_in_memory(
    reason: int, old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = loaded_code().image
    create = os.memfd_create

    def create_as_before(name: str, flags: int) -> int:
        if flags & pages._MFD_EXEC:
            raise OSError(errno.EINVAL, "Invalid argument")
        return create(name, flags)

    if old:
        monkeypatch.setattr(os, "memfd_create", create_as_before)
    monkeypatch.setattr(pages, "_protected", refusing(reason))
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- as many as there are
    code = Loaded(image)
    assert len(os.listdir("/proc/self/fd")) == descriptors  # noqa: PTH208 -- as above
    assert in_file(code.address)
    assert seven(code) == 7


def test_code_lies_in_memory_where_it_may() -> None:
    code = loaded_code()
    assert not in_file(code.address)
    assert seven(code) == 7


def test_nothing_may_be_run_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    image = loaded_code().image
    monkeypatch.setattr(pages, "_protected", refusing(errno.EACCES))
    monkeypatch.setattr(pages, "_replaced", lambda *_: errno.EACCES)
    with pytest.raises(mind_mlir.UnsupportedError, match=r"E7104.*MemoryDenyWriteExecute"):
        Loaded(image)


def test_there_is_no_memory_for_more_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    image = loaded_code().image
    monkeypatch.setattr(pages, "_protected", refusing(errno.ENOMEM))
    with pytest.raises(MemoryError, match="bytes become code"):
        Loaded(image)


def test_llvm_is_not_asked_where_it_would_not_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_protected", refusing(errno.EACCES))
    for _ in range(2):
        with pytest.raises(mind_mlir.UnsupportedError, match="E7104"):
            doubled()
    monkeypatch.undo()
    assert doubled()(np.ones(4, np.float32))[0].tolist() == [2] * 4


# Processors that have to be told


@pytest.mark.parametrize(("machine", "told"), [("aarch64", True), ("x86_64", False)])
def test_processors_with_a_cache_of_instructions_are_told(
    machine: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is there when they are, and is code already."""
    seen: list[Any] = []

    def flush(start: int, end: int) -> None:
        seen.append((start, end, ctypes.string_at(start, 4), in_file(start)))

    text = b"\x1f\x20\x03\xd5".ljust(1 << 16, b"\0")
    image = mind_mlir.image.image.Image(
        machine, text, len(text), 0, len(text), np.zeros(0, np.uint32), (), ()
    )
    monkeypatch.setattr(loading, "host_machine", lambda: machine)
    monkeypatch.setattr(loading, "_flush", lambda: flush)
    code = Loaded(image)
    assert seen == ([(code.address, code.address + len(text), text[:4], False)] if told else [])


def test_the_library_that_tells_them_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_RUNTIME", "libnone.so.1")
    loading._flush.__wrapped__()(0, 0)
