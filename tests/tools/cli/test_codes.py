"""Every code of the catalogue's shape, verification and autodiff parts, as the command line reports it.

The catalogue lists, for each code, the facts that a diagnostic carries: they are in ``context``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from cli_harness import findings, invoke

from mind_mlir.ops import registry
from mind_mlir.passes import backward

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ops.opdef import OpDef

X = '%0 = Input {name="x"} : tensor<f32[2, 3]>'
IMAGE = '%0 = Input {name="x"} : tensor<f32[1, 5, 5, 2]>'


class Case(NamedTuple):
    code: str
    #: The program up to its ``outputs`` line; the finding is in its last statement.
    program: str
    #: The column of the finding.
    column: int
    #: Facts that must be in the context.
    context: dict[str, Any]
    message: str = ""


CASES = [
    Case(
        "E2004",
        f'{X}\n%1 = Input {{name="i"}} : tensor<i32[3]>\n%2 = Add (%0, %1) : tensor<f32[2, 3]>',
        15,
        {"operation": "Add", "left": "f32", "right": "i32"},
        "Dtype mismatch",
    ),
    Case(
        "E2005",
        '%0 = Input {name="i"} : tensor<i64[3]>\n%1 = Log (%0) : tensor<i64[3]>',
        11,
        {"operation": "Log", "found": "i64", "allowed": "f32, f64"},
    ),
    Case(
        "E3001",
        f'{X}\n%1 = Input {{name="y"}} : tensor<f32[2, 4]>\n%2 = Mul (%0, %1) : tensor<f32[2, 3]>',
        6,
        {"operation": "Mul", "left": [2, 3], "right": [2, 4], "dimension": 1, "extents": [3, 4]},
        "Broadcasting failed",
    ),
    Case(
        "E3002",
        f'{X}\n%1 = Input {{name="v"}} : tensor<f32[3]>\n%2 = MatMul (%0, %1) : tensor<f32[2]>',
        18,
        {"operation": "MatMul", "found": 1},
    ),
    Case(
        "E3003",
        f"{X}\n%1 = MatMul (%0, %0) : tensor<f32[2, 3]>",
        6,
        {"operation": "MatMul", "extents": [3, 2]},
    ),
    Case(
        "E3004",
        f"{X}\n%1 = Sum (%0) {{axes=[2], keepdims=false}} : tensor<f32[2]>",
        16,
        {"operation": "Sum", "axis": 2, "rank": 2},
    ),
    Case(
        "E3005",
        f"{X}\n%1 = Mean (%0) {{axes=[1, 1], keepdims=false}} : tensor<f32[2]>",
        17,
        {"operation": "Mean", "axes": [1, 1], "axis": 1},
    ),
    Case(
        "E3006",
        f"{X}\n%1 = Reshape (%0) {{new_shape=[0, 6]}} : tensor<f32[0, 6]>",
        20,
        {"shape": [0, 6], "index": 0},
    ),
    Case(
        "E3007",
        f"{X}\n%1 = Reshape (%0) {{new_shape=[4, 2]}} : tensor<f32[4, 2]>",
        20,
        {"shapes": [[2, 3], [4, 2]], "counts": [6, 8]},
        "lement count mismatch",
    ),
    Case(
        "E3008",
        f"{X}\n%1 = Transpose (%0) {{permutation=[0, 0]}} : tensor<f32[2, 2]>",
        22,
        {"permutation": [0, 0], "rank": 2},
    ),
    Case(
        "E3009",
        f"{X}\n%1 = Squeeze (%0) {{axes=[1]}} : tensor<f32[2]>",
        20,
        {"axis": 1, "extent": 3, "shape": [2, 3]},
    ),
    Case(
        "E3010",
        "%0 = ConstTensor {dtype=f32, shape=[3], value=[1.0, 2.0]} : tensor<f32[3]>",
        41,
        {"declared": [3], "found": [2]},
    ),
    Case(
        "E4001",
        f"{X}\n%1 = Add (%0, %9) : tensor<f32[2, 3]>",
        15,
        {"instruction": 1, "operand": 9, "definition": None},
    ),
    Case(
        "E4002",
        f'{X}\n%0 = Input {{name="y"}} : tensor<f32[3]>',
        1,
        {"id": 0, "places": ["<stdin>:1:1", "<stdin>:2:1"]},
    ),
    Case("E4004", '%0 = Input {name=""} : tensor<f32[3]>', 13, {}),
    Case("E4005", "%0 = ConstI64 {value=1.5} : tensor<i64[]>", 22, {"id": 0, "declared": "tensor<i64[]>"}),
    Case(
        "E4006",
        f"{X}\n%1 = Index (%0) {{indices=[1]}} : tensor<f32[]>",
        18,
        {"rank": 2, "length": 1},
    ),
    Case(
        "E4007",
        f"{X}\n%1 = Slice (%0) {{ends=[1], starts=[0, 0], steps=[1, 1]}} : tensor<f32[1, 3]>",
        18,
        {"rank": 2},
    ),
    Case(
        "E4008",
        f"{X}\n%1 = Slice (%0) {{ends=[1, 2], starts=[0, 0], steps=[1, 0]}} : tensor<f32[1, 3]>",
        46,
        {"dimension": 1},
    ),
    Case(
        "E4009",
        f'{IMAGE}\n%1 = Input {{name="w"}} : tensor<f32[3, 3, 3, 4]>\n'
        "%2 = Conv2d (%0, %1) {padding=Valid, strides=[1, 1]} : tensor<f32[1, 3, 3, 4]>",
        6,
        {"channels": [2, 3]},
    ),
    Case(
        "E4010",
        f'{IMAGE}\n%1 = Input {{name="w"}} : tensor<f32[3, 3, 2, 4]>\n'
        "%2 = Conv2d (%0, %1) {padding=Valid, strides=[1, 0]} : tensor<f32[1, 3, 3, 4]>",
        38,
        {"strides": [1, 0]},
    ),
    Case(
        "E4011",
        f'{X}\n%1 = Input {{name="i"}} : tensor<f32[4]>\n%2 = Gather (%0, %1) : tensor<f32[4, 3]>',
        18,
        {"dtype": "f32"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])
def test_a_wrong_program(case: Case) -> None:
    text = f"{case.program}\noutputs: %0\n"
    (found,) = findings("check", "-", stdin=text)
    assert found["code"] == case.code
    assert found["severity"] == "error"
    assert case.message in found["message"]
    span = found["span"]
    assert (span["file"], span["line"]) == ("<stdin>", case.program.count("\n") + 1)
    assert span["column"] == case.column
    assert case.context.items() <= found["context"].items()


def test_an_output_that_does_not_exist() -> None:
    (found,) = findings("check", "-", stdin=f"{X}\noutputs: %0, %7\n")
    assert found["code"] == "E4003"
    assert found["span"]["line"] == 2
    assert found["context"]["id"] == 7


def test_all_findings_come_in_one_run() -> None:
    text = "\n".join(
        (
            X,
            "%1 = Squeeze (%0) {axes=[1]} : tensor<f32[2]>",
            "%2 = Sum (%0) {axes=[2], keepdims=false} : tensor<f32[2]>",
            "outputs: %9",
        )
    )
    assert [found["code"] for found in findings("check", "-", stdin=text)] == ["E3009", "E3004", "E4003"]


@pytest.mark.parametrize("command", ["run", "compile", "grad"])
def test_every_command_reports_them(command: str) -> None:
    (found,) = findings(command, "-", stdin=f"{X}\n%1 = MatMul (%0, %0) : tensor<f32[2, 3]>\noutputs: %1\n")
    assert found["code"] == "E3003"


CONV = f"""\
{IMAGE}
%1 = Input {{name="w"}} : tensor<f32[3, 3, 2, 4]>
%2 = Conv2d (%0, %1) {{padding=Valid, strides=[1, 1]}} : tensor<f32[1, 3, 3, 4]>
outputs: %2
"""
EXP = f"{X}\n%1 = Exp (%0) : tensor<f32[2, 3]>\noutputs: %1\n"


def test_an_operation_without_derivative() -> None:
    (found,) = findings("grad", "-", stdin=CONV)
    assert found["code"] == "E5001"
    assert "UnsupportedOp" in found["message"]
    assert found["context"] == {"operation": "Conv2d", "value": 2}
    assert found["span"]["line"] == 3
    assert invoke("grad", "-", "--extensions", stdin=CONV).exit_code == 0


def test_an_input_that_is_not_differentiable() -> None:
    (found,) = findings("grad", "-", "--wrt=i", stdin='%0 = Input {name="i"} : tensor<i64[2]>\noutputs: %0\n')
    assert found["code"] == "E5005"
    assert found["span"]["line"] == 1


# No program reaches E5002 to E5004, because the derivative rules are right: wrong rules stand in for them.


@pytest.mark.parametrize(
    ("rule", "code", "name"),
    [
        (lambda c: (c.emit("Add", c.cotangent, c.cotangent, axes=(0,)),), "E5002", "Verification"),
        (lambda c: (c.emit("Sum", c.cotangent, axes=(7,), keepdims=False),), "E5003", "InvalidAxis"),
        (lambda c: (c.emit("Reshape", c.cotangent, new_shape=(5,)),), "E5004", "UnsupportedShape"),
    ],
)
def test_a_derivative_rule_that_is_wrong(
    rule: Callable[[Any], Any], code: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = dict(registry.by_opcode())
    exp: OpDef = records["Exp"]
    records["Exp"] = replace(exp, derivative=rule)
    monkeypatch.setattr(backward, "by_opcode", lambda: records)
    (found,) = findings("grad", "-", stdin=EXP)
    assert found["code"] == code
    assert found["message"].startswith(f"{name}: ")
    assert found["span"]["line"] == 2
