"""How diagnostics look: carets under the right cells, nothing raw on the terminal, JSON lines."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_mlir.diagnostics import Diagnostic, Location, SourceText
from mind_mlir.diagnostics.display import excerpt, visible, width
from mind_mlir.diagnostics.render import render
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.core import parse
from mind_mlir.passes.verify import check


def at(line: str, column: int, length: int = 1, **fields: Any) -> Diagnostic:
    source = SourceText("m.ir", f"\n{line}\n")
    return replace(Diagnostic("E3001", "message", Location(source, 2, column, length)), **fields)


def source_and_carets(diagnostic: Diagnostic) -> tuple[str, str]:
    lines = render([diagnostic]).splitlines()
    return lines[3].removeprefix("2 | "), lines[4].removeprefix("  | ")


def test_human_form() -> None:
    text = """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Input {name="y"} : tensor<f32[2, 2]>
%2 = Add (%0, %1) : tensor<f32[2, 3]>
%3 = Neg (%9) : tensor<f32[2, 3]>
outputs: %3
"""
    assert (
        render(check(parse(text, "model.ir")))
        == """\
error[E3001]: Broadcasting failed at dimension 1: 3 against 2
 --> model.ir:3:6
  |
3 | %2 = Add (%0, %1) : tensor<f32[2, 3]>
  |      ^^^
  |
  = note: left shape [2, 3]
  = note: right shape [2, 2]
  = help: extents must be equal, or one of them 1, aligned from the right; Reshape or \
ExpandDims can line the dimensions up

error[E4001]: %9 is not defined
 --> model.ir:4:11
  |
4 | %3 = Neg (%9) : tensor<f32[2, 3]>
  |           ^^
  |
  = help: define the value before this operation, or correct the id

2 errors
"""
    )


def test_without_a_location() -> None:
    found = Diagnostic("E4101", "no outputs", notes=("a note",), severity="warning")
    assert render([found]) == "warning[E4101]: no outputs\n = note: a note\n\n1 warning\n"


def test_counts() -> None:
    error, warning = Diagnostic("E3001", "m"), Diagnostic("E4101", "w", severity="warning")
    assert render([error, error, warning]).endswith("\n\n2 errors and 1 warning\n")
    assert render([]) == ""


def test_short_form() -> None:
    found = [at("%0 = x", 6), Diagnostic("E4101", "w", severity="warning")]
    assert render(found, "short") == "m.ir:2:6: error[E3001]: message\nwarning[E4101]: w\n"


def test_json_form() -> None:
    facts = {"type": TensorType(DType.F32, (2,)), "dtype": DType.SI64, "shape": (2, 3), "nan": float("nan")}
    lines = render([at("%0 = \x1b", 6, 2, notes=("n\n",), context=facts)], "json").splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "phase": "shape",
            "code": "E3001",
            "severity": "error",
            "message": "message",
            "span": {"file": "m.ir", "line": 2, "column": 6, "length": 2},
            "notes": ["n\n"],
            "help": None,
            "context": {"type": "tensor<f32[2]>", "dtype": "i64", "shape": [2, 3], "nan": "nan"},
        }
    ]
    assert json.loads(render([Diagnostic("E4101", "w")], "json"))["span"] is None


@pytest.mark.parametrize(
    ("line", "column", "length", "shown", "carets"),
    [
        ("%0 = Add", 6, 3, "%0 = Add", "     ^^^"),
        ("\t%0", 2, 2, "    %0", "    ^^"),
        ("a\tb\tc", 4, 2, "a    b    c", "      ^^^^^"),
        ("漢字 %0", 4, 2, "漢字 %0", "     ^^"),
        ("漢字", 1, 2, "漢字", "^^^^"),
        ("e\u0301e\u0301%0", 5, 2, "e\u0301e\u0301%0", "  ^^"),
        ("x\x1by", 3, 1, "x\\u{1b}y", "       ^"),
        ("x\x1by", 2, 1, "x\\u{1b}y", " ^^^^^^"),
        ("a\u202eb", 3, 1, "a\\u{202e}b", "         ^"),
        ("abc", 4, 1, "abc", "   ^"),
        ("abc", 2, 99, "abc", " ^^"),
        ("abc", 99, 3, "abc", "   ^"),
        ("", 1, 1, "", "^"),
    ],
)
def test_carets_stand_under_the_span(line: str, column: int, length: int, shown: str, carets: str) -> None:
    assert source_and_carets(at(line, column, length)) == (shown, carets)


def test_long_lines_are_cut_around_the_span() -> None:
    line = "".join(f"[{n}]" for n in range(5000))
    column = line.index("[2500]") + 1
    shown, carets = source_and_carets(at(line, column, 6))
    assert width(shown) <= 106
    assert shown.startswith("...")
    assert shown.endswith("...")
    assert shown[carets.index("^") :][: carets.count("^")] == "[2500]"


def test_long_spans_are_cut_with_their_line() -> None:
    shown, carets = source_and_carets(at("%0 = " + "9" * 10_000_000, 6, 10_000_000))
    assert len(shown) <= 106
    assert len(carets) <= 106


def test_long_remarks_are_cut() -> None:
    text = render([Diagnostic("E3001", "m", notes=("1, " * 100_000,))])
    assert len(text) < 600


def test_colours_only_when_asked() -> None:
    found = [at("%0 = x", 6, notes=("n",), help="h")]
    assert "\x1b" not in render(found)
    colored = render(found, color=True)
    assert "\x1b[1;31merror[E3001]\x1b[0m" in colored
    assert "\x1b[1;31m^\x1b[0m" in colored


@pytest.mark.parametrize(
    ("column", "first", "last"),
    [(1, 0, 66), (34, 0, 99), (35, 1, 100), (151, 117, 216), (300, 201, 300)],
)
def test_long_lines_are_cut_around_a_span(column: int, first: int, last: int) -> None:
    """Two thirds of the room are for the span and what follows, a third is for what comes before."""
    line = "".join(chr(ord("a") + place % 26) for place in range(300))
    shown = excerpt(line, column, 1, 99)
    left, right = "..." if first else "", "..." if last < 300 else ""
    assert shown.text == left + line[first:last] + right
    assert (shown.start, shown.length) == (len(left) + column - 1 - first, 1)


@given(st.text(max_size=300), st.integers(1, 320), st.integers(1, 400), st.integers(10, 60))
def test_excerpts_fit_and_hold_their_span(line: str, column: int, length: int, limit: int) -> None:
    line = line.replace("\n", " ")
    shown = excerpt(line, column, length, limit)
    widest = 10  # an escape such as \u{10ffff}
    assert width(shown.text) <= limit + 6 + widest
    assert 0 <= shown.start <= width(shown.text)
    assert 1 <= shown.length <= max(1, width(shown.text) - shown.start)


@given(st.text(), st.text(max_size=30), st.text(max_size=30))
def test_nothing_raw_reaches_the_terminal(line: str, message: str, name: str) -> None:
    source = SourceText(name, line)
    found = Diagnostic("E1002", message, Location(source, 1, 1), (message,), message)
    for text in (render([found]), render([found], "short"), render([found], "json")):
        assert all(character == "\n" or visible(character) == character for character in text)
