"""`mind-mlir ops`, and the files that are generated from the operation records."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli_harness import BIN, invoke, succeed

from mind_mlir import parse, verify
from mind_mlir.diagnostics.codes import CATALOGUE
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.profiles import CORE_V1, PTIR
from mind_mlir.ops.registry import all_ops, by_opcode

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef

ROOT = Path(__file__).parents[3]
IRDL = ROOT / "dialect" / "mind.irdl.mlir"
#: Dtypes that are those of PTIR alone.
DTYPE = re.compile(rf"\b({'|'.join(dtype.core_name for dtype in {*PTIR.dtypes} - {*CORE_V1.dtypes})})\b")
OPCODES = [record.opcode for record in all_ops()]


def test_the_list_has_every_operation_and_every_choice() -> None:
    text = succeed("ops")
    heads = [line.split()[0] for line in text.splitlines() if not line.startswith(" ")]
    assert heads == OPCODES
    words = " ".join(text.split())
    for record in all_ops():
        for choice in record.choices:
            assert f"- {choice}" in words


def test_json_says_everything() -> None:
    data = json.loads(succeed("ops", "--json"))
    assert [entry["opcode"] for entry in data] == OPCODES
    by_opcode = {entry["opcode"]: entry for entry in data}
    total = by_opcode["Sum"]
    assert total["signature"] == "Sum (%input) {axes=<list of integers>, keepdims=<bool>}"
    assert [(a["name"], a["default"]) for a in total["attributes"]] == [("axes", "[]"), ("keepdims", "false")]
    assert total["operands"][0]["dtypes"] == ["i32", "i64", "f32", "f64"]
    assert total["differentiable"]
    assert not total["extension"]
    assert by_opcode["Compare"]["extension"]
    assert not by_opcode["Compare"]["differentiable"]
    for entry in data:
        assert entry["summary"]
        assert entry["description"]
        assert entry["spec"]
        assert entry["examples"]


@pytest.mark.parametrize("record", all_ops(), ids=lambda record: record.opcode)
def test_printed_examples_are_programs(record: OpDef) -> None:
    (entry,) = json.loads(succeed("ops", "--json", record.opcode))
    for example in entry["examples"]:
        text = example["text"]
        if "func @main" not in text:
            last = text.splitlines()[-1].partition(" ")[0]
            text += f"\noutputs: {last}\n"
        module = parse(text)
        if DTYPE.search(text):  # functions over dtypes that the text's profile lacks
            module = replace(module, profile=PTIR.name)
        module = verify(module)
        blocks = [block for function in module.functions for block in function.blocks]
        assert entry["opcode"] in {operation.opcode for operation in operations_of(blocks)}


def test_an_operation_by_any_of_its_names() -> None:
    assert succeed("ops", "MatMul") == succeed("ops", "matmul") == succeed("ops", "mind.matmul")


def test_an_unknown_operation_is_a_usage_error_that_names_the_nearest() -> None:
    result = invoke("ops", "Matmull")
    assert result.exit_code == 2
    assert "did you mean MatMul" in result.stderr


def test_irdl_is_of_the_whole_dialect() -> None:
    assert invoke("ops", "--irdl", "Add").exit_code == 2


def test_the_checked_in_reference_is_current() -> None:
    assert succeed("ops", "--markdown") == (ROOT / "dialect" / "ops.md").read_text(encoding="utf-8"), (
        "write it anew: mind-mlir ops --markdown -o dialect/ops.md"
    )


def test_the_table_of_dtypes_is_the_one_of_the_records() -> None:
    page = (ROOT / "docs" / "ptir-operations.md").read_text(encoding="utf-8")
    assert succeed("ops", "--dtypes") == page, (
        "write it anew: mind-mlir ops --dtypes -o docs/ptir-operations.md"
    )


def test_the_opcodes_that_completion_knows_are_those_of_the_records() -> None:
    assert list(by_opcode()) == OPCODES


def test_what_the_table_of_dtypes_refuses_has_a_reason() -> None:
    table, _, legend = succeed("ops", "--dtypes").partition("Why not:")
    reasons = dict(re.findall(r"^(\d+)\. (.+)$", legend, re.MULTILINE))
    cells = [
        cell.strip() for row in re.findall(r"^\| `.*$", table, re.MULTILINE) for cell in row.split("|")[2:-1]
    ]
    refused = [re.fullmatch(r"(never|E\d{4}) \((\d+)\)", cell) for cell in cells if cell != "yes"]
    assert all(match and (match[1] == "never" or match[1] in CATALOGUE) for match in refused)
    assert {match[2] for match in refused if match} == reasons.keys()


def test_the_checked_in_irdl_is_current() -> None:
    assert succeed("ops", "--irdl") == IRDL.read_text(encoding="utf-8"), (
        "write it anew: mind-mlir ops --irdl -o dialect/mind.irdl.mlir"
    )


def test_every_operation_has_a_lit_test() -> None:
    files = {path.stem for path in (ROOT / "lit_tests" / "ops").glob("*.*ir")}
    assert files == {record.mnemonic for record in all_ops()}


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("**/*.ir")), ids=lambda path: path.name)
def test_other_tools_read_our_dumps_with_the_irdl(path: Path, tmp_path: Path) -> None:
    dump = tmp_path / "dump.mlir"
    succeed("compile", path, "--emit=mind", "-o", dump)
    done = _mlir_opt(dump)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == dump.read_text().strip()


def test_the_irdl_rejects_what_is_not_of_the_dialect(tmp_path: Path) -> None:
    dump = tmp_path / "dump.mlir"
    text = """\
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = "mind.neg"({}) : ({}) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}}
"""
    dump.write_text(text.format("%x", "tensor<2xf32>"))
    assert _mlir_opt(dump).returncode == 0
    dump.write_text(text.format("%x, %x", "tensor<2xf32>, tensor<2xf32>"))
    assert "operand" in _mlir_opt(dump).stderr


def _mlir_opt(dump: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "torch-mlir-opt", f"--irdl-file={IRDL}", dump], capture_output=True, text=True, check=False
    )
