"""The same code is made of a program in whatever mode a thread computes; it runs as its caller says."""

from __future__ import annotations

import ctypes
import platform
import struct
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir.support.float_mode import fixed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="sets a register of x86-64")

#: MXCSR: as processes begin, with subnormal numbers as zeros, and rounding towards zero besides.
DEFAULT, FLUSHING, TRUNCATING = 0x1F80, 0x9FC0, 0xFFC0

#: Computes constants in all the ways there are, and leaves the code in a cache.
PROGRAM = """
import ctypes, struct, sys
from ctypes import CDLL, create_string_buffer

def set_mode(mode):
    library, found = CDLL("libm.so.6"), create_string_buffer(64)
    library.fegetenv(found)
    struct.pack_into("<I", found, 28, mode)
    library.fesetenv(found)

when, mode, cache = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if when == "before":  # as where another library has been loaded first
    set_mode(mode)
import numpy as np
import mind_mlir
tiny, third = np.array([1e-20, 3.0], np.float32), np.array([1.0, 3.0])
subnormal = np.array([1, 3], np.int32).view(np.float32)
if when == "after":
    set_mode(mode)

def compiled(module, **given):
    mind_mlir.compile(module, cache=cache, **given)

core = '''%0 = Input {{name="x"}} : tensor<{0}[2]>
%1 = Input {{name="w"}} : tensor<{0}[2]>
%2 = {1} : tensor<{0}[2]>
%3 = Add (%0, %2) : tensor<{0}[2]>
outputs: %3
'''
compiled(mind_mlir.parse(core.format("f32", "Mul (%1, %1)"), format="core"), constants={"w": tiny})
compiled(mind_mlir.parse(core.format("f64", "Reciprocal (%1)"), format="core"), constants={"w": third})
compiled(mind_mlir.parse('''%0 = Input {name="x"} : tensor<f32[]>
%1 = ConstF32 {value=1e-42} : tensor<f32[]>
%2 = ConstF32 {value=1e-20} : tensor<f32[]>
%3 = Mul (%2, %2) : tensor<f32[]>
%4 = Exp (%2) : tensor<f32[]>
%5 = Add (%0, %1) : tensor<f32[]>
%6 = Add (%5, %3) : tensor<f32[]>
%7 = Mul (%6, %4) : tensor<f32[]>
outputs: %7
''', format="core"))
compiled(mind_mlir.parse("fn main(x: Tensor<f32,[2]>) -> Tensor<f32,[2]> { x + 1e-42 }", format="mind"))

@mind_mlir.jit(cache=cache)
def traced(x):
    return (x + 1e-42) * 0.1 + subnormal

traced.lower(np.zeros(2, np.float32)).compile()
"""


def entries(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.code")}


def made(directory: Path, when: str, mode: int) -> dict[str, bytes]:
    command = [sys.executable, "-c", PROGRAM, when, str(mode), str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return entries(directory)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    found = made(tmp_path_factory.mktemp("expected"), "before", DEFAULT)
    assert len(found) >= 5
    return found


@pytest.mark.parametrize(("when", "mode"), [("before", TRUNCATING), ("after", FLUSHING)])
def test_what_is_kept_does_not_depend_on_it(
    expected: dict[str, bytes], tmp_path: Path, when: str, mode: int
) -> None:
    assert made(tmp_path, when, mode) == expected


def _environment() -> ctypes.Array[ctypes.c_char]:
    found = ctypes.create_string_buffer(64)
    ctypes.CDLL("libm.so.6").fegetenv(found)
    return found


def _mode() -> int:
    (found,) = struct.unpack_from("<I", _environment(), 28)
    return int(found)


@contextmanager
def mode(value: int) -> Iterator[None]:
    before = _environment()
    found = ctypes.create_string_buffer(before.raw, 64)
    struct.pack_into("<I", found, 28, value)
    ctypes.CDLL("libm.so.6").fesetenv(found)
    try:
        yield
    finally:
        ctypes.CDLL("libm.so.6").fesetenv(before)


def test_it_is_the_callers_again_afterwards_whatever_happens() -> None:
    with mode(TRUNCATING):
        with fixed():
            assert _mode() & 0xFFC0 == DEFAULT
        assert _mode() & 0xFFC0 == TRUNCATING
        with pytest.raises(mind_mlir.ParseError):
            mind_mlir.parse("%0 = ", format="core")
        assert _mode() & 0xFFC0 == TRUNCATING


def test_compiled_code_follows_its_caller() -> None:
    module = mind_mlir.parse(
        '%0 = Input {name="x"} : tensor<f32[4]>\n%1 = Mul (%0, %0) : tensor<f32[4]>\noutputs: %1\n',
        format="core",
    )
    x = np.full(4, 1e-20, np.float32)
    with mode(FLUSHING):
        run = mind_mlir.compile(module, cache=False)
        (flushed,) = run(x)
    assert flushed.tobytes() == bytes(16)
    assert (run(x)[0] > 0).all()
