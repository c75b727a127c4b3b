"""E30xx: shapes."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import Entry, Sample


def _input(number: int, name: str, shape: str) -> str:
    return f'%{number} = Input {{name="{name}"}} : tensor<f32{shape}>\n'


_X = _input(0, "x", "[2, 3]")

ENTRIES = (
    Entry(
        code="E3001",
        title="shapes do not broadcast",
        explanation=(
            "Shapes are aligned from the right. In every dimension the extents are equal, or one of "
            "them is 1 and stretches. The message counts dimensions of the result from 0."
        ),
        context=("operation", "left", "right", "dimension", "extents"),
        bad=_X + _input(1, "y", "[2]") + "%2 = Add (%0, %1) : tensor<f32[2, 3]>\noutputs: %2\n",
        good=_X + _input(1, "y", "[2, 1]") + "%2 = Add (%0, %1) : tensor<f32[2, 3]>\noutputs: %2\n",
        surface=Sample(
            bad="""\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [2]>) -> Tensor<f32, [2, 3]> {
    x + y
}
""",
            good="""\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [2]>) -> Tensor<f32, [2, 3]> {
    x + reshape(y, [2, 1])
}
""",
        ),
    ),
    Entry(
        code="E3002",
        title="rank not allowed",
        explanation=(
            "The operation needs an operand of another number of dimensions: MatMul takes matrices "
            "or batches of them, Conv2d tensors of rank 4. ExpandDims or Reshape adds a dimension."
        ),
        context=("operation", "expected", "found"),
        bad=_X + _input(1, "y", "[3]") + "%2 = MatMul (%0, %1) : tensor<f32[2]>\noutputs: %2\n",
        good=_X + _input(1, "y", "[3]") + "%2 = Dot (%0, %1) : tensor<f32[2]>\noutputs: %2\n",
        surface=Sample(
            bad="""\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [3]>) -> Tensor<f32, [2]> {
    matmul(x, y)
}
""",
            good="""\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [3]>) -> Tensor<f32, [2]> {
    dot(x, y)
}
""",
        ),
    ),
    Entry(
        code="E3003",
        title="dimensions that must agree do not",
        explanation=(
            "A product contracts the last dimension of its left operand with the last but one of "
            "its right operand (the only one of a vector): their extents are equal. Transpose turns "
            "a matrix around."
        ),
        context=("operation", "dimension", "extents"),
        bad=_X + _input(1, "y", "[4, 5]") + "%2 = MatMul (%0, %1) : tensor<f32[2, 5]>\noutputs: %2\n",
        good=_X + _input(1, "y", "[3, 5]") + "%2 = MatMul (%0, %1) : tensor<f32[2, 5]>\noutputs: %2\n",
        surface=Sample(
            bad="""\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [4, 3]>) -> Tensor<f32, [2, 4]> {
    matmul(x, y)
}
""",
            good="""\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [4, 3]>) -> Tensor<f32, [2, 4]> {
    matmul(x, transpose(y, [1, 0]))
}
""",
        ),
    ),
    Entry(
        code="E3004",
        title="axis outside the rank",
        explanation=("Axes count the dimensions of the operand from 0."),
        context=("operation", "axis", "rank"),
        bad=_X + "%1 = Sum (%0) {axes=[2], keepdims=false} : tensor<f32[2]>\noutputs: %1\n",
        good=_X + "%1 = Sum (%0) {axes=[1], keepdims=false} : tensor<f32[2]>\noutputs: %1\n",
        surface=Sample(
            bad="""\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2]> {
    sum(x, axes=[2])
}
""",
            good="""\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2]> {
    sum(x, axes=[1])
}
""",
        ),
    ),
    Entry(
        code="E3005",
        title="axis given twice",
        explanation=("Every axis is named once; two spellings of one axis count as the same."),
        context=("operation", "axes", "axis"),
        bad=_X + "%1 = Sum (%0) {axes=[1, 1], keepdims=false} : tensor<f32[2]>\noutputs: %1\n",
        good=_X + "%1 = Sum (%0) {axes=[0, 1], keepdims=false} : tensor<f32[]>\noutputs: %1\n",
        surface=Sample(
            bad="""\
fn f(x: Tensor<f32, [2, 3]>) -> f32 {
    sum(x, axes=[1, 1])
}
""",
            good="""\
