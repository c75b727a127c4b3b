"""`print` of `.mind` programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir

if TYPE_CHECKING:
    from typing import Any

PROGRAM = """\
fn inner(x: Tensor<f32, [n]>) -> Tensor<f32, [n]> {
    print("inner {:.2f}", x);
    x * x
}
fn loss(x: Tensor<f32, [n]>) -> f32 {
    let y = x;
    for i in range(2) {
        if sum(y) > 3.0 { print("large at {i}", i=i); }
        y = inner(y) + 1.0;
    }
    print("{{done}} {} {}", sum(y), 3);
    sum(y)
}
fn slope(x: Tensor<f32, [n]>) -> Tensor<f32, [n]> { grad(loss)(x) }
"""
PRINTED = ["inner [1.00 2.00]", "large at 1", "inner [2.00 5.00]", "{done} 31.0 3"]


@pytest.mark.parametrize("entry", ["loss", "slope"])
@pytest.mark.parametrize("interpret", [False, True])
def test_it_prints_in_order(capsys: pytest.CaptureFixture[str], entry: str, interpret: bool) -> None:
    f: Any = mind_mlir.jit(mind_mlir.parse(PROGRAM, "p.mind"), entry, interpret=interpret)
    f(np.array([1, 2], np.float32))
    assert capsys.readouterr().out.splitlines() == PRINTED


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("print();", "E2007"),
        ("print(x);", "E2205"),
        ('print("{}");', "E2205"),
        ('print("{:d}", x);', "E2205"),
        ('print("{}", x, x);', "E2205"),
        ('print("{}", (x, x));', "E2203"),
        ('print("{}", y);', "E2002"),
        ("show(x);", "E7001"),
    ],
)
def test_mistakes(statement: str, code: str) -> None:
    text = f"""\
fn show(x: Tensor<f32, [n]>) {{ print("{{}}", x); }}
fn main(x: Tensor<f32, [2]>) -> f32 {{ {statement} sum(x) }}
"""
    with pytest.raises(mind_mlir.VerificationError) as caught:
        mind_mlir.compile(mind_mlir.parse(text, "p.mind"), function="main")
    assert [each.code for each in caught.value.diagnostics] == [code]
