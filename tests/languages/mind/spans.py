"""For every code that a `.mind` program can cause: programs, with marks that say where it is reported."""

from __future__ import annotations

#: What is wrong -> a program with marks.
PROGRAMS = {
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
    # Shapes
    "shapes that do not broadcast": """\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [2]>) -> Tensor<f32, [2, 3]> {
    x + y
//    ^ E3001 Broadcasting failed at dimension 1: 3 against 2
}
""",
    "shapes of a comparison": """\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [2]>) -> Tensor<bool, [2, 3]> {
    x < y
//    ^ E3001 Broadcasting failed
}
""",
    "a rank that is not allowed": """\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [3]>) -> Tensor<f32, [2]> {
    matmul(x, y)
//            ^ E3002 matmul
}
""",
    "a product of matrices that do not fit": """\
fn f(x: Tensor<f32, [2, 3]>, y: Tensor<f32, [4, 3]>) -> Tensor<f32, [2, 4]> {
    matmul(x, y)
//  ^^^^^^ E3003 matmul
}
""",
    "an axis outside": """\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2]> {
    sum(x, axes=[2])
//              ^^^ E3004 axis 2
}
""",
    "an axis twice": """\
fn f(x: Tensor<f32, [2, 3]>) -> f32 {
    sum(x, axes=[1, 1])
//              ^^^^^^ E3005 axis 1
}
""",
    "an extent of zero": """\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [1, 6]> {
    reshape(x, [0, 6])
//             ^^^^^^ E3006 extent 0
}
""",
    "another number of elements": """\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [2, 2]> {
    reshape(x, [2, 2])
//             ^^^^^^ E3007 lement count mismatch
}
""",
    "a permutation that is none": """\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [3, 2]> {
    transpose(x, [1, 1])
//               ^^^^^^ E3008 axis 1
}
""",
    "a squeeze of another extent": """\
fn f(x: Tensor<f32, [2, 3]>) -> Tensor<f32, [3]> {
    squeeze(x, axes=[0])
//                  ^^^ E3009 axis 0
}
""",
    "a literal of another shape": """\
fn f() -> Tensor<f32, [2, 2]> {
    let t: Tensor<f32, [2, 2]> = [1.0, 2.0, 3.0, 4.0];
//                               ^^^^^^^^^^^^^^^^^^^^ E3010 [4]
    t
}
""",
    "rows of two lengths": """\
fn f() -> Tensor<f32, [2, 2]> {
    [[1.0, 2.0], [3.0]]
//               ^^^^^ E3010
}
""",
    # Single operations
    "a number that its type does not hold": """\
fn f() -> i32 {
    let n: i32 = 3000000000;
//               ^^^^^^^^^^ E4005 i32
    n
}
""",
    "too many indices": """\
fn f(x: Tensor<f32, [2, 3]>) -> f32 {
    x[0, 1, 2]
//  ^^^^^^^^^^ E4006 rank 2
}
""",
    "a step of zero": """\
fn f(x: Tensor<f32, [8]>) -> Tensor<f32, [4]> {
    x[::0]
//      ^ E4008
}
""",
    "channels that differ": """\
fn f(x: Tensor<f32, [1, 4, 4, 5]>, w: Tensor<f32, [1, 1, 3, 2]>) -> Tensor<f32, [1, 4, 4, 2]> {
    conv2d(x, w, strides=[1, 1], padding=Same)
//  ^^^^^^ E4009 5 channels
}
""",
    "strides that are none": """\
fn f(x: Tensor<f32, [1, 4, 4, 3]>, w: Tensor<f32, [1, 1, 3, 2]>) -> Tensor<f32, [1, 2, 2, 2]> {
    conv2d(x, w, strides=[2, 0], padding=Same)
//                       ^^^^^^ E4010 strides
}
""",
    "indices that are no integers": """\
fn f(x: Tensor<f32, [2, 3]>, i: Tensor<f32, [4]>) -> Tensor<f32, [4, 3]> {
    gather(x, i)
//            ^ E4011 gather
}
""",
    "an index that is no integer": """\
fn f(x: Tensor<f32, [2, 3]>, i: f32) -> Tensor<f32, [3]> {
    x[i]
//    ^ E4011 f32
}
""",
    "an index that is known to be outside": """\
fn f(x: Tensor<f32, [2, 3]>) -> f32 {
    x[0, 3]
//       ^ E6001 3
}
""",
    "an index that is outside whatever the extent": """\
fn f(x: Tensor<f32, [n]>) -> f32 {
    x[n + 1]
//    ^^^^^ E6001 index n + 1 is out of bounds for dimension 0 of extent n
}
""",
    # Gradients
    "a gradient with respect to an integer": """\
fn square(n: i64) -> i64 {
    n * n
}

fn f(n: i64) -> i64 {
    grad(square)(n)
//               ^ E5005 i64
}
""",
    "a gradient of many numbers": """\
fn square(x: Tensor<f32, [3]>) -> Tensor<f32, [3]> {
    x * x
}

fn f(x: Tensor<f32, [3]>) -> Tensor<f32, [3]> {
    grad(square)(x)
//  ^^^^^^^^^^^^^^^ E2001 Tensor<f32, [3]>
}
""",
    # Sizes
    "a constant beyond all measure": """\
fn f() -> f32 {
    sum(zeros([1000000, 1000000, 1000000, 1000000]))
//            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E7001 16,777,216
}
""",
}