fn f(x: Tensor<f32, [2, 3]>) -> f32 {
    sum(x, axes=[0, 1])
}
""",
        ),
    ),
    Entry(
        code="E3006",
        title="extent zero or negative where a positive one is required",
        explanation=(
            "The extents of constants, of new shapes and of convolution windows are positive. Only "
            "a Slice may give a dimension of extent 0; in Reshape, one extent may be -1 and is "
            "computed."
        ),
        context=("shape", "index", "value"),
        bad=_X + "%1 = Reshape (%0) {new_shape=[0, 6]} : tensor<f32[0, 6]>\noutputs: %1\n",
        good=_X + "%1 = Reshape (%0) {new_shape=[-1, 6]} : tensor<f32[1, 6]>\noutputs: %1\n",
        surface=Sample(
            bad="""\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [1, 6]> {
    reshape(x, [0, 6])
}
""",
            good="""\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [1, 6]> {
    reshape(x, [-1, 6])
}
""",
        ),
    ),
    Entry(
        code="E3007",
        title="Reshape changes the element count",
        explanation=(
            "Reshape gives the same elements another shape, so the product of the extents stays the same."
        ),
        context=("shapes", "counts"),
        bad=_X + "%1 = Reshape (%0) {new_shape=[2, 2]} : tensor<f32[2, 2]>\noutputs: %1\n",
        good=_X + "%1 = Reshape (%0) {new_shape=[3, 2]} : tensor<f32[3, 2]>\noutputs: %1\n",
        surface=Sample(
            bad="""\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2, 2]> {
    reshape(x, [2, 2])
}
""",
            good="""\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [3, 2]> {
    reshape(x, [3, 2])
}
""",
        ),
    ),
    Entry(
        code="E3008",
        title="invalid permutation",
        explanation=("The permutation of Transpose names every axis of the operand exactly once."),
        context=("permutation", "rank", "violation"),
        bad=_X + "%1 = Transpose (%0) {permutation=[1, 1]} : tensor<f32[3, 3]>\noutputs: %1\n",
        good=_X + "%1 = Transpose (%0) {permutation=[1, 0]} : tensor<f32[3, 2]>\noutputs: %1\n",
        surface=Sample(
            bad="""\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [3, 2]> {
    transpose(x, [1, 1])
}
""",
            good="""\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [3, 2]> {
    transpose(x, [1, 0])
}
""",
        ),
    ),
    Entry(
        code="E3009",
        title="Squeeze of an extent other than 1",
        explanation=(
            "Squeeze removes dimensions of extent 1, which hold no information. Use Sum, Mean or "
            "Slice to do away with another dimension."
        ),
        context=("axis", "extent", "shape"),
        bad=_X + "%1 = Squeeze (%0) {axes=[0]} : tensor<f32[3]>\noutputs: %1\n",
        good=_input(0, "x", "[1, 3]") + "%1 = Squeeze (%0) {axes=[0]} : tensor<f32[3]>\noutputs: %1\n",
        surface=Sample(
            bad="""\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [3]> {
    squeeze(x, axes=[0])
}
""",
            good="""\
fn f(x: Tensor<f32, [1, 3]>) -> Tensor<f32, [3]> {
    squeeze(x, axes=[0])
}
""",
        ),
    ),
    Entry(
        code="E3010",
        title="the literal does not match its declared shape",
        explanation=(
            "A tensor literal has one nested list per dimension, all lists of one level have the "
            "same length, and these lengths are the declared shape."
        ),
        context=("declared", "found"),
        bad="%0 = ConstTensor {dtype=f32, shape=[2, 2], value=[1.0, 2.0, 3.0, 4.0]} : tensor<f32[2, 2]>\n"
        "outputs: %0\n",
        good="%0 = ConstTensor {dtype=f32, shape=[2, 2], value=[[1.0, 2.0], [3.0, 4.0]]} : "
        "tensor<f32[2, 2]>\n"
        "outputs: %0\n",
        surface=Sample(
            bad="""\
fn f() -> Tensor<f32, [2, 2]> {
    let t: Tensor<f32, [2, 2]> = [1.0, 2.0, 3.0, 4.0];
    t
}
""",
            good="""\
fn f() -> Tensor<f32, [2, 2]> {
    let t: Tensor<f32, [2, 2]> = [[1.0, 2.0], [3.0, 4.0]];
    t
}
""",
        ),
    ),
)
