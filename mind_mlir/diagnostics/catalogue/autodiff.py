"""E50xx: the errors of autodiff.md. E51xx: its arguments."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import Entry, Sample

_CONV = """\
import mind_mlir
module = mind_mlir.parse('''
%0 = Input {name="x"} : tensor<f32[1, 4, 4, 3]>
%1 = Input {name="f"} : tensor<f32[1, 1, 3, 2]>
%2 = Conv2d (%0, %1) {padding=Valid, strides=[1, 1]} : tensor<f32[1, 4, 4, 2]>
outputs: %2
''')
"""
_SQUARE = """\
import mind_mlir
module = mind_mlir.parse('''
%0 = Input {name="x"} : tensor<f32[3]>
%1 = Mul (%0, %0) : tensor<f32[3]>
outputs: %1
''')
"""
_UNREACHED = (
    " The rules of this compiler are tested against every operation, so no program is known that gets here: "
    "please report one that does."
)

ENTRIES = (
    Entry(
        code="E5001",
        title="UnsupportedOp: no derivative rule",
        explanation=(
            "An operation on the way from the outputs to the inputs has no derivative, or one that "
            "Core v1 leaves out (Conv2d, which extensions=True switches on). No gradient is ever "
            "dropped silently."
        ),
        context=("operation", "value"),
        language="python",
        bad=_CONV + "mind_mlir.differentiate(module)\n",
        good=_CONV + "mind_mlir.differentiate(module, extensions=True)\n",
    ),
    Entry(
        code="E5002",
        title="Verification: the gradient module is not well-formed",
        explanation=(
            "The gradient module breaks a rule of its profile; the notes carry the inner finding."
            + _UNREACHED
        ),
        context=("inner",),
    ),
    Entry(
        code="E5003",
        title="InvalidAxis: reduction axis invalid during gradient construction",
        explanation=("A derivative rule met an axis that does not fit the shape it works on." + _UNREACHED),
    ),
    Entry(
        code="E5004",
        title="UnsupportedShape: broadcast or reduction shape not supported",
        explanation=(
            "A derivative rule met a shape that it cannot bring back to that of the operand." + _UNREACHED
        ),
    ),
    Entry(
        code="E5005",
        title="differentiation with respect to a value that is not differentiable",
        explanation=("Gradients exist with respect to floating-point inputs. Choose them by name."),
        language="python",
        bad=_SQUARE.replace("f32", "i64") + "mind_mlir.differentiate(module, wrt=['x'])\n",
        good=_SQUARE + "mind_mlir.differentiate(module, wrt=['x'])\n",
        surface=Sample(
            bad="""\
fn square(n: i64) -> i64 {
    n * n
}

fn f(n: i64) -> i64 {
    grad(square)(n)
}
""",
            good="""\
fn square(x: f32) -> f32 {
    x * x
}

fn f(x: f32) -> f32 {
    grad(square)(x)
}
""",
        ),
    ),
    Entry(
        code="E5101",
        title="no input of this name",
        explanation=("The inputs to differentiate with respect to are named as the module names them."),
        language="python",
        bad=_SQUARE + "mind_mlir.differentiate(module, wrt=['w'])\n",
        good=_SQUARE + "mind_mlir.differentiate(module, wrt=['x'])\n",
    ),
    Entry(
        code="E5102",
        title="malformed cotangents argument",
        explanation=("Cotangents are 'unit' or 'given', one word for all outputs or one for each."),
        context=("found", "outputs"),
        language="python",
        bad=_SQUARE + "mind_mlir.differentiate(module, cotangents=['unit', 'unit'])\n",
        good=_SQUARE + "mind_mlir.differentiate(module, cotangents=['unit'])\n",
    ),
)
