"""`mind-mlir buffers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli_harness import findings, invoke, succeed

if TYPE_CHECKING:
    from pathlib import Path

PRODUCTS = """
%x = Input {name="x"} : tensor<f32[48, 48]>
%a = MatMul (%x, %x) : tensor<f32[48, 48]>
%b = MatMul (%a, %x) : tensor<f32[48, 48]>
outputs: %b
"""


def test_a_table() -> None:
    lines = succeed("buffers", "-", stdin=PRODUCTS).splitlines()
    assert lines[0] == "@main: 1 argument of 9,216 bytes, 1 result of 9,216 bytes"
    assert lines[2].split() == ["slot", "offset", "bytes", "type", "from", "to", "holds"]
    assert any(line.split()[-4:] == ["48x48xf32", "%a", "%b", "%a"] for line in lines[3:])


def test_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    succeed("buffers", "-", "-o", str(path), stdin=PRODUCTS)
    assert path.read_text(encoding="utf-8").startswith("<svg")


def test_only_pictures_are_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.png"
    result = invoke("buffers", "-", "-o", str(path), stdin=PRODUCTS)
    assert result.exit_code == 2
    assert "must end in .svg" in result.stderr
    assert not path.exists()


def test_findings() -> None:
    (found,) = findings("buffers", "-", stdin=PRODUCTS.replace("(%a, %x)", "(%a, %y)"))
    assert found["code"] == "E4001"
    (found,) = findings("buffers", "-", "--func=other", stdin=PRODUCTS)
    assert found["code"] == "E2002"
