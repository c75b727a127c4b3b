"""E20xx: element types, result types and operand counts."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import (
    CatalogueEntry,
    Sample,
    bodies,
    function,
    in_python,
    in_surface,
)

_TWO = '%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Input {name="n"} : tensor<i32[2]>\n'
_FLOATS = '%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Input {name="y"} : tensor<f32[2]>\n'

_FUNCTIONS = """\
import mind_mlir
module = mind_mlir.parse('''
func @f(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %y = call @twice (%x) : tensor<f32[2]>
  return %y
}
func @g(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  return %x
}
internal func @twice(%a: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %b = Add (%a, %a) : tensor<f32[2]>
  return %b
}
''')
"""

ENTRIES = (
    CatalogueEntry(
        "E2001: the type is not the one expected",
        "The type of a result follows from the operands and attributes. The text declares it "
        "again so that a reader sees it; a declaration that differs is an error, because one of "
        "the two is not what was meant. In the surface language an expression has another type than "
        "the place where it stands: a let or a parameter with a type, a condition, the result of a "
        "function, a variable that is given another value.",
        context=("expected", "found"),
        bad=_FLOATS + "%2 = Add (%0, %1) : tensor<f32[3]>\noutputs: %2\n",
        good=_FLOATS + "%2 = Add (%0, %1) : tensor<f32[2]>\noutputs: %2\n",
        surface=bodies("f(x: Tensor<f32, [2, 3]>) -> f32", "sum(x, axes=[1])", "sum(x, axes=[0, 1])"),
    ),
    in_surface(
        "E2002: undeclared name",
        "A name is used that no parameter, let or function declares.",
        context=("name",),
        bad="fn f(x: Tensor<f32, [2]>) -> Tensor<f32, [2]> { x + y }\n",
        good="fn f(x: Tensor<f32, [2]>, y: Tensor<f32, [2]>) -> Tensor<f32, [2]> { x + y }\n",
    ),
    in_surface(
        "E2003: the type cannot be inferred",
        "Nothing says what type an expression of the surface language has. Declare it. Operations of the "
        "Core IR always have a type that follows from their operands, so they never report this.",
        bad="fn f() -> i32 { let empty = []; 0 }\n",
        good="fn f() -> i32 { let empty: Tensor<f32, [1]> = [0.0]; 0 }\n",
    ),
    CatalogueEntry(
        "E2004: operands have different dtypes",
        "Both operands of a binary operation have the same dtype. There is no implicit "
        "promotion, because a promotion nobody wrote changes the result's precision or range "
        "unseen: Cast converts. Functions of Python that are traced convert by the rules of the array API "
        "standard, but with promotion='strict', and where no dtype holds what both operands do.",
        context=("operation", "left", "right"),
        bad=_TWO + "%2 = Add (%0, %1) : tensor<f32[2]>\noutputs: %2\n",
        good=_FLOATS + "%2 = Add (%0, %1) : tensor<f32[2]>\noutputs: %2\n",
        surface=Sample(
            function("f(x: Tensor<f32, [2]>, n: Tensor<i32, [2]>) -> Tensor<f32, [2]>", "x * n"),
            function("f(x: Tensor<f32, [2]>, n: Tensor<f32, [2]>) -> Tensor<f32, [2]>", "x * n"),
        ),
    ),
    CatalogueEntry(
        "E2005: dtype not allowed for the operation",
        "The operation is not defined for elements of this type; the help line lists those it "
        "takes. Logarithms, exponentials and Relu take floating-point elements.",
        context=("operation", "found", "allowed"),
        bad='%0 = Input {name="n"} : tensor<i32[2]>\n%1 = Log (%0) : tensor<i32[2]>\noutputs: %1\n',
        good='%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Log (%0) : tensor<f32[2]>\noutputs: %1\n',
        surface=Sample(
            function("f(n: Tensor<i32, [2]>) -> Tensor<i32, [2]>", "log(n)"),
            function("f(x: Tensor<f32, [2]>) -> Tensor<f32, [2]>", "log(x)"),
        ),
    ),
    in_surface(
        "E2006: trait bound not met",
        "A type parameter of the language has a bound that the type does not meet. The tensor "
        "part of the language has no type parameters, so this compiler never reports it.",
        context=("type", "trait"),
    ),
    CatalogueEntry(
        "E2007: wrong number of operands or arguments",
        "Every operation reads a fixed number of values. Attributes such as axes and shapes are "
        "not operands: they stand between braces, or after the operands. Functions and closures of the "
        "surface language take one argument for each parameter.",
        context=("function", "expected", "found"),
        bad=_FLOATS + "%2 = Add (%0) : tensor<f32[2]>\noutputs: %2\n",
        good=_FLOATS + "%2 = Add (%0, %1) : tensor<f32[2]>\noutputs: %2\n",
        surface=Sample(
            function("scaled(x: Tensor<f32, [2]>, by: f32) -> Tensor<f32, [2]>", "x * by")
            + "\n"
            + function("f(x: Tensor<f32, [2]>) -> Tensor<f32, [2]>", "scaled(x)"),
            function("scaled(x: Tensor<f32, [2]>, by: f32) -> Tensor<f32, [2]>", "x * by")
            + "\n"
            + function("f(x: Tensor<f32, [2]>) -> Tensor<f32, [2]>", "scaled(x, 2.0)"),
        ),
    ),
    in_python(
        "E2101: function that is not exported",
        "Somebody outside of the module asks for an internal function. Only functions of its own "
        "module call it; it may be gone, or be another one, after the next change of the program.",
        context=("name",),
        bad=_FUNCTIONS + "mind_mlir.compile(module, function='twice')\n",
        good=_FUNCTIONS + "mind_mlir.compile(module, function='f')\n",
    ),
    in_python(
        "E2102: it is open which function is meant",
        "Where no function is named, the only exported one is meant, or the one called main. This "
        "module exports several others, or none.",
        context=("functions",),
        bad=_FUNCTIONS + "mind_mlir.differentiate(module)\n",
        good=_FUNCTIONS + "mind_mlir.differentiate(module, 'f')\n",
    ),
)
