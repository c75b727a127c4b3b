"""The optimiser as users see it: its stage, which passes run, and what is said of names that are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli_harness import SUM, findings, invoke, succeed

import mind_mlir
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.optimize import ALL_PASSES, optimize
from mind_mlir.passes.optimize.table import listing
from mind_mlir.tools.cli.optimizer_names import OPTIMIZER_PASSES

TWICE = """func @main(%x: tensor<f32[4]>) -> (tensor<f32[4]>) {
^entry:
  %1 = Exp (%x) : tensor<f32[4]>
  %2 = Exp (%x) : tensor<f32[4]>
  %3 = Mul (%1, %2) : tensor<f32[4]>
  return %3
}
"""
TEXT = """func @main(%x: tensor<f32[4]>) -> (tensor<f32[4]>) {
^entry:
  %1 = Exp (%x) : tensor<f32[4]>
  %2 = Neg (%x) : tensor<f32[4]>
  return %2
}
"""


def test_the_names_for_completion_are_those_of_the_records() -> None:
    assert tuple(each.name for each in ALL_PASSES) == OPTIMIZER_PASSES
    assert len(set(OPTIMIZER_PASSES)) == len(OPTIMIZER_PASSES)


def test_everything_can_be_switched_off() -> None:
    module = mind_mlir.parse(TEXT)  # as it stands: the canonical form has no dead code
    assert optimize(module, OPTIMIZER_PASSES) is module
    assert "Exp" not in str(optimize(module))
    assert optimize(structured_form(module)) == optimize(module)
    text = mind_mlir.compile(module, disabled_passes=["all"]).as_text("optimized")
    assert text == succeed("compile", "-", "--emit=optimized", "--disable-pass=all", stdin=TEXT)
    assert text == succeed("compile", "-", "--emit=structured", stdin=TEXT)


def test_an_observer_sees_what_each_pass_changes() -> None:
    seen: list[tuple[str, bool, bool]] = []
    module = mind_mlir.parse(TEXT)
    optimize(
        module,
        observer=lambda name, old, new: seen.append((name, "Exp" in old(), "Exp" in new())),
        order=["dce"],
    )
    assert seen == [("dce", True, False)]


@pytest.mark.parametrize(("name", "hint"), [("layer", "did you mean 'layers'"), ("q" * 99, "the passes are")])
def test_an_unknown_pass_is_refused_with_a_way_out(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"disabled_passes must be names of passes.*{hint}"):
        mind_mlir.compile(mind_mlir.parse(TEXT), disabled_passes=[name])
    result = invoke("compile", "-", "--disable-pass", name, stdin=TEXT)
    assert (result.exit_code, hint in result.stderr) == (2, True)


def test_passes_are_a_sequence_of_names() -> None:
    with pytest.raises(TypeError, match="disabled_passes"):
        mind_mlir.compile(mind_mlir.parse(TEXT), disabled_passes="dce")


def test_inputs_become_constants(tmp_path: Path) -> None:
    row = np.arange(3, dtype=np.float32)
    np.save(tmp_path / "row.npy", row)
    constant = f"--constant=row={tmp_path / 'row.npy'}"
    text = succeed("compile", "-", "--emit=canonical", constant, stdin=SUM)
    assert text.count("Input") == 1
    out = tmp_path / "out.npy"
    succeed("run", "-", "--input=x=ones", constant, "-o", out, stdin=SUM)
    np.testing.assert_array_equal(np.load(out), [6, 6])
    for wrong, word in (("row", "NAME=FILE.npy"), (f"row={tmp_path / 'none.npy'}", "none.npy")):
        assert word in invoke("compile", "-", "--constant", wrong, stdin=SUM).stderr
    assert findings("compile", "-", constant.replace("row=", "rwo=", 1), stdin=SUM)[0]["code"] == "E6102"


def test_what_passes_change_is_printed() -> None:
    result = invoke("compile", "-", "--emit=optimized", "--print-passes", stdin=TWICE)
    headers = [line for line in result.stderr.splitlines() if line.startswith("// -----//")]
    assert headers == ["// -----// IR before cse //----- //", "// -----// IR after cse //----- //"]
    assert result.stderr.count("Exp") == 3


def test_the_page_lists_the_passes() -> None:
    page = (Path(__file__).parents[3] / "docs" / "optimiser.md").read_text(encoding="utf-8")
    assert listing() in page, f"docs/optimiser.md: the table of passes is\n{listing()}"
