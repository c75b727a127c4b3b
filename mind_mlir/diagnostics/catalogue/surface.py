"""E22xx: what names, calls and values of the surface language mean. E1109: how deep its texts nest."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import in_surface

_PARAMS = "struct Params { w: Tensor<f32, [4, 2]>, b: Tensor<f32, [2]> }\n\n"

ENTRIES = (
    in_surface(
        "E1109: nested too deep",
        "Parentheses, brackets, blocks and chains of operators nest deeper than the compiler follows: "
        "no program that a person writes does. Give parts of the expression names with let.",
        bad=f"fn f(x: f32) -> f32 {{\n    {'-' * 1000}x\n}}\n",
        good="fn f(x: f32) -> f32 {\n    --x\n}\n",
    ),
    in_surface(
        "E2201: declared twice",
        "Two functions, structs or types of a program, two parameters of a function, two names of a "
        "pattern, or two fields of a struct are called the same, and nobody could say which is meant. "
        "Another let of a name in a block is no error: it hides the first.",
        context=("name",),
        bad="fn scaled(x: f32, x: f32) -> f32 {\n    x * x\n}\n",
        good="fn scaled(x: f32, y: f32) -> f32 {\n    x * y\n}\n",
    ),
    in_surface(
        "E2202: no such field, struct or type",
        "A field is not one of its struct, a struct literal leaves one out or gives one that there is "
        "not, or a type is called what no struct, alias or built-in type is. Where a name is nearly "
        "right, the message says which was probably meant.",
        context=("name",),
        bad=_PARAMS + "fn bias(p: Params) -> Tensor<f32, [2]> {\n    p.bias\n}\n",
        good=_PARAMS + "fn bias(p: Params) -> Tensor<f32, [2]> {\n    p.b\n}\n",
    ),
    in_surface(
        "E2203: not a value, or nothing that can be called",
        "A function, a struct or a type stands where a value is needed, or a value stands where "
        "something is called. Elements of a tensor are read with brackets: x[0].",
        bad="fn first(x: Tensor<f32, [4]>) -> f32 {\n    x(0)\n}\n",
        good="fn first(x: Tensor<f32, [4]>) -> f32 {\n    x[0]\n}\n",
    ),
    in_surface(
        "E2204: unknown or repeated argument",
        "A call names an argument that the function does not have, or gives one twice: by its name and "
        "by its place, or by its name two times.",
        context=("name", "function"),
        bad="fn rows(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2, 1]> {\n"
        "    sum(x, axes=[1], keepdim=true)\n}\n",
        good="fn rows(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2, 1]> {\n"
        "    sum(x, axes=[1], keepdims=true)\n}\n",
    ),
    in_surface(
        "E2205: must be known when the program is compiled",
        "Extents of shapes, axes, steps and other settings of operations are part of the compiled "
        "program: they are numbers, dimensions such as n of Tensor<f32, [n]>, or arithmetic of these. A "
        "value that is computed when the program runs cannot be one.",
        bad="fn f(n: i64) -> f32 {\n    sum(zeros([n]))\n}\n",
        good="fn f(x: Tensor<f32, [n]>) -> f32 {\n    sum(zeros([n]) + x)\n}\n",
    ),
    in_surface(
        "E2206: assignment to a variable around the function",
        "A nested function or closure reads the variables around it as they were when it was made, and "
        "gives none of them another value: calls have no effect but their results.",
        context=("name",),
        bad="fn f(x: f32) -> f32 {\n    let total = 0.0;\n    fn add(y: f32) -> f32 {\n"
        "        total = total + y;\n        total\n    }\n    add(x)\n}\n",
        good="fn f(x: f32) -> f32 {\n    let total = 0.0;\n    fn add(y: f32) -> f32 {\n"
        "        total + y\n    }\n    total = add(x);\n    total\n}\n",
    ),
    in_surface(
        "E2207: type that contains itself",
        "A struct or an alias is made of itself, be it through others, so that its values would never "
        "end. A tensor with one dimension more holds many of something.",
        context=("name",),
        bad="struct Node { value: f32, next: Node }\n",
        good="struct Nodes { values: Tensor<f32, [8]>, count: i64 }\n",
    ),
)
