"""E22xx: what names, calls and values of the surface language mean. E1109: how deep its texts nest."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import Entry

_PARAMS = "struct Params { w: Tensor<f32, [4, 2]>, b: Tensor<f32, [2]> }\n\n"

ENTRIES = (
    Entry(
        code="E1109",
        title="nested too deep",
        explanation=(
            "Parentheses, brackets, blocks and chains of operators nest deeper than the compiler follows: "
            "no program that a person writes does. Give parts of the expression names with let."
        ),
        language="surface",
        bad=f"fn f(x: f32) -> f32 {{\n    {'-' * 1000}x\n}}\n",
        good="fn f(x: f32) -> f32 {\n    --x\n}\n",
    ),
    Entry(
        code="E2201",
        title="declared twice",
        explanation=(
            "Two functions, structs or types of a program, two parameters of a function, two names of a "
            "pattern, or two fields of a struct are called the same, and nobody could say which is meant. "
            "Another let of a name in a block is no error: it hides the first."
        ),
        context=("name",),
        language="surface",
        bad="fn scaled(x: f32, x: f32) -> f32 {\n    x * x\n}\n",
        good="fn scaled(x: f32, y: f32) -> f32 {\n    x * y\n}\n",
    ),
    Entry(
        code="E2202",
        title="no such field, struct or type",
        explanation=(
            "A field is not one of its struct, a struct literal leaves one out or gives one that there is "
            "not, or a type is called what no struct, alias or built-in type is. Where a name is nearly "
            "right, the message says which was probably meant."
        ),
        context=("name",),
        language="surface",
        bad=_PARAMS + "fn bias(p: Params) -> Tensor<f32, [2]> {\n    p.bias\n}\n",
        good=_PARAMS + "fn bias(p: Params) -> Tensor<f32, [2]> {\n    p.b\n}\n",
    ),
    Entry(
        code="E2203",
        title="not a value, or nothing that can be called",
        explanation=(
            "A function, a struct or a type stands where a value is needed, or a value stands where "
            "something is called. Elements of a tensor are read with brackets: x[0]."
        ),
        language="surface",
        bad="fn first(x: Tensor<f32, [4]>) -> f32 {\n    x(0)\n}\n",
        good="fn first(x: Tensor<f32, [4]>) -> f32 {\n    x[0]\n}\n",
    ),
    Entry(
        code="E2204",
        title="unknown or repeated argument",
        explanation=(
            "A call names an argument that the function does not have, or gives one twice: by its name and "
            "by its place, or by its name two times."
        ),
        context=("name", "function"),
        language="surface",
        bad="fn rows(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2, 1]> {\n"
        "    sum(x, axes=[1], keepdim=true)\n}\n",
        good="fn rows(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2, 1]> {\n"
        "    sum(x, axes=[1], keepdims=true)\n}\n",
    ),
    Entry(
        code="E2205",
        title="must be known when the program is compiled",
        explanation=(
            "Extents of shapes, axes, steps and other settings of operations are part of the compiled "
            "program: they are numbers, dimensions such as n of Tensor<f32, [n]>, or arithmetic of these. A "
            "value that is computed when the program runs cannot be one."
        ),
        language="surface",
        bad="fn f(n: i64) -> f32 {\n    sum(zeros([n]))\n}\n",
        good="fn f(x: Tensor<f32, [n]>) -> f32 {\n    sum(zeros([n]) + x)\n}\n",
    ),
    Entry(
        code="E2206",
        title="recursion",
        explanation=(
            "No function calls itself, be it through others, and no type contains itself: memory is planned "
            "before anything runs. while and for repeat."
        ),
        language="surface",
        bad="fn factorial(n: i64) -> i64 {\n    if n < 2 { 1 } else { n * factorial(n - 1) }\n}\n",
        good="fn factorial(n: i64) -> i64 {\n    let r = 1;\n    for i in range(n) {\n"
        "        r = r * (i + 1);\n    }\n    r\n}\n",
    ),
    Entry(
        code="E2207",
        title="assignment to what is declared around the function",
        explanation=(
            "A closure, or a function within a function, reads what is declared around it, as it is where it "
            "is made. It cannot give it another value: it returns one, and its caller assigns it."
        ),
        context=("name",),
        language="surface",
        bad="fn f(x: f32) -> f32 {\n    let total = x;\n    let add = |a| { total = total + a; total };\n"
        "    add(x)\n}\n",
        good="fn f(x: f32) -> f32 {\n    let total = x;\n    let add = |a| total + a;\n"
        "    total = add(x);\n    total\n}\n",
    ),
)
