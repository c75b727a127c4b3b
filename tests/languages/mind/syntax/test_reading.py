"""Every form of the surface language, read (surface.md)."""

from __future__ import annotations

import pytest
from trees_as_text import shown

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.reading import Reading, read


def reading_of(text: str) -> Reading:
    return read(SourceText("program.mind", text))


def tree(text: str) -> str:
    reading = reading_of(text)
    assert reading.findings == ()
    return shown(reading.program)


def body(text: str) -> str:
    """Return the block that ``text`` makes up, without its braces."""
    found = tree(f"fn f() {{ {text} }}")
    return found.removeprefix("(fn f [] _ {").removesuffix("})")


EXPRESSIONS = {
    "a + b * c - d": "(- (+ a (* b c)) d)",
    "a * b / c": "(/ (* a b) c)",
    "(a + b) * c": "(* (+ a b) c)",
    "a < b && c == d || e != f": "(|| (&& (< a b) (== c d)) (!= e f))",
    "a <= b || c >= d && e > f": "(|| (<= a b) (&& (>= c d) (> e f)))",
    "-a * -b": "(* (- a) (- b))",
    "--a - -b": "(- (- (- a)) (- b))",
    "!a && !f(b)": "(&& (! a) (! (call f b)))",
    "-x.w[0]": "(- (index x.w 0))",
    "a - b\n - c": "(- (- a b) c)",
    "0xff + 0b1_01 + 0o17 + 1_000 + 007": "(+ (+ (+ (+ 0xff 0b1_01) 0o17) 1_000) 007)",
    "1.0 + 1e-3 + 1. + 1_0.5E+2": "(+ (+ (+ 1.0 1e-3) 1.) 1_0.5E+2)",
    "t.0.1.w": "t.0.1.w",
    "[[1, 2], [3, 4],]": "[[1 2] [3 4]]",
    "[]": "[]",
    "()": "(tuple )",
    "(a,)": "(tuple a)",
    "(a, (b, c),)": "(tuple a (tuple b c))",
    "((a))": "a",
    "sum(x, axes=[1], keepdims=true,)": "(call sum x axes=[1] keepdims=true)",
    'conv2d(x, f, padding="Same")': '(call conv2d x f padding="Same")',
    "grad(f)(x)": "(call (call grad f) x)",
    "x[0, -1]": "(index x 0 (- 1))",
    "x[0:2, :, ::2, 1:, :3, 1:n:2, n::2, a::b, 1::]": (
        "(index x 0:2:_ _:_:_ _:_:2 1:_:_ _:3:_ 1:n:2 n:_:2 a:_:b 1:_:_)"
    ),
    "x[f(a)[0]:(b, c).1]": "(index x (index (call f a) 0):(tuple b c).1:_)",
    "x[0](1).w": "(call (index x 0) 1).w",
    "Params { w: a, b }": "(Params w=a b=b)",
    "Params { w: a, b: Params { w: b, }, }": "(Params w=a b=(Params w=b))",
    "P {}": "(P )",
    "|a, b| a + b": "(|a b| (+ a b))",
    "|a: f32| a": "(|a:f32| a)",
    "|| 1": "(|| 1)",
    "|| |a| f(a, y)": "(|| (|a| (call f a y)))",
    "f(|a,| { a })": "(call f (|a| {; a}))",
    "if a { b } else { c }": "(if a {; b} {; c})",
    "if a { b } else if c { d } else { e }": "(if a {; b} (if c {; d} {; e}))",
    "if a { b }": "(if a {; b} _)",
    "if a == (P { w: b }) { c } else { d }": "(if (== a (P w=b)) {; c} {; d})",
    "if f(P { w: a }) { b } else { c }": "(if (call f (P w=a)) {; b} {; c})",
    "{ let a = 1; a }": "{(let a _ 1); a}",
    "if a { b } else { c }.w": "(if a {; b} {; c}).w",
    "1 + if a { 2 } else { 3 }": "(+ 1 (if a {; 2} {; 3}))",
    "größe + _x1 + 变量": "(+ (+ größe _x1) 变量)",
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression(text: str) -> None:
    assert body(text) == f"; {EXPRESSIONS[text]}"


STATEMENTS = {
    "let a = 1;": "(let a _ 1); _",
    "let a: Tensor<f32, [2, n]>= b;": "(let a f32[2 n] b); _",
    "let (a, (b, _),): (f32, ((),)) = c;": "(let (tuple a (tuple b _)) (tuple f32 (tuple (tuple ))) c); _",
    "x = x + 1; x": "(= x (+ x 1)); x",
    "return; ": "(return _); _",
    "return a + b;": "(return (+ a b)); _",
    "f(x); g(x)": "(do (call f x)); (call g x)",
    "while a < b { a = a + 1; } a": "(while (< a b) {(= a (+ a 1)); _}); a",
    "for i in range(n) { x = x * i; }; x": "(for i (call range n) {(= x (* x i)); _}); x",
    "if a { x = 1; } else { x = 2; } x": "(do (if a {(= x 1); _} {(= x 2); _})); x",
    "if a { x = 1; } -x": "(do (if a {(= x 1); _} _)); (- x)",
    "fn g(a: f32) -> f32 { a } g(x)": "(fn g [a:f32] f32 {; a}); (call g x)",
    ";; a; ; b": "(do a); b",
    "let a = x < y; /* one */ a // two\n": "(let a _ (< x y)); a",
    "not_a_word + android": "; (+ not_a_word android)",
    "x = and;": "(= x and); _",
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement(text: str) -> None:
    assert body(text) == STATEMENTS[text]


def test_items() -> None:
    text = """\
import diff::grad;
import tensor;
import math::{sqrt, exp,};
export struct Params { w: Tensor<f32, [4, n]>, b: (f64, bool), }
type Matrix = Tensor<f32, [2, 2]>;
export type Nothing = unit;
let scale: f32 = 2.0;
export fn f(x: Matrix, p: Params,) -> (Matrix, f32) { (x, scale) }
fn g() {}
"""
    assert tree(text) == (
        "(import diff::grad) (import tensor) (import math::sqrt) (import math::exp) "
        "(export struct Params w:f32[4 n] b:(tuple f64 bool)) (type Matrix f32[2 2]) "
        "(export type Nothing unit) (let scale f32 2.0) "
        "(export fn f [x:Matrix p:Params] (tuple Matrix f32) {; (tuple x scale)}) (fn g [] _ {; _})"
    )


def test_code_needs_no_indentation() -> None:
    assert tree("fn f() {\nfn g() {\n}\n}\n") == "(fn f [] _ {(fn g [] _ {; _}); _})"
    assert tree("fn f() { let a = 1;\nfn g() {\n}\n    a\n}\n") == (
        "(fn f [] _ {(let a _ 1) (fn g [] _ {; _}); a})"
    )


def test_spans_are_exact() -> None:
    text = "fn f(x: f32) -> f32 {\n    let y = -x + f(x, a=1)[0:2].w;\n    y\n}"
    reading = reading_of(text)
    (function,) = reading.program.items
    assert isinstance(function, nodes.Function)
    (let,) = function.body.statements
    assert isinstance(let, nodes.Let)
    assert isinstance(let.value, nodes.Binary)
    assert isinstance(let.value.right, nodes.Field)
    index = let.value.right.value
    assert isinstance(index, nodes.Index)

    def written(span: nodes.Span) -> str:
        return text[span[0] : span[1]]

    assert written(function.span) == text
    assert written(function.head) == "fn f(x: f32) -> f32"
    assert written(let.span) == "let y = -x + f(x, a=1)[0:2].w;"
    assert written(let.value.operator_span) == "+"
    assert written(let.value.left.span) == "-x"
    assert written(let.value.right.span) == "f(x, a=1)[0:2].w"
    assert written(index.items[0].span) == "0:2"


def test_values_of_literals() -> None:
    reading = reading_of('let a = [0xff, 0b101, 0o17, 1_000, 1e-3, 1., 9223372036854775808, "a\\n\\"\\\\b"];')
    (let,) = reading.program.items
    assert isinstance(let, nodes.Let)
    assert isinstance(let.value, nodes.List)
    values = [each.value for each in let.value.items if isinstance(each, (nodes.Number, nodes.String))]
    assert values == [255, 5, 15, 1000, 0.001, 1.0, 2**63, 'a\n"\\b']


def test_tokens_are_all_of_the_text() -> None:
    text = "/* a */ let b = x[0] >= 1.5; // c\n"
    reading = reading_of(text)
    assert [(token.kind, text[token.start : token.end]) for token in reading.tokens] == [
        ("comment", "/* a */"),
        ("keyword", "let"),
        ("name", "b"),
        ("symbol", "="),
        ("name", "x"),
        ("symbol", "["),
        ("number", "0"),
        ("symbol", "]"),
        ("symbol", ">="),
        ("number", "1.5"),
        ("symbol", ";"),
        ("comment", "// c"),
        ("end", ""),
    ]
