"""Programs of the surface language of any length: what people write, and shapes that hurt."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: A model: a struct, functions that call one another, its gradient, a step of training.
_MODEL = """\
// Model {k}: two layers, and a step of gradient descent.
struct Params{k} {{
    w: Tensor<f32, [{n}, {m}]>,
    b: Tensor<f32, [{m}]>,
    v: Tensor<f32, [{m}, 3]>,
}}

fn layer{k}(x: Tensor<f32, [batch, {n}]>, p: Params{k}) -> Tensor<f32, [batch, {m}]> {{
    let z = matmul(x, p.w) + p.b;
    relu(z)
}}

fn loss{k}(p: Params{k}, x: Tensor<f32, [16, {n}]>, y: Tensor<f32, [16, 3]>) -> f32 {{
    let hidden = layer{k}(x, p);
    let error = matmul(hidden, p.v) - y;
    mean(error * error)
}}

export fn train{k}(p: Params{k}, x: Tensor<f32, [16, {n}]>, y: Tensor<f32, [16, 3]>) -> (Params{k}, f32) {{
    let rate = 0.1;
    let g = grad(loss{k})(p, x, y);
    let next = Params{k} {{
        w: p.w - rate * g.w,
        b: p.b - rate * g.b,
        v: p.v - rate * g.v,
    }};
    (next, loss{k}(next, x, y))
}}
"""

#: A solver: loops over values that they change, a closure, a tuple taken apart.
_SOLVER = """\
// Newton's method and power iteration, number {k}.
fn newton{k}(a: f64, tolerance: f64) -> f64 {{
    let x = a;
    let step: f64 = 1.0;
    while step * step > tolerance {{
        step = (x * x - a) / (2.0 * x);
        x = x - step;
    }}
    x
}}

export fn power{k}(a: Tensor<f64, [{n}, {n}]>, v: Tensor<f64, [{n}]>) -> (Tensor<f64, [{n}]>, f64) {{
    let length = |u: Tensor<f64, [{n}]>| newton{k}(dot(u, u), 1e-12);
    let u = v;
    for i in range({m}) {{
        u = dot(a, u);
        u = u / length(u);
    }}
    let (value, size) = (dot(u, dot(a, u)), dot(u, u));
    (u, value / size)
}}
"""

#: Arithmetic on tensors: slices, literals, reductions, a branch.
_FIELD = """\
/* Heat on a grid, number {k}. */
fn laplacian{k}(u: Tensor<f32, [{n}, {m}]>) -> Tensor<f32, [{n}, {m}]> {{
    let up = u[0:1, :] - u;
    let left = u[:, 0:1] - u;
    let weights: Tensor<f32, [2]> = [0.25, -0.5];
    weights[0] * up + weights[1] * left
}}

fn limited{k}(u: Tensor<f32, [{n}, {m}]>, limit: f32) -> Tensor<f32, [{n}, {m}]> {{
    let largest = mean(u * u);
    if largest > limit {{
        u * 0.5
    }} else if largest > 0.1 && limit > 0.0 {{
        u
    }} else {{
        u + limit
    }}
}}

