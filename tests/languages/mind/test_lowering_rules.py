"""What the surface language becomes (surface.md, "Lowering"; core-ir.md, "Surface language lowering")."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lowered import lowered

import mind_mlir
from mind_mlir import VerificationError

HERE = Path(__file__).parent

#: Operators, and functions that are known without being declared, with the operation that each becomes.
OPERATIONS = {
    "x + x": "Add",
    "x - x": "Sub",
    "x * x": "Mul",
    "-x": "Neg",
    "sum(x, axes=[1])": "Sum",
    "mean(x)": "Mean",
    "reshape(x, [3, 2])": "Reshape",
    "transpose(x, [1, 0])": "Transpose",
    "expand_dims(x, axes=[0])": "ExpandDims",
    "squeeze(x[0:1, 0:1], axes=[0, 1])": "Slice Squeeze",
    "gather(x, i)": "Gather",
    "dot(x[0], x[1])": "Slice Squeeze Slice Squeeze Dot",
    "matmul(x, transpose(x, [1, 0]))": "Transpose MatMul",
    "conv2d(reshape(x, [1, 2, 3, 1]), k, strides=[1, 1], padding=Same)": "Reshape Conv2d",
    "relu(x)": "Relu",
    "neg(x)": "Neg",
    "exp(x)": "Exp",
    "log(x)": "Log",
    "x[1, 2]": "Index",
    "x[:, ::2]": "Slice",
}

#: What is written first is computed first, and of each operator the operands before it.
ORDER = """\
fn twice(x: f32) -> f32 { x * 2.0 }
fn main(unused: bool, x: f32, y: f32) -> f32 {
    let a = exp(y);
    let f = |b| log(b) - x;
    let c = twice(f(a)) * neg(a);
    c - sum([a, 0.5], axes=[0])
}
"""

AGGREGATES = """\
struct Pair { left: Tensor<f32, [2]>, right: (f32, bool) }
fn main(p: Pair, t: (i64, Pair)) -> (f32, Pair) { (p.right.0, t.1) }
"""

LITERALS = """\
let rate: f64 = 0.25;
fn main(x: Tensor<f64, [2]>, n: i32) -> (Tensor<f64, [2]>, i32, f32, i64, bool, Tensor<i32, [1, 2]>) {
    let t: Tensor<i32, [1, 2]> = [[1, -2]];
    let once: f64 = 3.0;
    (x * rate + [1.5, -2.5] * once * once, n + 0x1_0, 1e-3, 1_000, true, t)
}
"""

CONTROL = {
    "if": "if p { x } else { -x }",
    "while": "{ let y = x; while y < 100.0 { y = y * 2.0; } y }",
    "for": "{ let y = x; for i in range(n) { y = y * 2.0; } y }",
    "return": "{ if p { return x; } -x }",
    "call with a branch": "abs_of(x) + abs_of(x)",
}


def opcodes(module: mind_mlir.Module) -> str:
    """Return the operations of a flat module but for its inputs and constants."""
    skipped = ("Input", "ConstTensor")
    return " ".join(each.opcode for each in module.operations if each.opcode not in skipped)


def of_control(body: str) -> str:
    """Return a program whose function ``main`` has a body that branches."""
    return (
        "fn abs_of(x: f32) -> f32 { if x < 0.0 { -x } else { x } }\n"
        f"export fn main(x: f32, p: bool, n: i64) -> f32 {{ {body} }}\n"
    )


@pytest.mark.parametrize("expression", list(OPERATIONS))
def test_operators_and_built_in_functions_become_their_operation(expression: str) -> None:
    text = "Tensor<f32, [2, 3]>, i: Tensor<i64, [4]>, k: Tensor<f32, [1, 1, 1, 1]>"
    module = lowered(f"fn main(x: {text}) -> f32 {{ let y = {expression}; sum(y) }}")
    assert opcodes(module) == f"{OPERATIONS[expression]} Sum"
    mind_mlir.verify(module)


@pytest.mark.parametrize(
    ("expression", "constant"),
    [
        ("zeros([2, 1])", "{dtype=f32, shape=[2, 1], value=[[0.0], [0.0]]}"),
        ("ones([2])", "{dtype=f32, shape=[2], value=[1.0, 1.0]}"),
        ("full([2], 2.5)", "{dtype=f32, shape=[2], value=[2.5, 2.5]}"),
        ("eye(2)", "{dtype=f32, shape=[2, 2], value=[[1.0, 0.0], [0.0, 1.0]]}"),
    ],
)
def test_functions_of_shapes_alone_become_constants(expression: str, constant: str) -> None:
    module = lowered(f"fn main() -> f32 {{ sum({expression}) }}")
    assert str(module).splitlines()[0].startswith(f"%0 = ConstTensor {constant}")


def test_parameters_are_the_inputs_with_the_lowest_ids_and_all_else_follows_in_order() -> None:
    module = lowered(ORDER)
    assert [(each.value_id, each.attributes["name"]) for each in module.inputs] == [
        (0, "unused"),
        (1, "x"),
        (2, "y"),
    ]
    assert [each.value_id for each in module.operations] == list(range(len(module.operations)))
    assert opcodes(module) == "Exp Log Sub Mul Neg Mul ExpandDims ExpandDims Concat Sum Sub"
    assert module.outputs == (module.operations[-1].value_id,)


def test_fields_and_items_are_inputs_and_outputs_of_their_own() -> None:
    module = lowered(AGGREGATES)
    assert [each.attributes["name"] for each in module.inputs] == [
        *("p.left", "p.right.0", "p.right.1"),
        *("t.0", "t.1.left", "t.1.right.0", "t.1.right.1"),
    ]
    assert module.outputs == (1, 4, 5, 6)


def test_literals_and_constants_become_const_tensor() -> None:
    module = lowered(LITERALS)
    constants = [str(each).split(" = ")[1] for each in module.operations if each.opcode.startswith("Const")]
    assert constants == [
        "ConstTensor {dtype=i32, shape=[1, 2], value=[[1, -2]]} : tensor<i32[1, 2]>",
        "ConstTensor {dtype=f64, shape=[], value=3.0} : tensor<f64[]>",
        "ConstTensor {dtype=f64, shape=[], value=0.25} : tensor<f64[]>",
        "ConstTensor {dtype=f64, shape=[2], value=[1.5, -2.5]} : tensor<f64[2]>",
        "ConstTensor {dtype=i32, shape=[], value=16} : tensor<i32[]>",
        "ConstTensor {dtype=f32, shape=[], value=0.001} : tensor<f32[]>",
        "ConstTensor {dtype=i64, shape=[], value=1000} : tensor<i64[]>",
        "ConstTensor {dtype=i1, shape=[], value=true} : tensor<i1[]>",
    ]


@pytest.mark.parametrize("text", [ORDER, AGGREGATES, LITERALS], ids=["order", "aggregates", "literals"])
def test_without_control_flow_a_module_is_flat(text: str) -> None:
    module = lowered(text)
    assert (module.profile, module.is_flat) == ("core-v1", True)
    assert str(mind_mlir.parse(str(module))) == str(module)


@pytest.mark.parametrize("body", CONTROL.values(), ids=list(CONTROL))
def test_with_control_flow_a_module_has_functions_of_blocks(body: str) -> None:
    module = lowered(of_control(body))
    assert (module.profile, module.is_flat) == ("core-functions", False)
    assert any(len(function.blocks) > 1 for function in module.functions)
    assert [function.name for function in module.functions if function.public] == ["main"]
    mind_mlir.verify(module)
    assert str(mind_mlir.parse(str(module))) == str(module)


def test_functions_are_made_once_for_each_type_that_they_are_called_with() -> None:
    text = (
        "fn f(x: Tensor<f32, [n]>) -> Tensor<f32, [n]> { if sum(x) > 0.0 { x } else { -x } }\n"
        "export fn main(x: Tensor<f32, [2]>, y: Tensor<f32, [3]>) -> f32 { sum(f(f(x))) + sum(f(y)) }\n"
    )
    functions = lowered(text).functions
    assert sorted(len(function.entry.parameters) for function in functions) == [1, 1, 2]


def test_dimensions_are_what_they_are_bound_to() -> None:
    text = "fn f(x: Tensor<f32, [n, m]>) -> Tensor<f32, [m]> { sum(x, axes=[0]) }\n"
    assert str(lowered(text, n=3, m=2)).splitlines()[0] == '%0 = Input {name="x"} : tensor<f32[3, 2]>'
    with pytest.raises(VerificationError, match="E4303"):
        lowered(text, n=3)


def test_no_module_comes_of_a_program_that_is_wrong() -> None:
    with pytest.raises(VerificationError) as caught:
        lowered("fn main(x: f32, n: i64) -> f32 {\n    let y = x + n;\n    y + z\n}\n")
    assert [(each.code, str(each.location)) for each in caught.value.diagnostics] == [
        ("E2004", "test.mind:2:15"),
        ("E2002", "test.mind:3:9"),
    ]


def test_another_process_lowers_to_the_same_bytes() -> None:
    texts = [ORDER, AGGREGATES, LITERALS, *map(of_control, CONTROL.values())]
    script = (
        "import sys; from lowered import lowered; print(*map(lowered, eval(sys.stdin.read())), sep='\\n')"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        input=repr(texts),
        cwd=HERE,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "".join(f"{lowered(text)}\n" for text in texts)
