"""Entries on disk: what is kept is read again, and nothing else ever is."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mind_mlir.cache import files
from mind_mlir.cache.envelope import HEADER_BYTES
from mind_mlir.cache.inspection import clear, problem_of
from mind_mlir.cache.removal import remove_least_used
from mind_mlir.cache.store import Store
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = bytes(range(251)) * 4


def key(number: int) -> str:
    """Return a key."""
    return hashlib.sha256(str(number).encode()).hexdigest()


@pytest.fixture
def cache(tmp_path: Path) -> Store:
    """Return an empty cache of 1 MB, whose directory is not there yet."""
    return Store(tmp_path / "new" / "cache", 1 << 20)


def read(cache: Store, number: int = 1) -> bytes | None:
    content = cache.get(key(number))
    return None if content is None else bytes(content)


def test_what_is_put_is_got(cache: Store) -> None:
    assert cache.get(key(1)) is None
    assert cache.put(key(1), [b"ab", memoryview(b"cd"), b""])
    assert cache.put(key(2), [])
    content = cache.get(key(1))
    assert content is not None
    assert (bytes(content), content.readonly) == (b"abcd", True)
    assert read(cache, 2) == b""
    assert read(cache, 3) is None
    assert cache.put(key(1), [b"other"])
    assert read(cache) == b"other"
    assert bytes(content) == b"abcd"


def test_contents_are_aligned(cache: Store) -> None:
    import numpy as np  # noqa: PLC0415 -- for the address

    for number in range(4):
        cache.put(key(number), [bytes(1000 * number + 1)])
        assert np.frombuffer(cache.get(key(number)) or b"", np.uint8).ctypes.data % ALIGNMENT == 0


def test_any_changed_byte_is_a_miss(cache: Store) -> None:
    """All bytes of the header are changed, each to another value, and so are those of the content."""
    assert cache.put(key(1), [CONTENT, bytes(2000 - HEADER_BYTES - len(CONTENT))])
    path = cache.path_of(key(1))
    whole, draw = path.read_bytes(), random.Random(2)  # noqa: S311 -- no secret
    assert len(whole) == 2000
    with path.open("r+b", buffering=0) as file:
        for at, byte in enumerate(whole):
            os.pwrite(file.fileno(), bytes([byte ^ draw.randrange(1, 256)]), at)
            assert cache.get(key(1)) is None, at
            os.pwrite(file.fileno(), bytes([byte]), at)
    assert cache.get(key(1)) is not None


@pytest.mark.parametrize("size", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, -1])
def test_part_of_an_entry_is_a_miss(cache: Store, size: int) -> None:
    cache.put(key(1), [CONTENT])
    path = cache.path_of(key(1))
    path.write_bytes(path.read_bytes()[:size])
    assert cache.get(key(1)) is None


def test_more_than_an_entry_is_a_miss(cache: Store) -> None:
    cache.put(key(1), [CONTENT])
    path = cache.path_of(key(1))
    path.write_bytes(path.read_bytes() + b"\0")
    assert cache.get(key(1)) is None


def test_an_entry_under_another_key_is_a_miss(cache: Store) -> None:
    cache.put(key(1), [CONTENT])
    cache.path_of(key(1)).rename(cache.path_of(key(2)))
    assert cache.get(key(2)) is None


@pytest.mark.parametrize("what", ["entry", "directory"])
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_what_others_may_write_to_is_not_read(cache: Store, what: str, mode: int) -> None:
    cache.put(key(1), [CONTENT])
    (cache.path_of(key(1)) if what == "entry" else cache.directory).chmod(mode)
    assert cache.get(key(1)) is None
    assert cache.put(key(1), [CONTENT]) is (what == "entry")
    assert (problem_of(cache.directory) is None) is (what == "entry")


def test_what_belongs_to_others_is_not_read(cache: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(key(1), [CONTENT])
    monkeypatch.setattr(os, "geteuid", lambda: cache.directory.stat().st_uid + 1)
    assert cache.get(key(1)) is None
    assert not cache.put(key(2), [CONTENT])
    assert problem_of(cache.directory) == "it belongs to another user"


def test_a_file_of_another_user_in_our_directory_is_not_read(
    cache: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(key(1), [CONTENT])
    ours = os.fstat

    def theirs(descriptor: int) -> os.stat_result:
        fields = list(ours(descriptor))
        fields[4] += 1  # st_uid
        return os.stat_result(fields)

    monkeypatch.setattr(files.os, "fstat", theirs)  # type: ignore[attr-defined] # what the module reads by
    assert cache.get(key(1)) is None


def test_links_pipes_and_directories_are_not_read(cache: Store, tmp_path: Path) -> None:
    cache.put(key(1), [CONTENT])
    path = cache.path_of(key(1))
    elsewhere = path.rename(tmp_path / "elsewhere")
    path.symlink_to(elsewhere)
    assert cache.get(key(1)) is None
    path.unlink()
    os.mkfifo(path)
    assert cache.get(key(1)) is None  # and nothing waits for a writer
    path.unlink()
    path.mkdir()
    assert cache.get(key(1)) is None
    assert not cache.put(key(1), [CONTENT])
    assert names(cache) == {path.name, "CACHEDIR.TAG"}


def test_a_directory_that_is_a_file_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        cache = Store(place, 1 << 20)
        assert not cache.put(key(1), [CONTENT])
        assert cache.get(key(1)) is None
        assert problem_of(place) is not None
    assert (tmp_path / "file").read_text() == "mine"


def test_what_does_not_fit_on_the_disk_is_not_kept(cache: Store) -> None:
    """The system lets files have 300 bytes, and says so in the middle of one, as where a disk is full."""
    cache.put(key(1), [CONTENT])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    try:
        assert not cache.put(key(2), [CONTENT])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(cache) == {cache.path_of(key(1)).name, "CACHEDIR.TAG"}
    assert read(cache) == CONTENT


#: Gets one entry and puts another one in the directory that it is in. For root nothing is read-only: it
#: becomes somebody else, who owns the directory.
READ_ONLY = """
import os, sys
from pathlib import Path
from mind_mlir.cache.store import Store
if os.geteuid() == 0:
    for path in (".", *os.listdir()):
        os.chown(path, 12345, 12345)
    os.seteuid(12345)
