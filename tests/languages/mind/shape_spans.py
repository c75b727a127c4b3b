"""For every code of shapes and operations that a `.mind` program can cause: programs, with marks."""

from __future__ import annotations

#: What is wrong -> a program with marks.
SHAPES = {
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
