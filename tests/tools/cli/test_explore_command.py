"""`mind-mlir explore`."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_harness import findings, invoke, succeed

from mind_mlir.profiling import measured
from mind_mlir.profiling.limits import Limits

EXAMPLES = Path(__file__).parents[3] / "examples"
SOFTMAX = str(EXAMPLES / "softmax.ir")
BRANCH = str(EXAMPLES / "control" / "branch.ir")
OPEN = "export fn main(x: Tensor<f32, [n]>) -> Tensor<f32, [n]> {\n    exp(x) * 2.0\n}\n"


def test_a_page(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    said = succeed("explore", SOFTMAX, "-o", str(path))
    page = path.read_text(encoding="utf-8")
    assert said.startswith(f"{path}: {len(page.encode()):,} bytes\n  {SOFTMAX}: ")
    assert page.startswith("<!DOCTYPE html>")
    assert "vfmadd" in page
    assert "%exp = Exp (%below)" in page
    succeed("explore", SOFTMAX, "-o", str(tmp_path / "again.html"))
    assert (tmp_path / "again.html").read_bytes() == path.read_bytes(), "the same program, the same page"


def test_where_a_page_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert succeed("explore", BRANCH).startswith("branch.explorer.html: ")
    assert succeed("explore", "-", "--bind", "n=40", stdin=OPEN).startswith("program.explorer.html: ")
    assert {each.name for each in tmp_path.iterdir()} == {"branch.explorer.html", "program.explorer.html"}
    assert succeed("explore", BRANCH, "-o", "-").startswith("<!DOCTYPE html>")


def test_what_is_compared(tmp_path: Path) -> None:
    said = succeed(
        "explore", BRANCH, "--target=sse", "--target=avx2", "--against", SOFTMAX, "-o", str(tmp_path / "a")
    )
    titles = [line.split(": ")[0].strip() for line in said.splitlines()[1:]]
    assert titles == [BRANCH, BRANCH, SOFTMAX, SOFTMAX]


def test_a_gradient_and_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Measuring these takes seconds.
    monkeypatch.setattr(measured, "machine_limits", lambda: Limits(1, 1e9, ((1 << 62, 1e9),)))
    path = tmp_path / "page.html"
    succeed(
        "explore",
        str(EXAMPLES / "mlp_loss.ir"),
        "--grad",
        "--wrt=w1",
        "--profile",
        "--timing",
        "-o",
        str(path),
    )
    page = path.read_text(encoding="utf-8")
    assert '"stage":"gradient"' in page
    assert '"timeline":[]' not in page
    assert '"timeline":[[' in page


def test_how_much_is_traced() -> None:
    first, second, *_ = succeed("explore", SOFTMAX, "--count", "--target=avx2").splitlines()
    assert first.startswith(f"{SOFTMAX}: 9")
    assert "% are traced; avx2: 16 vector registers of 32 bytes" in first
    assert second.startswith("  Of ")


def test_programs_that_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    wrong = '%x = Input {name="x"} : tensor<f32[4]>\n%y = Exp (%x) : tensor<f32[5]>\noutputs: %y\n'
    found = findings("explore", "-", "-o", str(path), stdin=wrong)
    assert found
    assert all(each["span"]["file"] == "<stdin>" for each in found)
    assert not path.exists()
    result = invoke("explore", str(tmp_path / "nothing.ir"))
    assert result.exit_code == 1
    result = invoke("explore", "-", stdin=OPEN)
    assert "dimension n of main is not bound" in result.stderr
    result = invoke("explore", SOFTMAX, "--grad", "--wrt=y", "--count")
    assert result.exit_code == 1
    result = invoke("explore", SOFTMAX, "-o", str(tmp_path / "no" / "folder.html"))
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--wrt=x",), "--wrt is about --grad"),
        (("--extensions",), "--extensions is about --grad"),
        (("--input=x=ones",), "--input is about --profile"),
        (("--count", "-o", "a.html"), "--count writes no page"),
        (("--count", "--profile"), "--count writes no page"),
        (("--target=z80",), "'z80' is not one of"),
    ],
)
def test_options_that_do_not_fit(options: tuple[str, ...], words: str) -> None:
    result = invoke("explore", SOFTMAX, *options)
    assert result.exit_code == 2
    assert words in result.stderr


def test_targets_are_told_apart(tmp_path: Path) -> None:
    page = str(tmp_path / "page.html")
    said = succeed("explore", BRANCH, "--target=avx2", "--target=sse", "-o", page).splitlines()
    assert [line.partition("traced")[2].partition(":")[0] for line in said[1:]] == ["; avx2", "; sse"]
    assert succeed("explore", BRANCH, "--target=avx2", "-o", page).splitlines()[1].endswith("are traced")
