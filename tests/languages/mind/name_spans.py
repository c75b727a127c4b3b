"""For every code of names that a `.mind` program can cause: programs, with marks."""

from __future__ import annotations

#: What is wrong -> a program with marks.
NAMES = {
    # Names
    "a function declared twice": """\
fn g(x: f32) -> f32 {
    x
}

fn g(x: f32) -> f32 {
// ^ E2201 g
    x
}
""",
    "a parameter declared twice": """\
fn f(x: f32, x: f32) -> f32 {
//           ^ E2201 x
    x
}
""",
    "a field declared twice": """\
struct P { w: f32, w: f32 }
//                 ^ E2201 w
""",
    "a name twice in a pattern": """\
fn f(x: f32) -> f32 {
    let (a, a) = (x, x);
//          ^ E2201 a
    a
}
""",
    "a field that there is not": """\
struct P { weight: f32 }

fn f(p: P) -> f32 {
    p.wieght
//    ^^^^^^ E2202 did you mean weight?
}
""",
    "a field of a tensor": """\
fn f(x: Tensor<f32, [2]>) -> f32 {
    x.size
//    ^^^^ E2202
}
""",
    "a type that there is not": """\
fn f(x: Tensor<float, [2]>) -> f32 {
//             ^^^^^ E2202 float
    sum(x)
}
""",
    "a type that is nearly right": """\
struct Params { w: f32 }

fn f(p: Parms) -> f32 {
//      ^^^^^ E2202 did you mean Params?
    p.w
}
""",
    "a struct literal of no struct": """\
fn f(x: f32) -> f32 {
    let p = Parms { w: x };
//          ^^^^^ E2202 Parms
    x
}
""",
    "a struct literal with a field too many": """\
struct P { w: f32 }

fn f(x: f32) -> P {
    P { w: x, v: x }
//            ^ E2202 v
}
""",
    "a struct literal with a field too few": """\
struct P { w: f32, b: f32 }

fn f(x: f32) -> P {
    P { w: x }
//  ^ E2202 b
}
""",
    "a tensor that is called": """\
fn f(x: Tensor<f32, [4]>) -> f32 {
    x(0)
//  ^ E2203
}
""",
    "a function that is no value": """\
fn g(x: f32) -> f32 {
    x
}

fn f(x: f32) -> f32 {
    x + g
//      ^ E2203
}
""",
    "an argument that there is not": """\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2, 1]> {
    sum(x, axes=[1], keepdim=true)
//                   ^^^^^^^ E2204 did you mean keepdims?
}
""",
    "an argument that is given twice": """\
fn g(x: f32, by: f32) -> f32 {
    x * by
}

fn f(x: f32) -> f32 {
    g(x, by=x, by=x)
//             ^^ E2204 by
}
""",
    "an argument that is given by place and by name": """\
fn g(x: f32, by: f32) -> f32 {
    x * by
}

fn f(x: f32) -> f32 {
    g(x, x, x=x)
//          ^ E2204 x
}
""",
    "an extent that is computed": """\
fn f(n: i64) -> f32 {
    sum(zeros([n]))
//            ^^^ E2205
}
""",
    "recursion": """\
fn f(n: i64) -> i64 {
    if n < 2 { 1 } else { n * f(n - 1) }
//                            ^^^^^^^^ E4118 f calls itself
}
""",
    "recursion of two": """\
fn f(n: i64) -> i64 {
    g(n)
//  ^^^^ E4118 calls itself
}

fn g(n: i64) -> i64 {
    f(n)
}
""",
}
