"""Where the cache is: callers, the environment and the platform."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mind_mlir
from mind_mlir import Builder, DType, TensorType
from mind_mlir.cache.directory import cache_directory, checked_choice, store_for


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the environment say nothing, on Linux."""
    for name in ("CACHE", "CACHE_DIR", "CACHE_LIMIT"):
        monkeypatch.delenv(f"MIND_MLIR_{name}", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(sys, "platform", "linux")


def test_the_directory_of_each_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_directory() == "/home/me/.cache/mind-mlir"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the specification
    assert cache_directory() == "/home/me/.cache/mind-mlir"
    monkeypatch.setenv("XDG_CACHE_HOME", "/fast")
    assert cache_directory() == "/fast/mind-mlir"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_directory() == "/home/me/Library/Caches/mind-mlir"
    monkeypatch.setenv("MIND_MLIR_CACHE_DIR", "/own")
    assert cache_directory() == "/own"


def test_callers_come_before_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def places() -> list[str | None]:
        stores = [store_for(choice) for choice in (None, True, False, str(tmp_path))]
        return [None if store is None else str(store.directory) for store in stores]

    usual, own = "/home/me/.cache/mind-mlir", str(tmp_path)
    assert places() == [usual, usual, None, own]
    monkeypatch.setenv("MIND_MLIR_CACHE", "off")
    assert places() == [None, usual, None, own]
    monkeypatch.setenv("MIND_MLIR_CACHE", "ON")
    monkeypatch.setenv("MIND_MLIR_CACHE_DIR", "/own")
    assert places() == ["/own", "/own", None, own]
    monkeypatch.chdir(tmp_path)
    assert checked_choice(Path("below")) == "below"
    store = store_for("below")
    assert store is not None
    assert store.directory == tmp_path / "below"


@pytest.mark.parametrize(
    ("text", "limit"), [("", 1 << 30), ("12345", 12345), ("512M", 512 << 20), ("2gib", 2 << 30), ("0", 0)]
)
def test_the_limit(monkeypatch: pytest.MonkeyPatch, text: str, limit: int) -> None:
    monkeypatch.setenv("MIND_MLIR_CACHE_LIMIT", text)
    store = store_for()
    assert store is not None
    assert store.limit == limit


@pytest.mark.parametrize(
    ("name", "value"), [("CACHE", "no"), ("CACHE_LIMIT", "1.5G"), ("CACHE_LIMIT", "-1"), ("CACHE_LIMIT", "x")]
)
def test_what_the_environment_says_may_be_wrong(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"MIND_MLIR_{name}", value)
    with pytest.raises(ValueError, match=f"MIND_MLIR_{name} must be .*, not '{value}'"):
        store_for()


@pytest.mark.parametrize(
    ("cache", "error"), [(1, TypeError), (b"x", TypeError), ("", ValueError), ("a\0", ValueError)]
)
def test_what_callers_say_may_be_wrong(cache: object, error: type[Exception]) -> None:
    builder = Builder()
    module = builder.build([builder.input("x", TensorType(DType.F32, ()))])
    with pytest.raises(error, match="cache must be "):
        mind_mlir.compile(module, cache=cache)  # type: ignore[call-overload] # that is the point
    with pytest.raises(error, match="cache must be "):
        mind_mlir.jit(abs, cache=cache)  # type: ignore[call-overload] # as above
