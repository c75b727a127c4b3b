"""Places that are numbers of operations."""

from __future__ import annotations

import copy
import pickle

from mind_mlir.diagnostics import Diagnostic, SourceText
from mind_mlir.diagnostics.render import render
from mind_mlir.ir.numbered import NumberedText, joined
from mind_mlir.ir.source_info import SourceInfo


def test_places_stand_for_numbers() -> None:
    text = NumberedText()
    one, two = text.source([7]), text.source([3])
    assert text.numbers(one.statement) == {7}
    assert text.numbers(SourceInfo.at(two.statement).statement) == {3}
    both = joined([one, two, None])
    assert both is not None
    assert text.numbers(both.statement) == {3, 7}
    assert text.numbers(joined([two, one]).statement) == {3, 7}  # type: ignore[union-attr]  # as above
    assert len(text.sets) == 3, "equal sets are one line"
    assert text.of_line(0) == text.of_line(4) == frozenset()


def test_other_places_stand_for_none() -> None:
    text, file = NumberedText(), SourceText("a.ir", "one\ntwo\n")
    place, other = SourceInfo.at(file.locate(0, 3)), SourceInfo.at(file.locate(4, 7))
    assert joined([place, other]) is place
    assert joined([None, place]) is None
    assert text.numbers(place.statement) == frozenset()
    assert text.numbers(NumberedText().location(1)) == frozenset()


def test_they_can_be_printed_and_pickled() -> None:
    place = NumberedText().location(5)
    assert "<operations>:1:1" in render([Diagnostic("E4102", "no", place)])
    assert pickle.loads(pickle.dumps(place)).line == 1  # noqa: S301 -- our own
    assert copy.deepcopy(place).line == 1
