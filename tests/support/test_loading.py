"""While modules are loaded, nothing is collected."""

from __future__ import annotations

import gc
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from mind_mlir.support.loading import loading

if TYPE_CHECKING:
    from collections.abc import Iterator


def _fail() -> None:
    with loading():
        with loading():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError


@pytest.mark.parametrize("collects", [True, False])
def test_collection_is_as_it_was_afterwards(collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        with pytest.raises(KeyError):
            _fail()
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()


def _load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a module within the block."""
    with loading():
        monkeypatch.setitem(sys.modules, "mind_mlir_loaded", ModuleType("mind_mlir_loaded"))


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """Let nothing be frozen, as the tests' own objects are."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("unfrozen")
def test_what_has_been_loaded_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[object] = [[]]
    _load(monkeypatch)
    assert any(each is kept for each in gc.get_objects(generation=2))
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("unfrozen")
def test_where_nothing_is_loaded_nothing_gets_old() -> None:
    kept: list[object] = [[]]
    with loading():
        pass
    assert not any(each is kept for each in gc.get_objects(generation=2))


def test_what_others_have_frozen_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = gc.get_freeze_count()
    assert frozen, "the tests' own objects"
    _load(monkeypatch)
    assert gc.get_freeze_count() == frozen
