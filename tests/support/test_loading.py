"""While modules are loaded, nothing is collected."""

from __future__ import annotations

import gc

import pytest

from mind_mlir.support.loading import loading


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
