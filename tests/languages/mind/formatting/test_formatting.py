"""The one style of `.mind` programs; the folders beside this file have texts before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from mind_mlir.diagnostics import ParseError, SourceText
from mind_mlir.languages.mind.formatting import format_program, format_source
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.reading import read

ROOT = Path(__file__).parents[4]
FOLDER = Path(__file__).parent
NAMES = sorted(path.name for path in (FOLDER / "before").iterdir())


def formatted(text: str) -> str:
    return format_source(SourceText("text.mind", text))


def body(text: str) -> str:
    """Return the formatted body of a function, without its indentation."""
    lines = formatted(f"fn f() {{ {text} }}").splitlines()[1:-1]
    return "".join(f"{line.removeprefix('    ')}\n" for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_texts_before_and_after(name: str) -> None:
    after = (FOLDER / "after" / name).read_text(encoding="utf-8")
    assert formatted((FOLDER / "before" / name).read_text(encoding="utf-8")) == after
    assert formatted(after) == after


def test_the_texts_are_all_there() -> None:
    assert NAMES == sorted(path.name for path in (FOLDER / "after").iterdir()) != []


@pytest.mark.parametrize("text", ["", "\n\n \n", "\r\n"])
def test_nothing_stays_nothing(text: str) -> None:
    assert formatted(text) == ""


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("// alone", "// alone\n"),
        ("\n\n  /* alone */\n\n\n", "/* alone */\n"),
        ("// one\n// two \n\n\n\n// three", "// one\n// two\n\n// three\n"),
    ],
)
def test_comments_alone(text: str, after: str) -> None:
    assert formatted(text) == after


def test_carriage_returns_before_line_feeds_go() -> None:
    assert formatted("fn f() {\r\n  // a\r\n  /* b\r\n c */\r\n  x;\r\n}\r\n") == (
        "fn f() {\n    // a\n    /* b\n c */\n    x;\n}\n"
    )


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a - (b - c) - d;", "a - (b - c) - d;\n"),
        ("(a - b) - (c) - d;", "a - b - c - d;\n"),
        ("a * (b + c) / (d / e);", "a * (b + c) / (d / e);\n"),
        ("a || b && c;", "a || (b && c);\n"),
        ("(a && b) && (c && d);", "a && b && (c && d);\n"),
        ("(a < b) == (c < d);", "(a < b) == (c < d);\n"),
        ("(-a) * -(b) - (-(-c));", "-a * -b - --c;\n"),
        ("-(a.b) + (-a).b + (f)(x) + (f(x))(y);", "-a.b + (-a).b + f(x) + f(x)(y);\n"),
        ("(|a| b)(c);", "(|a| b)(c);\n"),
        ("x[(a):(b):(c)];", "x[a:b:c];\n"),
        ("if (P { a: 1 } == p) { }", "if (P { a: 1 }) == p {}\n"),
        ("if f(P { a: 1 }) { }", "if f(P { a: 1 }) {}\n"),
        ("(a,); (a); ((a, b));", "(a,);\na;\n(a, b);\n"),
    ],
)
def test_parentheses_are_where_the_tree_needs_them(text: str, after: str) -> None:
    assert body(text) == after
    assert body(after) == after


def test_a_comment_before_a_statement_has_a_line_of_its_own() -> None:
    """Behind a comment of the same line, a bracket would call the block before."""
    text = "if a {\n    b\n}\n/* not called */\n(c, d)\n"
    assert body(text) == text
    assert body("let a = 1; /* of b */ let b = 2;") == "let a = 1;\n/* of b */\nlet b = 2;\n"


@pytest.mark.parametrize("comment", ["// why", "/* why\n   it is called */", "/* why */ // it is called"])
def test_comments_go_behind_a_bracket_that_must_not_begin_a_line(comment: str) -> None:
    assert body(f"(f {comment}\n)(x)[0];") == f"f(x)[0]; {comment}\n"


def test_what_does_not_parse_is_reported() -> None:
    with pytest.raises(ParseError) as caught:
        formatted("fn f() {\n    let x = ;\n    let y = 1 1;\n}\n")
    assert [each.location and each.location.line for each in caught.value.diagnostics] == [2, 3]


def test_a_tree_without_a_text() -> None:
    one = nodes.Number(1, "1")
    if_ = nodes.If(nodes.Bool(True), nodes.Block([], one), nodes.Block([], one))
    statements: list[nodes.Statement] = [
        nodes.Evaluate(if_),
        nodes.Let(nodes.Ident("x"), None, nodes.Binary("-", one, nodes.Binary("-", one, one))),
        nodes.Evaluate(if_),
    ]
    function = nodes.Function(nodes.Ident("f"), [], None, nodes.Block(statements, None))
    imports: list[nodes.Item] = [
        nodes.Import([nodes.Ident("math"), nodes.Ident(each)]) for each in ("exp", "log")
    ]
    text = format_program(nodes.SourceFile([*imports, function]))
    branch = "    if true {\n        1\n    } else {\n        1\n    }"
    assert text == (
        "import math::exp;\nimport math::log;\n\n"
        f"fn f() {{\n{branch}\n    let x = 1 - (1 - 1);\n{branch};\n}}\n"
    )
    assert read(SourceText("text", text)).findings == ()


def test_a_long_program_takes_time_in_proportion() -> None:
    terms = " + ".join(f"x{number}" for number in range(20_000))
    assert formatted(f"fn f() {{ {terms} }}").count("\n") == 20_002
    statements = "\n".join(f"let x{number} = f(x, [1, 2, {number}]); // {number}" for number in range(3000))
    assert formatted(f"fn f() {{\n{statements}\n}}").count("\n") == 3002


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("**/*.mind")), ids=lambda path: path.name)
def test_examples_are_in_the_one_style(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert formatted(text) == text


def test_deep_nesting() -> None:
    text = f"fn f() {{ {'g(' * 30}{'x' * 80}{')' * 30} }}"
    assert formatted(formatted(text)) == formatted(text)
