"""Differences of texts: they tell one text from the other, and numbers alone are none."""

from __future__ import annotations

import random

from explorations import small
from hypothesis import given
from hypothesis import strategies as st

from mind_mlir.tools.explorer.differences import Replaced, differences, same_operations

TEXTS = st.lists(
    st.sampled_from(["a", "b", "c", "%1 = a", "%2 = a", "use %1", "use %2", "%3 # %1"]), max_size=30
)


@given(TEXTS, TEXTS)
def test_what_is_outside_of_differences_is_the_same_but_for_numbers(
    first: list[str], second: list[str]
) -> None:
    at = to = 0
    for block in [*differences(first, second), Replaced(len(first), len(first), len(second), len(second))]:
        assert block.first - at == block.second - to >= 0
        for one, other in zip(first[at : block.first], second[to : block.second], strict=True):
            assert one.replace("2", "1") == other.replace("2", "1")
        at, to = block.first_end, block.second_end


@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text: list[str]) -> None:
    assert differences(text, list(text)) == []


def test_a_line_more_is_one_difference_though_all_numbers_change() -> None:
    first = ["%0 = input", "%1 = exp %0", "%2 = add %1, %0"]
    second = ["%0 = input", "%1 = log %0", "%2 = exp %0", "%3 = add %2, %0"]
    assert differences(first, second) == [Replaced(1, 1, 1, 2)]


def test_another_operand_is_a_difference() -> None:
    first = ["%0 = input", "%1 = input", "%2 = sub %0, %1"]
    second = ["%0 = input", "%1 = input", "%2 = sub %1, %0"]
    assert differences(first, second) == [Replaced(2, 3, 2, 3)]


def test_names_begin_anew_in_the_next_function() -> None:
    first = ["func @f(%arg0) {", "%0 = exp %arg0", "}", "func @g(%arg0) {", "%0 = log %arg0", "}"]
    second = ["func @f(%arg1) {", "%7 = exp %arg1", "}", "func @g(%arg0) {", "%0 = log %arg0", "}"]
    assert differences(first, second) == []


def test_one_change_in_a_large_text_is_found_alone() -> None:
    chosen = random.Random(5)  # noqa: S311 -- any lines will do
    body = [f"  %{at} = llvm.{chosen.choice(('fadd', 'fmul', 'load'))} %{at // 2}" for at in range(60_000)]
    changed = [*body[:40_000], "  llvm.call @extra()", *body[40_000:]]
    assert differences(body, changed) == [Replaced(40_000, 40_000, 40_000, 40_001)]


def test_large_texts_that_have_nothing_in_common_are_one_difference() -> None:
    assert differences(["a b"] * 5_000, ["c d"] * 3_000) == [Replaced(0, 5_000, 0, 3_000)]


def test_the_same_operations_are_found_beside_new_ones() -> None:
    operations = small().operations
    assert same_operations(operations, operations[:2] + operations[3:]) == [0, 1, 3]
    assert same_operations((), operations) == [-1] * 4
