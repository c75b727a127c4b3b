"""Texts that somebody broke: each reads as a program or is told with places, and nothing else is raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptir_programs import programs

from mind_mlir.diagnostics import ParseError
from mind_mlir.diagnostics.codes import CATALOGUE
from mind_mlir.languages.ptir import dumps, parse
from mind_mlir.languages.ptir.files import FORMATS

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.files import Format
    from mind_mlir.languages.ptir.program import Program

_PIECES = [
    *'{}[]()<>"\\:,=%@^?#/-.0\n ',
    *("NaN", "1e999", "-1", "null", "true", "99999999999999999999", "tensor<", "tuple<", "%x", "->", "bytes"),
    *(
        "Tensor",
        "Static",
        "Literal",
        "hints",
        "func @a",
        "region ^1",
        "return",
        "yield",
        "dense<f32>",
        "\ud800",
    ),
]


@st.composite
def broken(draw: st.DrawFn, form: Format) -> str:
    """Return the text of a program in which a few places are other ones."""
    text = dumps(draw(programs()), form)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(st.sampled_from(["", *_PIECES])) + text[end:]
    return text


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_nothing_else_is_raised(form: Format, data: st.DataObject) -> None:
    text = data.draw(broken(form))
    try:
        program: Program = parse(text, form)
    except ParseError as raised:
        error = raised
    else:
        assert parse(dumps(program, form), form) == program
        return
    for found in error.diagnostics:
        assert found.location is not None
        assert found.code in CATALOGUE
        assert form != "json" or found.context["path"].startswith("$")
    assert str(error)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_nor_for_no_program_at_all(text: str) -> None:
    for form in (*FORMATS, None):
        with pytest.raises(ParseError):
            parse(text, form)
