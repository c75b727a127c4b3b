"""`mind-mlir cache`: what is kept, and being rid of it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from cli_harness import SUM, invoke, succeed
from made_code import code

from mind_mlir.cache.codes import keep_code
from mind_mlir.cache.store import Store

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = "01" * 32, "ab" * 32


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a cache of two entries, which is the one of the environment."""
    cache = Store(tmp_path / "cache", 1 << 20)
    monkeypatch.setenv("MIND_MLIR_CACHE_DIR", str(cache.directory))
    for used, key in ((1_000_000_000, FIRST), (2_000_000_000, SECOND)):
        assert keep_code(cache, key, bytes, code())
        os.utime(cache.path_of(key), (used, used))
    return cache


def damage(cache: Store) -> None:
    path = cache.path_of(FIRST)
    path.write_bytes(path.read_bytes()[:-1])
    os.utime(path, (1_000_000_000, 1_000_000_000))


def test_list(cache: Store) -> None:
    size = f"{cache.path_of(FIRST).stat().st_size / 1024:.1f} KB"
    head, titles, *rows = succeed("cache", "list").splitlines()
    assert head.startswith(f"{cache.directory}: 2 entries, ")
    assert head.endswith(" of 1.0 GB")
    assert titles.split("  ")[0] == "key"
    assert [" ".join(row.split()) for row in rows] == [
        f"abababababab {size} 2033-05-18 03:33:20 f",
        f"010101010101 {size} 2001-09-09 01:46:40 f",
    ]


def test_list_of_another_directory(cache: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_CACHE_LIMIT", "512M")
    assert (
        succeed("cache", "list", "--dir", tmp_path / "no")
        == f"{tmp_path}/no: 0 entries, 0 bytes of 512.0 MB\n"
    )
    cache.directory.chmod(0o777)
    assert succeed("cache", "list").startswith(f"{cache.directory} is not used as a cache: others may write")


def test_what_is_of_no_use(cache: Store) -> None:
    assert succeed("cache", "verify").startswith("OK: 2 entries, ")
    damage(cache)
    assert "of no use: it is damaged, or of another version" in succeed("cache", "list")
    result = invoke("cache", "verify", "--json")
    assert result.exit_code == 1
    (entry,) = json.loads(result.stdout)["entries"]
    assert (entry["key"], entry["problem"]) == (FIRST, "it is damaged, or of another version")
    result = invoke("cache", "verify", "--remove")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].endswith(" are of no use")
    assert not cache.path_of(FIRST).exists()
    assert succeed("cache", "verify").startswith("OK: 1 entry, ")


def test_clear(cache: Store) -> None:
    (cache.directory / "notes").write_text("mine")
    assert succeed("cache", "clear").startswith("removed 2 entries, ")
    assert sorted(path.name for path in cache.directory.iterdir()) == ["CACHEDIR.TAG", "notes"]
    assert json.loads(succeed("cache", "list", "--json")) == {
        "directory": str(cache.directory),
        "limit": 1 << 30,
        "problem": None,
        "entries": [],
    }


@pytest.mark.parametrize(("name", "value"), [("CACHE", "perhaps"), ("CACHE_LIMIT", "much")])
def test_variables_are_checked(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("MIND_MLIR_CACHE", "on")
    monkeypatch.setenv(f"MIND_MLIR_{name}", value)
    result = invoke("cache", "list")
    assert result.exit_code == 2
    assert f"MIND_MLIR_{name} must be" in result.stderr


def test_run_keeps_code_where_it_is_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "cache"
    monkeypatch.setenv("MIND_MLIR_CACHE_DIR", str(place))
    (tmp_path / "model.ir").write_text(SUM)

    def run(*options: str) -> tuple[str, str]:
        result = invoke("run", tmp_path / "model.ir", "--input=ones", "--timing", *options)
        assert result.exit_code == 0
        return result.stdout, result.stderr

    def kept() -> bool:
        return "main" in succeed("cache", "list")

    expected = run("--no-cache")[0]
    assert not kept()
    for compiles in (True, False):
        output, timings = run("--cache")
        assert output == expected
        assert ("codegen" in timings) == compiles
        assert kept()
    # Whoever wants to see the stages has the program go through them.
    assert "codegen" in run("--cache", "--dump-stages", str(tmp_path / "stages"))[1]
    assert (tmp_path / "stages" / "00-core.ir").exists()
