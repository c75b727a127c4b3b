"""Looking through a cache, for people: what it holds, whether that is whole, and how to be rid of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.cache.codes import functions_of
from mind_mlir.cache.files import directory_trouble, file_trouble, read_entry
from mind_mlir.cache.removal import CacheFile, files_of, remove
from mind_mlir.image.errors import CodeError
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Found:
    """An entry, as it was found.

    Attributes:
        file: The file.
        functions: The functions that its code has, by name; none where it is of no use.
        problem: Why nothing is read from it, or None.
    """

    file: CacheFile
    functions: tuple[str, ...]
    problem: str | None


def problem_of(directory: Path) -> str | None:
    """Return why a directory is not used as a cache, or None where it is, or would be were it there."""
    try:
        return directory_trouble(directory)
    except OSError as error:
        return error.strerror or str(error)


def look_through(directory: Path) -> list[Found]:
    """Return all entries of a cache, each read and checked, those used last first."""
    files = [file for file in _files(directory) if file.is_entry]
    files.sort(key=lambda file: (-file.used_ns, file.path.name))
    return [_found(file) for file in files]


def clear(directory: Path) -> list[CacheFile]:
    """Remove all files of a cache; return those that could be removed. What is none of its own stays."""
    return remove(_files(directory))


def _files(directory: Path) -> list[CacheFile]:
    try:
        return list(files_of(directory))
    except OSError:
        return []


def _found(file: CacheFile) -> Found:
    try:
        problem = file_trouble(file.path)
        content = None if problem else read_entry(file.path, file.key)
    except OSError as error:
        return Found(file, (), error.strerror or str(error))
    if content is None:
        return Found(file, (), problem or "it is damaged, or of another version")
    try:
        return Found(file, functions_of(content[0]), None)
    except CodeError as error:
        return Found(file, (), str(error))
