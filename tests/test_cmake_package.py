"""The CMake package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mind_mlir
from mind_mlir.cmake import directory


def test_the_package_has_the_version_of_the_compiler() -> None:
    text = (directory() / "MindMLIRConfigVersion.cmake").read_text(encoding="utf-8")
    assert f'set(PACKAGE_VERSION "{mind_mlir.__version__}")' in text


def test_the_module_prints_where_the_package_is() -> None:
    command = [sys.executable, "-m", "mind_mlir.cmake"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.removesuffix("\n")
    assert (Path(found) / "MindMLIRConfig.cmake").is_file()
