"""For every code of words, statements and types that a `.mind` program can cause: programs, with marks."""

from __future__ import annotations

#: What is wrong -> a program with marks.
TYPES = {
    # Characters and words
    "a character that may not stand here": """\
fn f(x: f32) -> f32 {
    x @ 2.0
//    ^ E1002 @
}
""",
    "a letter of another alphabet is a letter": """\
fn f(größe: f32) -> f32 {
    größe * breite
//          ^^^^^^ E2002 breite
}
""",
    "a column counts characters, not bytes": """\
fn f(x: f32) -> f32 {
    /* 🌊 größer */ x $ 2.0
//                   ^ E1002 $
}
""",
    "a string that is not closed": """\
fn f(x: f32) -> f32 {
    let s = "same;
//          ^^^^^^ E1003
    x
}
""",
    "an unknown escape": """\
fn f(x: Tensor<f32, [1, 4, 4, 1]>, w: Tensor<f32, [2, 2, 1, 1]>) -> Tensor<f32, [1, 4, 4, 1]> {
    conv2d(x, w, strides=[1, 1], padding="Sa\\qme")
//                                          ^^ E1004 Invalid escape sequence
}
""",
    "a number with two points": """\
fn f() -> f32 {
    1.2.3
//  ^^^^^ E1005 1.2.3
}
""",
    "a digit that the base does not have": """\
fn f() -> i64 {
    0b2 + 1
//  ^^^ E1005 0b2
}
""",
    "a comment that is not closed": """\
fn f(x: f32) -> f32 {
    x /* twice
//@ 7+2 E1006
}
""",
    # Statements
    "something else than an expression": """\
fn f(x: f32) -> f32 {
    let y = x + ;
//              ^ E1101 expression
    y
}
""",
    # Types
    "a let of another type": """\
fn f(x: Tensor<f32, [2]>) -> Tensor<f32, [2]> {
    let y: Tensor<f32, [3]> = neg(x);
//                            ^^^^^^ E2001 expected Tensor<f32, [3]>, found Tensor<f32, [2]>
    x
}
""",
    "a value of another type than the function's": """\
fn f(x: Tensor<f32, [2]>) -> Tensor<f64, [2]> {
    x * 2.0
//  ^^^^^^^ E2001 Tensor<f64, [2]>
}
""",
    "a return of another type": """\
fn f(x: Tensor<f32, [2]>) -> f32 {
    return x;
//         ^ E2001 f32
}
""",
    "an argument of another type": """\
fn g(x: Tensor<f32, [2]>) -> f32 {
    sum(x)
}

fn f(x: Tensor<f32, [3]>) -> f32 {
    g(x)
//    ^ E2001 Tensor<f32, [2]>
}
""",
    "a dimension that is bound to something else": """\
fn g(x: Tensor<f32, [n]>, y: Tensor<f32, [n]>) -> f32 {
    sum(x * y)
}

fn f(x: Tensor<f32, [3]>, y: Tensor<f32, [4]>) -> f32 {
    g(x, y)
//       ^ E2001 n
}
""",
    "a product that is wrong in one way or another, whatever n is": """\
fn layer(x: Tensor<f32, [n, 4]>, w: Tensor<f32, [4, 2]>, b: Tensor<f32, [2]>) -> Tensor<f32, [n, 2]> {
    matmul(w, x) + b
//  ^^^^^^ E3003 extents are 2 and n
}
""",
    "a shape that a caller makes wrong": """\
fn rows(x: Tensor<f32, [n]>) -> Tensor<f32, [2, 3]> {
    reshape(x, [2, 3])
//             ^^^^^^ E3007 with n = 2, as rows is called in line 6
}

fn f(x: Tensor<f32, [2]>) -> Tensor<f32, [2, 3]> {
    rows(x)
}
""",
    "a condition that is no bool": """\
fn f(x: f32) -> f32 {
    if x { 1.0 } else { 2.0 }
//     ^ E2001 bool
}
""",
    "a negation of a number": """\
fn f(x: f32) -> bool {
    !x
//   ^ E2001 bool
}
""",
    "branches of two types": """\
fn f(p: bool, x: Tensor<f32, [2]>) -> Tensor<f32, [2]> {
    if p { x } else { sum(x) }
//                    ^^^^^^ E2001 Tensor<f32, [2]>
}
""",
    "a variable that gets a value of another type": """\
fn f(x: Tensor<f32, [2]>) -> Tensor<f32, [2]> {
    let y = x;
    y = sum(x);
//      ^^^^^^ E2001 Tensor<f32, [2]>
    y
}
""",
    "an undeclared variable": """\
fn f(rate: f32, x: f32) -> f32 {
    x * rte
//      ^^^ E2002 did you mean rate?
}
""",
    "an undeclared function": """\
fn scaled(x: f32) -> f32 {
    x * 2.0
}

fn f(x: f32) -> f32 {
    scald(x)
//  ^^^^^ E2002 did you mean scaled?
}
""",
    "an undeclared built-in function": """\
fn f(x: Tensor<f32, [2, 2]>) -> Tensor<f32, [2, 2]> {
    matmull(x, x)
//  ^^^^^^^ E2002 did you mean matmul?
}
""",
    "a variable of another function": """\
fn g(x: f32) -> f32 {
    let inner = x;
    inner
}

fn f(x: f32) -> f32 {
    inner + x
//  ^^^^^ E2002 inner
}
""",
    "a list of nothing": """\
fn f() -> i64 {
    let empty = [];
//              ^^ E2003
    0
}
""",
    "operands of two dtypes": """\
fn f(x: Tensor<f32, [2]>, n: Tensor<i32, [2]>) -> Tensor<f32, [2]> {
    x * n
//    ^ E2004 Dtype mismatch
}
""",
    "a float against an integer": """\
fn f(n: i64) -> i64 {
    n + 1.5
//    ^ E2004 Dtype mismatch
}
""",
    "operands of two dtypes of a function": """\
fn f(x: Tensor<f32, [2, 2]>, y: Tensor<f64, [2, 2]>) -> Tensor<f32, [2, 2]> {
    matmul(x, y)
//            ^ E2004 Dtype mismatch
}
""",
    "a dtype that a function does not take": """\
fn f(n: Tensor<i32, [2]>) -> Tensor<i32, [2]> {
    log(n)
//      ^ E2005 log
}
""",
    "a sum of truth values": """\
fn f(a: bool, b: bool) -> bool {
    a + b
//  ^ E2005 bool
}
""",
    "too few arguments": """\
fn g(x: f32, by: f32) -> f32 {
    x * by
}

fn f(x: f32) -> f32 {
    g(x)
//  ^^^^ E2007 there is nothing for by
}
""",
    "too many arguments": """\
fn g(x: f32) -> f32 {
    x
}

fn f(x: f32) -> f32 {
    g(x, 2.0)
//  ^^^^^^^^^ E2007 takes 1 argument, found 2
}
""",
    "too few arguments of a built-in function": """\
fn f(x: Tensor<f32, [2, 2]>) -> Tensor<f32, [2, 2]> {
    matmul(x)
//  ^^^^^^^^^ E2007 nothing for rhs
}
""",
}
