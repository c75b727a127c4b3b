"""Compiled code in a cache: one entry for equal programs, but for what their checks say."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import pytest
from made_code import code

from mind_mlir.cache.codes import find_code, keep_code
from mind_mlir.cache.inspection import look_through
from mind_mlir.cache.store import Store

if TYPE_CHECKING:
    from pathlib import Path

KEY = "0123456789abcdef" * 4


@pytest.fixture
def cache(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache", 1 << 20)


def labels_of(text: bytes) -> bytes:
    return text.ljust(32, b".")


def test_code_is_found_again(cache: Store) -> None:
    def never() -> bytes:
        raise AssertionError("code without checks is for every text")

    assert find_code(cache, KEY, never) is None
    assert keep_code(cache, KEY, never, code())
    found = find_code(cache, KEY, never)
    assert found is not None
    assert (found.entries, found.features) == (code().entries, code().features)
    assert bytes(found.image.memory) == code().image.memory
    assert [(each.symbol, bytes(each.data)) for each in found.data] == [("weights", bytes(range(100)))]


def test_code_with_checks_is_for_one_text(cache: Store) -> None:
    """Two texts of one program have their code side by side, whichever comes first."""
    for text in (b"one", b"two"):
        assert find_code(cache, KEY, partial(labels_of, text)) is None
        assert keep_code(cache, KEY, partial(labels_of, text), code(label=text.decode()))
    for text in (b"one", b"two", b"one"):
        found = find_code(cache, KEY, partial(labels_of, text))
        assert found is not None
        assert [check.label for check in found.entries[0].checks] == [text.decode()]
    assert find_code(cache, KEY, partial(labels_of, b"three")) is None
    assert len(look_through(cache.directory)) == 2


@pytest.mark.parametrize("content", [b"", bytes(64), bytes(63), bytes(200), b"1" * 200])
def test_what_is_no_code_is_a_miss(cache: Store, content: bytes) -> None:
    """An entry that is whole may still be none of ours: another program can have the same form of files."""
    cache.put(KEY, [content])
    assert find_code(cache, KEY, lambda: content[:32]) is None
    (found,) = look_through(cache.directory)
    assert found.problem is not None


def test_any_changed_byte_of_code_is_a_miss(cache: Store) -> None:
    keep_code(cache, KEY, bytes, code())
    path = cache.path_of(KEY)
    whole, draw = path.read_bytes(), random.Random(3)  # noqa: S311 -- no secret
    for _ in range(200):
        changed = bytearray(whole)
        changed[draw.randrange(len(whole))] ^= draw.randrange(1, 256)
        path.write_bytes(changed)
        assert find_code(cache, KEY, bytes) is None
    (found,) = look_through(cache.directory)
    assert found.problem == "it is damaged, or of another version"
    path.write_bytes(whole)
    (found,) = look_through(cache.directory)
    assert (found.problem, found.functions) == (None, ("f",))
