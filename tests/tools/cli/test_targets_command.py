"""`mind-mlir targets` and `legality`, and `convert --target`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli_harness import SUM, findings, invoke, succeed

from mind_mlir.conversion import ConversionTarget, LegalityTable, OperationRule, registry
from mind_mlir.diagnostics import Diagnostic
from mind_mlir.ir.types import DType
from mind_mlir.tools.cli.completion import complete_conversion_target

if TYPE_CHECKING:
    from pathlib import Path

ROWS = """\
func @main(%x: tensor<f32, ?Bx2>) -> tensor<f32, ?B> {
  %s = reduce_sum %x axes[1] keepdims[false] -> tensor<f32, ?B>
  return %s
}
"""
SUMS = ConversionTarget(
    name="sums",
    summary="additions alone",
    suffix=".bin",
    legality=LegalityTable(
        operations={"Add": OperationRule((DType.F32, DType.F64)), "Sum": OperationRule((), "no loops yet")},
        dtypes=(DType.F32, DType.F64, DType.I1),
        max_rank=2,
        calls=False,
    ),
    convert=lambda module: f"{module}".encode(),
)


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {"sums": SUMS})


def test_targets() -> None:
    paragraphs = succeed("targets").split("\n\n")
    assert [each.split(":")[0].strip() for each in paragraphs] == [
        f"{target.name} ({target.suffix})" for target in registry.list_conversion_targets()
    ]


@pytest.mark.usefixtures("sums")
def test_a_target() -> None:
    lines = succeed("targets", "sums").splitlines()
    assert lines[0] == "sums (.bin): additions alone"
    assert lines[1].startswith("  operations  1 of ")
    assert "  dtypes      f32, f64, i1" in lines
    assert "  not taken   symbolic dimensions, calls, more than 2 dimensions" in lines
    rows = dict(line.split(maxsplit=1) for line in lines[lines.index("") + 1 :])
    assert rows["Add"] == "f32, f64"
    assert rows["Sum"] == "not taken: no loops yet"
    assert rows["Mul"] == "not taken"


@pytest.mark.usefixtures("sums")
def test_legality() -> None:
    (found,) = findings("legality", "-", "--target=sums", stdin=SUM)
    assert (found["code"], found["span"]["line"], found["help"]) == ("E7201", 4, "no loops yet")
    assert succeed("legality", "-", "--target=mind", stdin=SUM) == ""
    result = invoke("legality", "-", "--target=sums", stdin=SUM)
    assert result.stdout == ""
    assert "error[E7201]: target sums does not take %3 = Sum" in result.stderr


def test_legality_of_what_is_wrong_or_open() -> None:
    (found,) = findings("legality", "-", "--target=mind", stdin=SUM.replace("(%0, %1)", "(%0, %7)"))
    assert found["code"] == "E4001"
    (found,) = findings("legality", "-", "--target=llvm", stdin=ROWS)
    assert found["code"] == "E7203"
    assert succeed("legality", "-", "--target=llvm", "--bind=B=3", stdin=ROWS) == ""


@pytest.mark.usefixtures("sums")
def test_convert(tmp_path: Path) -> None:
    text = succeed("convert", "-", "--target=linalg", "--bind=B=3", stdin=ROWS)
    assert "func.func @main__B3(%arg0: tensor<3x2xf32>" in text
    (found,) = findings("convert", "-", "--target=sums", stdin=SUM)
    assert found["code"] == "E7201"
    add = SUM.replace("outputs: %3", "outputs: %2").replace("%3 = Sum", "# ")
    path = tmp_path / "sum.bin"
    assert succeed("convert", "-", "--target=sums", "-o", path, stdin=add) == ""
    assert path.read_bytes() == succeed("convert", "-", "--target=sums", stdin=add).encode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--target=mind", "--to=core"), "--to and --target exclude one another"),
        (("--target=minds",), "--target must be one of"),
        ((), "say which format to write"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], words: str) -> None:
    result = invoke("convert", "-", *arguments, stdin=SUM)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_target_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Diagnostic("E7204", "conversion target 'x' of package y cannot be used: no license")
    monkeypatch.setattr(registry, "_plug_ins", lambda: {"x": [None]})
    monkeypatch.setattr(registry, "_plugged", lambda _: broken)
    result = invoke("targets")
    assert result.exit_code == 0
    assert "warning[E7204]: conversion target 'x' of package y" in result.stderr
    (found,) = findings("legality", "-", "--target=x", stdin=SUM)
    assert found["code"] == "E7204"
    assert succeed("legality", "-", "--target=mind", stdin=SUM) == ""


def test_completion() -> None:
    found = complete_conversion_target(None, None, "l")  # type: ignore[arg-type]  # click's, which are not read
    assert found == ["linalg", "llvm"]
