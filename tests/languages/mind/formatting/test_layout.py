"""Documents are laid out in lines that are as long as they may be, and comments stay where lines end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mind_mlir.languages.mind.formatting.documents import (
    COMMA,
    FLUSH,
    HARD,
    SOFT,
    SPACE,
    Aside,
    Choice,
    Fill,
    Group,
    Indented,
    Remark,
    concat,
)
from mind_mlir.languages.mind.formatting.layout import lay_out

if TYPE_CHECKING:
    from mind_mlir.languages.mind.formatting.documents import Document


def text(*parts: Document) -> str:
    return lay_out(concat(parts))[0]


def brackets(*items: Document) -> Document:
    inner: list[Document] = [SOFT, items[0]]
    for item in items[1:]:
        inner += (",", SPACE, item)
    return Group(concat(("(", Indented(concat((*inner, COMMA, FLUSH))), SOFT, ")")))


@pytest.mark.parametrize(("width", "lines"), [(100, 1), (101, 4)])
def test_a_group_is_on_one_line_up_to_the_last_column(width: int, lines: int) -> None:
    found = text("f", brackets("a" * (width - len("f(, b);")), "b"), ";")
    assert found.count("\n") == lines
    assert max(map(len, found.splitlines())) <= 100


def test_what_follows_counts_up_to_where_it_may_break() -> None:
    long = "a" * 60
    found = text("f", brackets(long), brackets(long), ";")
    assert found == f"f({long})(\n    {long},\n);\n"


def test_a_line_comment_waits_for_the_end_of_its_line_and_breaks_its_own_group_only() -> None:
    inner = concat((brackets("a", "b"), Remark("// why")))
    assert text("f", brackets(inner, "c"), ";") == "f(\n    (a, b), // why\n    c,\n);\n"
    assert text(inner, ";", HARD, "x") == "(a, b); // why\nx\n"


def test_comments_that_wait_together_each_end_a_line() -> None:
    found = lay_out(brackets(concat(("a", Remark("// 1"), Remark("// 2"))), "b"))
    assert found == ("(\n    a, // 1\n    // 2\n    b,\n)\n", True)


def test_comments_with_a_line_of_their_own_end_the_line_before() -> None:
    remark = Remark("/* x\n* y */", line=False, own=True, here=True)
    assert (
        text("{", Indented(concat((HARD, "a;", remark))), HARD, "}")
        == "{\n    a;\n    /* x\n     * y */\n}\n"
    )


def test_a_block_comment_stands_off_words_and_not_off_brackets() -> None:
    assert text("f(", Aside("/* x */"), "a", Aside("/* y */"), ")", Aside("/* z */"), "b") == (
        "f(/* x */ a /* y */) /* z */ b\n"
    )


def test_words_fill_lines() -> None:
    words = tuple(f"{number}," for number in range(60))
    found = text(Group(concat(("[", Indented(concat((SOFT, Fill(words)))), SOFT, "]"))))
    first, *lines, last = found.splitlines()
    assert (first, last) == ("[", "]")
    assert " ".join(line.strip() for line in lines) == " ".join(words)
    assert all(len(line) <= 100 < len(line) + 4 for line in lines[:-1])


def test_the_nearer_of_two_ways_needs_room_for_its_first_line_only() -> None:
    block = concat(("{", Indented(concat((HARD, "x" * 99))), HARD, "}"))
    far = brackets("a", block)
    near = Choice(concat(("(a, ", block, ")")), far)
    assert text("f", near).startswith("f(a, {\n")
    assert text("f" * 96, near).startswith("f" * 96 + "(\n    a,\n")


def test_depth_and_length_are_no_matter() -> None:
    deep: Document = "x"
    for _ in range(3000):
        deep = Group(concat(("(", deep, SOFT, ")")))
    assert text(deep).startswith("(((")
    assert text(brackets(*["x"] * 20000)).count("\n") == 20002
