"""Tiles of AMX are used where the processor has them and Linux lets the process use them."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mind_mlir.target import (
    FEATURES,
    host,
    host_features,
    named,
    named_target,
    refused_features,
    required_features,
    runnable_target,
    tile_state,
)
from mind_mlir.target.host import host_flags, host_target

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="a part of x86-64")
AMX = named_target("amx")
#: What Linux says of a processor with all that the target has.
FLAGS = frozenset(word for name in required_features(AMX) for word in FEATURES["x86_64"][name].linux)


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Let this machine be one with AMX, in a process that has not asked for it."""
    monkeypatch.setattr(host, "_processor_flags", lambda: FLAGS)
    monkeypatch.setenv(tile_state.SWITCH, "1")
    for each in (host_flags, host_target):
        each.cache_clear()
    yield monkeypatch
    for each in (host_flags, host_target):
        each.cache_clear()


def refuse(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr(tile_state, "tiles_refusal", lambda: words)


def test_with_leave_the_machine_has_them(processor: pytest.MonkeyPatch) -> None:
    refuse(processor, "")
    assert {"amx-tile", "amx-bf16", "amx-int8"} <= host_features()
    assert (host_target().bf16_tiles, host_target().integer_tiles) == (True, True)
    assert runnable_target("amx") is AMX
    assert refused_features() == ""


def test_without_leave_it_has_none_and_says_why(processor: pytest.MonkeyPatch) -> None:
    refuse(processor, "No space left on device")
    assert not [name for name in host_features() if name.startswith("amx")]
    assert (host_target().bf16_tiles, host_target().integer_tiles) == (False, False)
    assert host_target().bf16_dots
    with pytest.raises(
        ValueError, match=r"avx512, which .*not run; Linux gives this process no .* No space left"
    ):
        runnable_target("amx")
    processor.setattr(named, "host_features", frozenset)
    with pytest.raises(ValueError, match=r"not run$"):
        runnable_target("avx512")


def test_they_are_off_unless_somebody_wants_them(processor: pytest.MonkeyPatch) -> None:
    processor.delenv(tile_state.SWITCH)
    processor.setattr(tile_state, "tiles_refusal", lambda: pytest.fail("nothing is to be asked"))
    assert not [name for name in host_features() if name.startswith("amx")]
    with pytest.raises(ValueError, match="off unless MIND_MLIR_AMX is 1"):
        runnable_target("amx")


def test_nothing_is_asked_of_processors_without_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> str:
        raise AssertionError

    monkeypatch.setattr(tile_state, "tiles_refusal", ask)
    flags = frozenset(("avx2", "avx512f"))
    assert tile_state.usable_flags(flags) == flags
    assert tile_state.refusal_in_words(flags) == ""


def test_linux_is_asked_once_and_refuses_in_words() -> None:
    """In a process of its own: leave is for good."""
    code = (
        "import ctypes, mind_mlir.target.tile_state as state\n"
        "first = state.tiles_refusal()\n"
        "ctypes.CDLL = None\n"
        "assert state.tiles_refusal() is first\n"
        "flags = open('/proc/cpuinfo').read().split()\n"
        "assert first or 'amx_tile' in flags, 'granted to a processor without tiles'\n"
        "print(repr(first))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
