"""Which changes of a file are mutants, and which tests are tried on one; a library makes the changes."""

from __future__ import annotations

import pytest
from meaning import meaning_of
from trial import Record, choose_tests

BEFORE = """
from __future__ import annotations
if TYPE_CHECKING:
    from a import b
@dataclass(frozen=True, slots=True, eq=True)
class C:
    x: int | None = 1
def f(a: int, *, b: int | str = 2) -> list[int] | None:
    total: int = 0
    for c, d in zip(a, b, strict=True):
        assert c, "message"
        total = cast("int", c + d)
    return total
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int | None", "int & None"),
        ("int | str", "int + str"),
        ("list[int] | None", "list[int] - None"),
        ("f(a: int, *, b", "f(a: int, /, b"),
        ("strict=True", "strict=False"),
        ("frozen=True, slots=True", "frozen=False, slots=False"),
        ("from a import b", "from a import c"),
        ("if TYPE_CHECKING", "if not TYPE_CHECKING"),
        ('cast("int", c', 'cast("str", c'),
    ],
)
def test_changes_without_a_meaning_are_no_mutants(old: str, new: str) -> None:
    changed = BEFORE.replace(old, new)
    assert changed != BEFORE
    assert meaning_of(changed) == meaning_of(BEFORE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("None = 1", "None = 2"),
        ("str = 2", "str = 3"),
        ("int = 0", "int = 1"),
        ("eq=True", "eq=False"),
        ("c + d", "c - d"),
        ("assert c", "assert not c"),
        ("zip(a, b", "zip(b, a"),
        ("return total", "return not total"),
    ],
)
def test_changes_with_a_meaning_are(old: str, new: str) -> None:
    assert meaning_of(BEFORE.replace(old, new, 1)) not in (meaning_of(BEFORE), None)


def test_what_does_not_parse_is_no_mutant() -> None:
    assert meaning_of("x = (1 +") is None


def test_tests_of_the_line_go_first_and_quick_ones_before_slow_ones() -> None:
    record = Record(
        {"slow": 3.0, "quick": 0.1, "file": 0.2, "other file": 0.0, "b": 1.0, "a": 1.0},
        {
            "p.py": {"7": ["slow", "quick", "b", "a"], "8": ["file", "quick"]},
            "q.py": {"7": ["other file"]},
        },
    )
    assert choose_tests(record, "p.py", 7) == ["quick", "a", "b", "slow", "file"]
    assert choose_tests(record, "p.py", 9) == ["quick", "file", "a", "b", "slow"]
    assert choose_tests(record, "r.py", 1) == []
