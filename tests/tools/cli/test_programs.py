"""PTIR programs on the command line: read wherever Core IR is, and converted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cli_harness import SUM, findings, invoke, succeed

import mind_mlir
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType
from mind_mlir.languages.ptir import dumps
from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program, TupleElement, ValueRef

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir.ir.types import ValueType

MUL = Operation("ElementwiseBinary", "Mul")


def program(type_: TensorType, result: ValueType | None = None) -> Program:
    body = (Instruction(2, MUL, (ValueRef(0), ValueRef(1)), type_),)
    return Program((Function("main", (type_, type_), (0, 1), body, (result or type_,), (2,)),))


STATIC = program(TensorType(DType.F32, (2,)))
SYMBOLIC = program(TensorType(DType.F32, (SymbolicDim("B"),)))
WRONG = program(TensorType(DType.F32, (2,)), TensorType(DType.F32, (3,)))


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name, each in (("static", STATIC), ("symbolic", SYMBOLIC), ("wrong", WRONG)):
        found[name] = tmp_path / f"{name}.ptir.json"
        found[name].write_text(dumps(each))
    return found


def test_programs_are_checked(paths: dict[str, Path]) -> None:
    succeed("check", paths["static"])
    succeed("check", paths["symbolic"])
    assert [each["code"] for each in findings("check", paths["wrong"])] == ["E4115"]


def test_programs_run(paths: dict[str, Path]) -> None:
    given = ("--input", "arg0=[1, 2]", "--input", "arg1=[3, 4]")
    assert "[3., 8.]" in succeed("run", paths["static"], *given)
    assert "[3., 8.]" in succeed("run", paths["static"], "--interpret", *given)
    assert succeed("run", paths["static"], "--check", "--input", "random").startswith("OK")
    assert "[3., 8.]" in succeed("run", "-", *given, stdin=dumps(STATIC))
    assert "[3., 8.]" in succeed("run", paths["symbolic"], "--bind", "B=2", *given)


def test_inputs_bind_symbols(paths: dict[str, Path], tmp_path: Path) -> None:
    given = ("--input", "arg0=[1, 2]", "--input", "arg1=[3, 4]")
    assert "[3., 8.]" in succeed("run", paths["symbolic"], *given)
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], np.float32))
    found = succeed("run", paths["symbolic"], "--input", f"arg1={tmp_path / 'x.npy'}", "--input", "ones")
    assert "[1., 2., 3.]" in found
    np.savez(tmp_path / "x.npz", arg0=np.array([1, 2, 3, 4], np.float32))
    found = succeed("run", paths["symbolic"], "--input", tmp_path / "x.npz", "--input", "arg1=ones")
    assert "[1., 2., 3., 4.]" in found
    assert [each["code"] for each in findings("run", paths["symbolic"], "--input", "random")] == ["E4303"]
    (wrong,) = findings("run", paths["symbolic"], "--input", "arg0=[[1, 2]]", "--input", "arg1=ones")
    assert (wrong["code"], wrong["message"]) == ("E6104", "argument 'arg0' has shape [1, 2], expected [?B]")
    for value, code in (("nofile.npy", "E6105"), ("[[1], [2, 3]]", "E6103")):
        unread = findings("run", paths["symbolic"], "--input", f"arg0={value}", "--input", "arg1=ones")
        assert [each["code"] for each in unread] == [code]
    apart = ("--input", "arg0=[1, 2]", "--input", "arg1=[3, 4, 5]")
    assert [each["code"] for each in findings("run", paths["symbolic"], *apart)] == ["E6104"]


def test_elements_of_tuples_are_inputs_of_their_own(tmp_path: Path) -> None:
    pair = TupleType((TensorType(DType.F32, (2,)),) * 2)
    body = (Instruction(1, MUL, (TupleElement(0, 0), TupleElement(0, 1)), pair.elements[0]),)
    path = tmp_path / "pair.ptir.json"
    path.write_text(dumps(Program((Function("main", (pair,), (0,), body, (pair.elements[0],), (1,)),))))
    found = succeed("run", path, "--input", "arg0[0]=[1, 2]", "--input", "arg0[1]=[3, 4]")
    assert "[3., 8.]" in found


def test_programs_are_compiled_and_differentiated(paths: dict[str, Path]) -> None:
    assert "linalg.mul" in succeed("compile", paths["static"], "--emit=linalg")
    assert "tensor<5xf32>" in succeed("compile", paths["symbolic"], "--bind", "B=5", "--emit=mind")
    assert "Mul (%arg0" in succeed("grad", paths["static"], "--wrt", "arg1")


def test_a_symbol_that_is_not_bound_is_named(paths: dict[str, Path]) -> None:
    (found,) = findings("compile", paths["symbolic"])
    assert found["code"] == "E4303"
    assert found["span"] is not None
    assert "--bind B=4" in found["help"]
    for wrong in ("C=3", "B=-1", "B", "B=x"):
        assert invoke("compile", paths["symbolic"], "--bind", wrong).exit_code == 2
    assert invoke("compile", "-", "--bind", "B=1", stdin=SUM).exit_code == 2


def test_symbols_are_called_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "wrong.ptir"
    path.write_text("func @main(%x: tensor<f32, ?B>) -> tensor<f32, ?Bx2> {\n  return %x\n}\n")
    (found,) = findings("check", path)
    assert found["message"] == (
        "result 0 of @main is declared as tensor<f32[?B, 2]>, but %x is a tensor<f32[?B]>"
    )
    assert found["span"]["line"] == 1


def test_there_and_back(tmp_path: Path) -> None:
    core, said, again = (tmp_path / name for name in ("a.ir", "b.ptir.json", "c.ir"))
    core.write_text(
        SUM.replace("Sum (%2) {axes=[1], keepdims=false} : tensor<f32[2]>", "Neg (%2) : tensor<f32[2, 3]>")
    )
    succeed("convert", core, "-o", said)
    assert json.loads(said.read_text())["spec_version"] == "ptir.v0.4"
    succeed("convert", said, "-o", again)
    x, row = np.ones((2, 3), np.float32), np.array([1, 2, 3], np.float32)
    expected = mind_mlir.compile(mind_mlir.load(core))(x, row)
    for path in (said, again):
        (found,) = mind_mlir.compile(mind_mlir.load(path))(x, row)
        np.testing.assert_array_equal(found, expected[0])
    assert json.loads(succeed("convert", again, "--to=json"))["functions"]


def test_what_the_other_format_cannot_say_is_reported(tmp_path: Path, paths: dict[str, Path]) -> None:
    path = tmp_path / "not.ptir"
    negated = "%y = neg %x -> tensor<bf16, 4>"
    path.write_text(f"func @main(%x: tensor<bf16, 4>) -> tensor<bf16, 4> {{\n  {negated}\n  return %y\n}}\n")
    assert {each["code"] for each in findings("convert", path, "--to=core")} == {"E7001"}
    assert [each["code"] for each in findings("convert", paths["symbolic"], "--to=core")] == ["E4303"]
    assert "tensor<f32[3]>" in succeed("convert", paths["symbolic"], "--to=core", "--bind", "B=3")
    assert invoke("convert", paths["static"]).exit_code == 2
