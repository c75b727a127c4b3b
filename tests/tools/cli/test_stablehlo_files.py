"""The commands take StableHLO, too: by the name of the file, or by how the text begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli_harness import invoke, succeed

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
// as jax writes it
module @jit_f {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""


@pytest.mark.parametrize("name", ["f.mlir", "f.stablehlo", "f.txt"])
def test_stablehlo_is_run(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(TEXT)
    assert "[2., 6.]" in succeed("run", str(path), "--input", "arg0=[1,3]")


def test_stablehlo_is_checked_and_converted(tmp_path: Path) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(TEXT)
    assert succeed("check", str(path)) == ""
    assert "Add (" in succeed("convert", str(path), "--to", "core")
    path.write_text(TEXT.replace("%arg0, %arg0", "%arg0, %arg1"))
    found = invoke("check", str(path))
    assert found.exit_code == 1
    assert "E1101" in found.stderr
    assert "f.mlir:5:" in found.stderr