export fn heat{k}(u: Tensor<f32, [{n}, {m}]>, steps: i64) -> Tensor<f32, [{n}, {m}]> {{
    let now = u;
    for i in range(steps) {{
        let change = laplacian{k}(now) * 0.1;
        now = limited{k}(now + change, 4.0);
    }}
    let total = sum(now, axes=[0], keepdims=true);
    now - total * {k}.5
}}
"""

_PIECES = (_MODEL, _SOLVER, _FIELD)


def realistic(lines: int) -> str:
    """Return models, solvers and fields by turns, of about ``lines`` lines."""
    found: list[str] = []
    total = 0
    for k in count():
        piece = _PIECES[k % len(_PIECES)].format(k=k, n=4 + k % 5, m=6 + k % 7)
        size = piece.count("\n") + 1
        if found and total + size > lines:
            return "\n".join(found)
        found.append(piece)
        total += size
    raise AssertionError("count() has no end")


def one_function(lines: int) -> str:
    """Return one function of that many statements."""
    steps = ("x{k} * 0.5 + y", "relu(x{k}) - x{k}", "matmul(x{k}, y) * 0.1", "exp(x{k} * 0.01)")
    body = [f"    let x{k + 1} = {steps[k % len(steps)].format(k=k)};" for k in range(lines)]
    head = "export fn main(x0: Tensor<f32, [8, 8]>, y: Tensor<f32, [8, 8]>) -> Tensor<f32, [8, 8]> {"
    return "\n".join([head, *body, f"    x{lines}", "}", ""])


def call_chain(functions: int) -> str:
    """Return functions that call the one before."""
    return _calls(functions, "step{k}(x) + 1.0")


def call_tree(functions: int) -> str:
    """Return functions that call the one before twice: 2^n calls, if each were followed."""
    return _calls(functions, "step{k}(x) * step{k}(x + 1.0)")


def _calls(functions: int, body: str) -> str:
    head = "fn step{k}(x: Tensor<f32, [n]>) -> Tensor<f32, [n]>"
    lines = [f"{head.format(k=0)} {{ x * 2.0 }}"]
    lines += [f"{head.format(k=k + 1)} {{ {body.format(k=k)} }}" for k in range(functions)]
    lines.append(f"export fn main(x: Tensor<f32, [4]>) -> Tensor<f32, [4]> {{ step{functions}(x) }}")
    return "\n".join([*lines, ""])


def long_expression(terms: int) -> str:
    """Return one sum, over as many lines."""
    body = "\n        + ".join(f"x * {k}.0" for k in range(terms))
    return f"export fn main(x: Tensor<f32, [4]>) -> Tensor<f32, [4]> {{\n    {body}\n}}\n"


def long_list(elements: int) -> str:
    """Return a literal of that many numbers."""
    body = ",\n        ".join(f"{k}.5" for k in range(elements))
    return f"export fn main(x: f32) -> Tensor<f32, [{elements}]> {{\n    x * [{body}]\n}}\n"


def wide_struct(fields: int) -> str:
    """Return a struct of that many fields, made, taken apart and differentiated."""
    declared = "\n".join(f"    a{k}: Tensor<f32, [3]>," for k in range(fields))
    made = "\n".join(f"        a{k}: p.a{k} * 2.0," for k in range(fields))
    total = "\n        + ".join(f"sum(p.a{k})" for k in range(fields))
    return (
        f"struct P {{\n{declared}\n}}\n"
        f"fn twice(p: P) -> P {{\n    P {{\n{made}\n    }}\n}}\n"
        f"fn total(p: P) -> f32 {{\n    {total}\n}}\n"
        "export fn main(p: P) -> P { grad(total)(twice(p)) }\n"
    )


def nested_loops(loops: int) -> str:
    """Return a function of that many loops and branches one after the other, which all change two values."""
    body = "".join(
        f"    for i{k} in range(3) {{\n        if b > a {{\n            a = a + {k}.0;\n        }}\n    }}\n"
        for k in range(loops)
    )
    return f"export fn main(a0: f32, b: f32) -> f32 {{\n    let a = a0;\n{body}    a\n}}\n"


def many_errors(lines: int) -> str:
    """Return a function in which every second line is wrong."""
    wrong = (
        "y + 1",
        "sum{k}(x)",
        "matmul(x, x, x)",
        "x + [1.0, 2.0, 3.0]",
        "zz{k}",
        "x.w",
        "sum(x, axes=[7])",
    )
    body = [
        f"    let v{k} = {wrong[k // 2 % len(wrong)].format(k=k) if k % 2 else 'x * 2.0'};"
        for k in range(lines)
    ]
    head = "export fn main(x: Tensor<f32, [4, 5]>, y: f32) -> Tensor<f32, [4, 5]> {"
    return "\n".join([head, *body, "    x", "}", ""])


def syntax_errors(lines: int) -> str:
    """Return a function in which every third line cannot be read."""
    wrong = ("let = 3;", "let a b = x;", "x + ;", "let c = (x;", "let d = 0x;", "let e = x $ x;")
    body = [f"    {wrong[k // 3 % len(wrong)] if k % 3 == 2 else f'let v{k} = x;'}" for k in range(lines)]
    return "\n".join(["export fn main(x: f32) -> f32 {", *body, "    x", "}", ""])


#: What grows with its number of lines, functions or elements, and has to be checked in proportion to it.
SHAPES: dict[str, Callable[[int], str]] = {
    "one function": one_function,
    "chain of calls": call_chain,
    "tree of calls": call_tree,
    "long expression": long_expression,
    "long list": long_list,
    "wide struct": wide_struct,
    "loops and branches": nested_loops,
    "type errors": many_errors,
    "syntax errors": syntax_errors,
}
