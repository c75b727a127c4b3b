"""Run-time checks: what is said about the least and the greatest number that compiled code has seen."""

from __future__ import annotations

import pytest

from mind_mlir.diagnostics.checks import NOTHING_SEEN, Check, DivisorCheck, IndexCheck

AXIS = IndexCheck("Gather", "%3", 1, (5, 3))
EMPTY = IndexCheck("Gather", "%3", 0, (0, 2))
DIVISOR = DivisorCheck("Div", "%q")


@pytest.mark.parametrize("check", [AXIS, EMPTY, DIVISOR])
def test_nothing_seen_is_nothing_wrong(check: Check) -> None:
    assert check.judge(*NOTHING_SEEN) is None


@pytest.mark.parametrize(
    ("check", "seen"), [(AXIS, (-3, 2)), (AXIS, (0, 0)), (AXIS, (-3, -3)), (DIVISOR, (0, 0))]
)
def test_the_ends_of_the_range_are_allowed(check: Check, seen: tuple[int, int]) -> None:
    assert check.judge(*seen) is None


@pytest.mark.parametrize(
    ("check", "seen", "message"),
    [
        (AXIS, (-4, 2), "Gather %3: index -4 is out of bounds for axis 1 with extent 3"),
        (AXIS, (-3, 3), "Gather %3: index 3 is out of bounds for axis 1 with extent 3"),
        (AXIS, (-4, 3), "Gather %3: index -4 is out of bounds for axis 1 with extent 3"),
        (EMPTY, (0, 0), "Gather %3: index 0 is out of bounds for axis 0 with extent 0"),
        (EMPTY, (-1, -1), "Gather %3: index -1 is out of bounds for axis 0 with extent 0"),
        (DIVISOR, (0, 1), "Div %q: division of an integer by zero"),
        (DIVISOR, (1, 1), "Div %q: division of an integer by zero"),
    ],
)
def test_what_lies_outside_is_named_the_least_first(
    check: Check, seen: tuple[int, int], message: str
) -> None:
    found = check.judge(*seen)
    assert found is not None
    assert found.message == message
    assert found.context["value"] == check.label