cache = Store(Path(), 1 << 20)
print(len(cache.get(sys.argv[1])), cache.put(sys.argv[2], [b"new"]))
"""


def test_a_read_only_directory_is_read(cache: Store) -> None:
    cache.put(key(1), [CONTENT])
    cache.directory.chmod(0o500)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, key(1), key(2)],
        cwd=cache.directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{len(CONTENT)} False\n", "")


def test_those_used_least_recently_go_first(cache: Store) -> None:
    for number in range(8):
        assert cache.put(key(number), [bytes(100_000)])
        os.utime(cache.path_of(key(number)), (1000 + number, 1000 + number))
    assert cache.get(key(0)) is not None  # and is marked as used now
    again = Store(cache.directory, 512 << 10)
    assert again.put(key(9), [bytes(100_000)])
    left = {number for number in range(10) if cache.path_of(key(number)).exists()}
    assert left == {0, 9, 7, 6}


def test_a_process_looks_again_when_it_has_added_much(cache: Store) -> None:
    for number in range(40):
        assert cache.put(key(number), [bytes(100_000)])
    total = sum(path.stat().st_size for path in cache.directory.iterdir())
    assert total <= cache.limit * (1 + 1 / 16) + 101_000
    assert cache.get(key(39)) is not None


def test_what_is_larger_than_the_cache_is_not_kept(cache: Store) -> None:
    assert not cache.put(key(1), [bytes(1 << 20)])
    assert not cache.directory.exists()


def test_a_use_is_marked_once_a_minute(cache: Store) -> None:
    cache.put(key(1), [CONTENT])
    path = cache.path_of(key(1))
    before = path.stat().st_mtime_ns
    cache.get(key(1))
    assert path.stat().st_mtime_ns == before
    os.utime(path, (1000, 1000))
    cache.get(key(1))
    assert path.stat().st_mtime_ns >= before


def test_what_killed_processes_leave_goes(cache: Store) -> None:
    cache.put(key(1), [CONTENT])
    old, new = (cache.directory / f".{key(1)[:16]}-77-{digit * 16}.tmp" for digit in "ab")
    mine = cache.directory / "notes.tmp"
    for path in (old, new, mine):
        path.write_bytes(b"half")
    os.utime(old, (1000, 1000))
    os.utime(mine, (1000, 1000))
    Store(cache.directory, cache.limit).put(key(2), [CONTENT])
    assert [path.exists() for path in (old, new, mine)] == [False, True, True]


def test_what_is_dated_in_the_future_ages_from_now_on(cache: Store) -> None:
    day = 86400 * 10**9
    for number in (1, 2):
        cache.put(key(number), [bytes(100_000)])
    first, second = (cache.path_of(key(number)) for number in (1, 2))
    half = cache.directory / f".{key(1)[:16]}-77-{'d' * 16}.tmp"
    half.write_bytes(b"half")
    for path in (first, half):
        os.utime(path, ns=(1000 * day, 1000 * day))
    os.utime(second, ns=(day, day))
    remove_least_used(cache.directory, 1 << 20, day)
    assert first.exists()
    assert half.exists()
    os.utime(second, ns=(2 * day, 2 * day))
    remove_least_used(cache.directory, 150_000, 2 * day)
    assert [path.exists() for path in (first, second, half)] == [False, True, False]


def test_clear_removes_what_is_its_own(cache: Store) -> None:
    cache.put(key(1), [CONTENT])
    (cache.directory / "notes").write_text("mine")
    (cache.directory / f".{key(1)[:16]}-77-{'c' * 16}.tmp").write_bytes(b"half")
    assert len(clear(cache.directory)) == 2
    assert names(cache) == {"notes", "CACHEDIR.TAG"}
    assert clear(cache.directory / "nowhere") == []


def names(cache: Store) -> set[str]:
    return {path.name for path in cache.directory.iterdir()}
