"""The CMake package and the C example, built and run as a user does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mind_mlir
from examples.digits.forms import SHAPES
from mind_mlir.cmake import directory

ROOT = Path(__file__).parents[1]
CMAKE = shutil.which("cmake")
NINJA = shutil.which("ninja")
TOOLS = ("cmake", "cc", "make")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
needs_cmake = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(doubling C)
find_package(MindMLIR REQUIRED)
mind_mlir_add_library(doubling OBJECT FILE "the program.mind" BINDINGS n=4 THREADS 1)
add_executable(main main.c)
target_link_libraries(main PRIVATE doubling)
"""
PROGRAM = "export fn scaled(x: Tensor<f32, [n]>) -> Tensor<f32, [n]> { x * 2.0 }\n"
MAIN = """\
#include <stdio.h>
#include "doubling.h"
int main(void) {
    const float x[4] = {1, 2, 3, 4};
    float y[4];
    static unsigned char scratch[DOUBLING_SCALED_SCRATCH_BYTES + 64];
    int status = doubling_scaled(x, y, scratch + (64 - (uintptr_t)scratch % 64) % 64);
    printf("%d %g %g %g %g\\n", status, y[0], y[1], y[2], y[3]);
    return status;
}
"""


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def succeed(*command: str | Path) -> str:
    done = run(*command)
    assert done.returncode == 0, done.stdout
    return done.stdout


def configure(source: Path, build: Path, *settings: str) -> None:
    compiler = Path(sys.executable).parent / "mind-mlir"
    given = (f"MindMLIR_DIR={directory()}", f"MindMLIR_EXECUTABLE={compiler}", *settings)
    generator = "Ninja" if NINJA else "Unix Makefiles"
    succeed(str(CMAKE), "-S", source, "-B", build, "-G", generator, *(f"-D{setting}" for setting in given))


@needs_cmake
def test_the_c_program_computes_what_python_does(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    random = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        np.save(weights / f"{name}.npy", random.standard_normal(shape, dtype=np.float32))
    shared = ("BUILD_SHARED_LIBS=ON", f"DIGITS_WEIGHTS={weights}")
    configure(ROOT / "examples" / "c", tmp_path / "build", *shared)
    succeed(str(CMAKE), "--build", tmp_path / "build")
    succeed("ctest", "--test-dir", tmp_path / "build", "--output-on-failure")
    assert re.match(r"\d+ of 1797 digits", (tmp_path / "build" / "scores.txt").read_text(encoding="utf-8"))
    assert (tmp_path / "build" / "scores.f32").stat().st_size == 1797 * 10 * 4


@needs_cmake
def test_a_library_is_made_anew_when_its_program_changes_and_mistakes_are_shown(tmp_path: Path) -> None:
    source, build = tmp_path / "the source", tmp_path / "the build"
    source.mkdir()
    program = source / "the program.mind"
    for name, text in (("CMakeLists.txt", PROJECT), ("main.c", MAIN), (program.name, PROGRAM)):
        (source / name).write_text(text, encoding="utf-8")
    configure(source, build)
    succeed(str(CMAKE), "--build", build)
    assert succeed(build / "main") == "0 2 4 6 8\n"
    assert "Compiling" not in succeed(str(CMAKE), "--build", build)

    program.write_text(PROGRAM.replace("2.0", "3.0"), encoding="utf-8")
    succeed(str(CMAKE), "--build", build)
    assert succeed(build / "main") == "0 3 6 9 12\n"

    program.write_text(PROGRAM.replace("2.0", "y"), encoding="utf-8")
    failed = run(str(CMAKE), "--build", build)
    assert failed.returncode != 0
    assert f"{program}:1:" in failed.stdout
    assert re.search(r"error\[E\d{4}\]", failed.stdout)


def test_the_package_has_the_version_of_the_compiler() -> None:
    text = (directory() / "MindMLIRConfigVersion.cmake").read_text(encoding="utf-8")
    assert f'set(PACKAGE_VERSION "{mind_mlir.__version__}")' in text


def test_the_module_prints_where_the_package_is() -> None:
    found = succeed(sys.executable, "-m", "mind_mlir.cmake").removesuffix(os.linesep)
    assert (Path(found) / "MindMLIRConfig.cmake").is_file()
