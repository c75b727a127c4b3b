"""Programs with mistakes of the pen, each announced by a mark: these findings, and no others."""

from __future__ import annotations

PROGRAMS = {
    "words of other languages": """\
pub fn f(x: f32) -> f32 {
//@ 1+3 E1101 write export
    let mut y = x;
//      ^^^ E1101 mut
    var z = y;
//@ 5+3 E1101 write let
    y += 1.0;
//    ^^ E1101 write y = y + value;
    z := y;
//    ^^ E1101 write let z = value;
    y++;
//   ^^ E1101 write y = y + 1;
    loop { y = x; }
//@ 5+4 E1101 while
    y
}

def g(x: f32) -> f32 {
//@ 1+3 E1101 write fn
    x
}

from math import sqrt
//@ 1+4 E1101 write import math::sqrt;
import math.sqrt;
//         ^ E1101 '::'
""",
    "operators of other languages": """\
fn f(x: f32, a: bool, b: bool) -> f32 {
    let c = a and b or not b;
//            ^^^ E1101 '&&'
//                  ^^ E1101 '||'
//                     ^^^ E1101 '!'
    let d = x ** 2.0 % 3.0;
//            ^^ E1101 pow(a, b)
//                   ^ E1101 remainder(a, b)
    let e = a & b | c;
//            ^ E1101 '&&'
//                ^ E1101 '||'
    let g = a ? x : d;
//            ^ E1002 write if c { a } else { b }
    for i in 0..10 { d = d * x; }
//            ^^ E1101 range(a, b)
    if x < d < 1.0 { x } elif a { d } else { 2.0 }
//           ^ E1101 a < b && b < c
//                       ^^^^ E1101 write else if
}
""",
    "functions of other languages": """\
fn f(x: f32): f32 {
//          ^ E1101 '->'
    let g = fn(a) { a };
//          ^^ E1101 closures: |x| x + 1.0
    let h = lambda a: a;
//          ^^^^^^ E1101 closure
    let k = |a| -> f32 { a };
//              ^^ E1101 closure
    math::sqrt(x)
//      ^^ E1101 import math::sqrt;
}

fn g(x, y: f32 = 1.0, &z: f32) -> f32 {
//   ^ E1101 no type
//             ^ E1101 no defaults
//                    ^ E1101 '&'
    f(x: y)
//     ^ E1101 write x=value
}
""",
    "types of other languages": """\
struct P { a: f32; b: f32, c: }
//               ^ E1101 ','
//                            ^ E1101 type
type T Tensor<f32, [2]>;
//     ^^^^^^ E1101 '='
fn f(a: Tensor[f32, [2]], b: f32[2, 3], c: [f32; 4], d: &f32) -> f32 {
//            ^ E1101 Tensor<f32, [2, 3]>
//                           ^^^ E1101 Tensor<f32, [2, 3]>
//                                         ^ E1101 Tensor<f32, [4]>
//                                                      ^ E1101 no references
    b
}

fn g(a: Tensor<f32>, b: Tensor<f32, 2, 3>, c: Tensor<f32, [2, -1]>, d: Tensor<f32, [2]) -> Tensr<f32, [2]> {
//                ^ E1101 ','
//                                  ^ E1101 '['
//                                                            ^ E1101 an extent
//                                                                                    ^ E1101 '>'
//                                                                                         ^^^^^ E2202 Tensor?
    b
}
""",
    "characters": """\
fn f(x: f32) -> f32 {
    let a = 'word';
//          ^ E1002 double quotes
    let b = “word”;
//          ^ E1002 double quotes
    let c = x \u2212 1.0 \u00d7 2.0\uff1b
//            ^ E1002 write '-'
//                  ^ E1002 write '*'
//                       ^ E1002 write ';'
    let d$e = x;
//       ^ E1002 $
    let é² = x @ y;
//       ^ E1002 ²
//             ^ E1002 matmul
    # a comment, with ) and }
//@ 5+1 E1002 //
    \\x
//@ 5+1 E1002
}
""",
    "numbers": """\
fn f() -> i64 {
    let a = [0b2, 0o8, 0xg, 0x, 1e, 1e+, 1.2.3, 1__0, 1_, 0x_f];
//           ^^^ E1005 0b2
//                ^^^ E1005 0o8
//                     ^^^ E1005 0xg
//                          ^^ E1005 0x
//                              ^^ E1005 1e
//                                  ^^^ E1005 1e+
//                                       ^^^^^ E1005 1.2.3
//                                              ^^^^ E1005 1__0
//                                                    ^^ E1005 1_
//                                                        ^^^^ E1005 0x_f
    let b = [9223372036854775809, 0x1_0000_0000_0000_0000, 1e309];
//           ^^^^^^^^^^^^^^^^^^^ E1005 64 bits
//                                ^^^^^^^^^^^^^^^^^^^^^^^ E1005 64 bits
//                                                         ^^^^^ E1005 1.7e308
    2x
//@ 5+2 E1005 2 * x
}
""",
    "strings": """\
fn f(x: f32) -> f32 {
    g("a\\qb\\0");
//      ^^ E1004 Invalid escape sequence \\q
//         ^^ E1004 Invalid escape sequence \\0
    g("never closed);
//    ^^^^^^^^^^^^^^^ E1003
    let s = "ends in \\
//          ^^^^^^^^^^ E1003
    x
}
""",
    "a comment takes the rest with it": """\
fn f(x: f32) -> f32 {
    if x > 0.0 {
        g(x, /* never closed
//@ 14+2 E1006
""",
    "missing commas, brackets and semicolons": """\
fn f(x: f32 y: f32) -> f32 {
//          ^ E1101 ','
    let a = sum(x y);
//                ^ E1101 ','
    let b = [1 2 3];
//             ^ E1101 ','
    let c = (a + b;
//                ^ E1101 ')'
    let d = g(a,
//           ^ E1101 not closed
        b;
    let e = a b;
//            ^ E1101 ';'
    let h = [1, 2);
//               ^ E1101 ']'
    let i = g(x));
//              ^ E1101 leave it out
    let j = x +
//             ^ E1101 an expression
    let k = P { a = 1, b 2 };
//                ^ E1101 ':'
//                       ^ E1101 ':'
    g(a)
//      ^ E1101 semicolon
    return e
//          ^ E1101 semicolon
}
""",
    "names and values that are missing": """\
let = 1;
//  ^ E1101 a name
fn f(: f32, x: f32) -> f32 {
//   ^ E1101 the name of a parameter
    let (a, , b) = x;
//          ^ E1101 a name
    let c: = 1;
//         ^ E1101 a type
    let d == 1;
//        ^^ E1101 '='
    let e;
//       ^ E1101 '='
    a = ;
//      ^ E1101 an expression
    g(, a);
//    ^ E1101 an expression
    a[];
//   ^^ E1101 index
    p. = 1;
//     ^ E1101 field
    p.w = 1;
//      ^ E1101 only a variable
    for in range(2) {}
//      ^^ E1101 variable
    if { 1 } else { 2 }
//           ^^^^ E1101 '{'
}
""",
    "a brace that is missing inside": """\
fn f(x: f32) -> f32 {
    if x > 0.0 {
//             ^ E1101 not closed
        let y = x;
    x
}

fn g(x: f32) -> f32 {
    let = x;
//      ^ E1101 a name
    x
}
""",
    "a brace that is missing at the end": """\
fn f(x: f32) -> f32 {
//                  ^ E1101 not closed
    if x > 0.0 { x } else { 1.0 }

struct P { w: f32
//       ^ E1101 not closed
fn g(x: f32) -> f32 {
    x
}
""",
    "a brace too many": """\
fn f(x: f32) -> f32 {
    let y = x;
    }
//@ 5+1 E1101 closes nothing
    y
}

fn g(x: f32) -> f32 {
    x
}}
//@ 2+1 E1101 closes nothing
""",
    "a brace that is missing at the beginning": """\
fn f(x: f32) -> f32
//@ 20+1 E1101 '{'
    x * 2.0
}

fn g(x: f32) -> f32 {
    if x > 0.0
//@ 15+1 E1101 '{'
        x
    } else {
        2.0
    }
}

fn h(x: f32) -> f32 {
    while x > 0.0:
//               ^ E1101 '{'
        x = x - 1.0;
    x
}
""",
    "two braces that would match": """\
fn f(x: f32) -> f32 {
    if x > 0.0 {
//             ^ E1101 not closed
        x
    x
}

fn g(x: f32) -> f32 {
    x
}
}
//@ 1+1 E1101 closes nothing
""",
    "what stands where it does not belong": """\
x = 1;
//@ 1+1 E1101 statements stand in functions
y = 2;
export let a = 1;
//     ^^^ E1101 behind export
fn f(x: f32) -> f32 {
    let y = x;
    else { x }
//@ 5+4 E1101 without an if
    struct P { w: f32 }
//@ 5+6 E1101 top of a file
    if x == P { w: 1.0 } { x } else { 2.0 }
//            ^ E1101 parentheses
}
""",
}
