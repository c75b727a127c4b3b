"""E30xx: shapes."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, Sample, bodies, function


def _input(number: int, name: str, shape: str) -> str:
    return f'%{number} = Input {{name="{name}"}} : tensor<f32{shape}>\n'


_X = _input(0, "x", "[2, 3]")

ENTRIES = (
    CatalogueEntry(
        "E3001: shapes do not broadcast",
        "Shapes are aligned from the right. In every dimension the extents are equal, or one of "
        "them is 1 and stretches. The message counts dimensions of the result from 0.",
        context=("operation", "left", "right", "dimension", "extents"),
        bad=_X + _input(1, "y", "[2]") + "%2 = Add (%0, %1) : tensor<f32[2, 3]>\noutputs: %2\n",
        good=_X + _input(1, "y", "[2, 1]") + "%2 = Add (%0, %1) : tensor<f32[2, 3]>\noutputs: %2\n",
        surface=bodies(
            "f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [2]>) -> Tensor<f32, [2, 3]>",
            "x + y",
            "x + reshape(y, [2, 1])",
        ),
    ),
    CatalogueEntry(
        "E3002: rank not allowed",
        "The operation needs an operand of another number of dimensions: MatMul takes matrices "
        "or batches of them, Conv2d tensors of rank 4. ExpandDims or Reshape adds a dimension.",
        context=("operation", "expected", "found"),
        bad=_X + _input(1, "y", "[3]") + "%2 = MatMul (%0, %1) : tensor<f32[2]>\noutputs: %2\n",
        good=_X + _input(1, "y", "[3]") + "%2 = Dot (%0, %1) : tensor<f32[2]>\noutputs: %2\n",
        surface=bodies(
            "f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [3]>) -> Tensor<f32, [2]>", "matmul(x, y)", "dot(x, y)"
        ),
    ),
    CatalogueEntry(
        "E3003: dimensions that must agree do not",
        "A product contracts the last dimension of its left operand with the last but one of its right "
        "operand (the only one of a vector): their extents are equal. Transpose turns a matrix around.",
        context=("operation", "dimension", "extents"),
        bad=_X + _input(1, "y", "[4, 5]") + "%2 = MatMul (%0, %1) : tensor<f32[2, 5]>\noutputs: %2\n",
        good=_X + _input(1, "y", "[3, 5]") + "%2 = MatMul (%0, %1) : tensor<f32[2, 5]>\noutputs: %2\n",
        surface=bodies(
            "f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [4, 3]>) -> Tensor<f32, [2, 4]>",
            "matmul(x, y)",
            "matmul(x, transpose(y, [1, 0]))",
        ),
    ),
    CatalogueEntry(
        "E3004: axis outside the rank",
        "Axes count the dimensions of the operand from 0.",
        context=("operation", "axis", "rank"),
        bad=_X + "%1 = Sum (%0) {axes=[2], keepdims=false} : tensor<f32[2]>\noutputs: %1\n",
        good=_X + "%1 = Sum (%0) {axes=[1], keepdims=false} : tensor<f32[2]>\noutputs: %1\n",
        surface=bodies(
            "f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2]>", "sum(x, axes=[2])", "sum(x, axes=[1])"
        ),
    ),
    CatalogueEntry(
        "E3005: axis given twice",
        "Every axis is named once; two spellings of one axis count as the same.",
        context=("operation", "axes", "axis"),
        bad=_X + "%1 = Sum (%0) {axes=[1, 1], keepdims=false} : tensor<f32[2]>\noutputs: %1\n",
        good=_X + "%1 = Sum (%0) {axes=[0, 1], keepdims=false} : tensor<f32[]>\noutputs: %1\n",
        surface=bodies("f(x: Tensor<f32, [2, 3]>) -> f32", "sum(x, axes=[1, 1])", "sum(x, axes=[0, 1])"),
    ),
    CatalogueEntry(
        "E3006: extent zero or negative where a positive one is required",
        "The extents of constants, of new shapes and of convolution windows are positive. Only a Slice may "
        "give a dimension of extent 0; in Reshape, one extent may be -1 and is computed.",
        context=("shape", "index", "value"),
        bad=_X + "%1 = Reshape (%0) {new_shape=[0, 6]} : tensor<f32[0, 6]>\noutputs: %1\n",
        good=_X + "%1 = Reshape (%0) {new_shape=[-1, 6]} : tensor<f32[1, 6]>\noutputs: %1\n",
        surface=bodies(
            "f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [1, 6]>", "reshape(x, [0, 6])", "reshape(x, [-1, 6])"
        ),
    ),
    CatalogueEntry(
        "E3007: Reshape changes the element count",
        "Reshape gives the same elements another shape, so the product of the extents stays the same.",
        context=("shapes", "counts"),
        bad=_X + "%1 = Reshape (%0) {new_shape=[2, 2]} : tensor<f32[2, 2]>\noutputs: %1\n",
        good=_X + "%1 = Reshape (%0) {new_shape=[3, 2]} : tensor<f32[3, 2]>\noutputs: %1\n",
        surface=Sample(
            function("f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2, 2]>", "reshape(x, [2, 2])"),
            function("f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [3, 2]>", "reshape(x, [3, 2])"),
        ),
    ),
    CatalogueEntry(
        "E3008: invalid permutation",
        "The permutation of Transpose names every axis of the operand exactly once.",
        context=("permutation", "rank", "violation"),
        bad=_X + "%1 = Transpose (%0) {permutation=[1, 1]} : tensor<f32[3, 3]>\noutputs: %1\n",
        good=_X + "%1 = Transpose (%0) {permutation=[1, 0]} : tensor<f32[3, 2]>\noutputs: %1\n",
        surface=bodies(
            "f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [3, 2]>", "transpose(x, [1, 1])", "transpose(x, [1, 0])"
        ),
    ),
    CatalogueEntry(
        "E3009: Squeeze of an extent other than 1",
        "Squeeze removes dimensions of extent 1, which hold no information. Use Sum, Mean or "
        "Slice to do away with another dimension.",
        context=("axis", "extent", "shape"),
        bad=_X + "%1 = Squeeze (%0) {axes=[0]} : tensor<f32[3]>\noutputs: %1\n",
        good=_input(0, "x", "[1, 3]") + "%1 = Squeeze (%0) {axes=[0]} : tensor<f32[3]>\noutputs: %1\n",
        surface=Sample(
            function("f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [3]>", "squeeze(x, axes=[0])"),
            function("f(x: Tensor<f32, [1, 3]>) -> Tensor<f32, [3]>", "squeeze(x, axes=[0])"),
        ),
    ),
    CatalogueEntry(
        "E3010: the literal does not match its declared shape",
        "A tensor literal has one nested list per dimension, all lists of one level have the "
        "same length, and these lengths are the declared shape.",
        context=("declared", "found"),
        bad="%0 = ConstTensor {dtype=f32, shape=[2, 2], value=[1.0, 2.0, 3.0, 4.0]} : tensor<f32[2, 2]>\n"
        "outputs: %0\n",
        good="%0 = ConstTensor {dtype=f32, shape=[2, 2], value=[[1.0, 2.0], [3.0, 4.0]]} : "
        "tensor<f32[2, 2]>\n"
        "outputs: %0\n",
        surface=Sample(
            function("f() -> Tensor<f32, [2, 2]>", "let t: Tensor<f32, [2, 2]> = [1.0, 2.0, 3.0, 4.0];", "t"),
            function(
                "f() -> Tensor<f32, [2, 2]>", "let t: Tensor<f32, [2, 2]> = [[1.0, 2.0], [3.0, 4.0]];", "t"
            ),
        ),
    ),
)
