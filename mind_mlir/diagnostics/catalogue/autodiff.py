"""E50xx: the errors of autodiff.md. E51xx: its arguments."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, Sample, function, in_python

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
    in_python(
        "E5001: UnsupportedOp: no derivative rule",
        "An operation on the way from the outputs to the inputs has no derivative, or one that Core v1 "
        "leaves out (Conv2d, which extensions=True switches on). No gradient is ever dropped silently.",
        context=("operation", "value"),
        bad=_CONV + "mind_mlir.differentiate(module)\n",
        good=_CONV + "mind_mlir.differentiate(module, extensions=True)\n",
    ),
    CatalogueEntry(
        "E5002: Verification: the gradient module is not well-formed",
        "The gradient module breaks a rule of its profile; the notes carry the inner finding." + _UNREACHED,
        context=("inner",),
    ),
    CatalogueEntry(
        "E5003: InvalidAxis: reduction axis invalid during gradient construction",
        "A derivative rule met an axis that does not fit the shape it works on." + _UNREACHED,
    ),
    CatalogueEntry(
        "E5004: UnsupportedShape: broadcast or reduction shape not supported",
        "A derivative rule met a shape that it cannot bring back to that of the operand." + _UNREACHED,
    ),
    in_python(
        "E5005: differentiation with respect to a value that is not differentiable",
        "Gradients exist with respect to floating-point inputs. Choose them by name.",
        bad=_SQUARE.replace("f32", "i64") + "mind_mlir.differentiate(module, wrt=['x'])\n",
        good=_SQUARE + "mind_mlir.differentiate(module, wrt=['x'])\n",
        surface=Sample(
            function("square(n: i64) -> i64", "n * n")
            + "\n"
            + function("f(n: i64) -> i64", "grad(square)(n)"),
            function("square(x: f32) -> f32", "x * x")
            + "\n"
            + function("f(x: f32) -> f32", "grad(square)(x)"),
        ),
    ),
    in_python(
        "E5101: no input of this name",
        "The inputs to differentiate with respect to are named as the module names them.",
        bad=_SQUARE + "mind_mlir.differentiate(module, wrt=['w'])\n",
        good=_SQUARE + "mind_mlir.differentiate(module, wrt=['x'])\n",
    ),
    in_python(
        "E5102: malformed cotangents argument",
        "Cotangents are 'unit' or 'given', one word for all outputs or one for each.",
        context=("found", "outputs"),
        bad=_SQUARE + "mind_mlir.differentiate(module, cotangents=['unit', 'unit'])\n",
        good=_SQUARE + "mind_mlir.differentiate(module, cotangents=['unit'])\n",
    ),
)
