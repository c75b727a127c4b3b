"""No text makes the reader fail: nesting of any depth, texts of one thing, mutations of programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.reading import Reading, read

DEPTH = 10_000
#: What nests -> how it opens, what stands innermost, how it closes.
NESTED = {
    "parentheses": ("(", "x", ")"),
    "tuples": ("(", "x", ",)"),
    "lists": ("[", "1", "]"),
    "blocks": ("{", "x", "}"),
    "branches": ("if a {", "x", "} else { x }"),
    "conditions": ("if ", "a", " { x } else { x }"),
    "else if": ("if a { x } else ", "{ x }", ""),
    "loops": ("while a {", "", "}"),
    "loops over ranges": ("for i in range(2) {", "", "}"),
    "functions": ("fn g() {", "", "}"),
    "signs": ("-", "x", ""),
    "negations": ("!", "a", ""),
    "closures": ("|a| ", "a", ""),
    "calls": ("f(", "x", ")"),
    "calls in a row": ("", "f", "(x)"),
    "named arguments": ("f(a=", "x", ")"),
    "indices": ("x[", "0", "]"),
    "indices in a row": ("", "x", "[0]"),
    "slices": ("x[0:", "0", "]"),
    "fields": ("", "x", ".w"),
    "parts of tuples": ("", "x", ".0"),
    "structs": ("P { a: ", "x", " }"),
    "patterns": ("let (", "a", ",) = x;"),
    "closures in calls": ("f(|a| ", "a", ")"),
}


def read_text(text: str) -> Reading:
    return read(SourceText("deep.mind", text))


@pytest.mark.parametrize("what", NESTED)
@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_is_one_finding(what: str, *, closed: bool) -> None:
    opening, inner, closing = NESTED[what]
    depth = DEPTH if closed else DEPTH // 10
    if what == "patterns":
        text = "let " + "(" * depth + (f"a{',)' * depth} = x;" if closed else "")
    else:
        text = opening * depth + (inner + closing * depth if closed else inner * bool(not opening))
    reading = read_text(f"fn f(x: f32) -> f32 {{\n    {text}\n}}\n\nfn g() {{}}\n")
    codes = [finding.code for finding in reading.findings]
    if closed or opening:
        assert codes == ["E1109"]
    assert isinstance(reading.program.items[-1], nodes.Function)
    assert reading.program.items[-1].name.text == "g"


@pytest.mark.parametrize("what", ["(", "(f32, ", "Tensor<"])
def test_deep_types_are_refused(what: str) -> None:
    assert read_text(f"fn f(x: {what * DEPTH}").findings


def test_chains_of_operators_have_any_length() -> None:
    reading = read_text(f"let a = 1{' + 1 * x' * DEPTH};")
    assert reading.findings == ()
    (let,) = reading.program.items
    assert isinstance(let, nodes.Let)
    value, terms = let.value, 1
    while isinstance(value, nodes.Binary):
        value, terms = value.left, terms + 1
    assert terms == DEPTH + 1


def test_sixty_levels_are_no_finding() -> None:
    assert read_text(f"let a = {'(' * 60}1{')' * 60};").findings == ()
    assert read_text(f"let a = {'(' * 70}1{')' * 70};").findings[0].code == "E1109"


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ";",
            ",",
            ":",
            "::",
            "|",
            "=",
            "-",
            "&",
            "@ ",
            "#\n",
            "'",
            '"',
            '"\n',
            "\\",
        ),
        *(
            "let ",
            "fn ",
            "if ",
            "else ",
            "struct a {",
            "import a::{",
            "return ",
            "not ",
            "x and ",
            "1.",
            ".1",
            "0x",
        ),
        *(
            "/*",
            "€",
            "\u201c",
            "\u0661",
            "\u212a",
            "\0",
            "\r",
            "if a = ",
            "x ** ",
            "fn f(\n",
            "x\n",
            "let a: ",
            "(]",
        ),
    ],
)
def test_texts_of_one_thing(piece: str) -> None:
    for text in (piece * 2000, f"fn f() {{ {piece * 2000}", f"fn f() {{ g({piece * 2000}) }}"):
        reading = read_text(text)
        assert len(reading.findings) <= 1001
        assert reading.tokens[-1].kind == "end"


def test_mutations_of_programs() -> None:
    """In a process of its own, which may end as it likes; the script says which mutation did it."""
    script = Path(__file__).with_name("read_mutations.py")
    done = subprocess.run(
        [sys.executable, str(script), "0", "400"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
