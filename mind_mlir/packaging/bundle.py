"""Writes bundles: directories with an object, its header, a shared library, and a manifest of them all."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.image.errors import CodeError
from mind_mlir.outputs.errors import OutputError
from mind_mlir.packaging.errors import unsupported
from mind_mlir.packaging.manifest import MANIFEST, BundleFile, Manifest, is_manifest
from mind_mlir.packaging.weights import ENDING, GivenWeights
from mind_mlir.support.artefact_kinds import HEADER, OBJECT, SHARED
from mind_mlir.support.interrupts import allowed, held

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir.image.entry import Entry


#: How the names of files end that a bundle is made of.
_ENDINGS = (".o", ".h", ".so", ENDING)


def file_names(library: str) -> Mapping[str, str]:
    """Return the names of the files of a bundle by what they are."""
    return {OBJECT: f"{library}.o", HEADER: f"{library}.h", SHARED: f"lib{library}.so"}


def write_bundle(
    path: Path,
    *,
    library: str,
    compiler: str,
    machine: str,
    features: Sequence[str],
    entries: Sequence[Entry],
    contents: Mapping[str, bytes],
    weights: GivenWeights | None = None,
) -> None:
    """Write a bundle, which takes the place of one that is there; nobody sees half of it.

    The weights that it is given are written beside the others, or stay where they are.

    Raises:
        ArtefactError: E6504, nobody could load it.
        OutputError: It cannot be written, or something is there that is no bundle.
    """
    names = file_names(library)
    files = {role: BundleFile.of(names[role], data) for role, data in contents.items()}
    described_weights, more = (None, {}) if weights is None else weights.described(library, path)
    manifest = Manifest(library, compiler, machine, tuple(features), tuple(entries), files, described_weights)
    described = manifest.to_bytes()
    try:
        Manifest.from_bytes(described)
    except CodeError as error:
        raise unsupported("size", f"no bundle can hold the program: {error}") from None
    written = {MANIFEST: described} | {names[role]: data for role, data in contents.items()}
    data: dict[str, Sequence[bytes | memoryview]] = {name: [each] for name, each in written.items()}
    data |= more
    replace_directory(path, data, _is_bundle, "it is there, and is no bundle that could be replaced")


def _is_bundle(directory: Path) -> bool:
    """Return whether a directory is a bundle, damaged or not, and holds nothing that no bundle has."""
    try:
        with (directory / MANIFEST).open("rb") as file:
            if not is_manifest(file):
                return False
    except OSError:
        return False
    others = [each for each in directory.iterdir() if each.name != MANIFEST]
    return all(each.name.endswith(_ENDINGS) and not each.is_dir() for each in others)


#: What Linux calls giving two files each other's names at once, and the directory that paths start from.
_EXCHANGE, _HERE = 2, -100


def replace_directory(
    path: Path,
    files: Mapping[str, Sequence[bytes | memoryview]],
    may_replace: Callable[[Path], bool],
    reason: str,
) -> None:
    """Write a directory of files beside ``path`` and give it that name: no reader sees half of it.

    A symbolic link stays one; what it refers to is replaced. So is a directory that is empty or that
    ``may_replace`` accepts; another one is refused for the ``reason``.

    Raises:
        OutputError: It cannot be written; what was there before is still there.
    """
    try:
        if not os.fspath(path):
            raise OSError(errno.EINVAL, "the name is empty")
        target = path.resolve()
        if os.path.lexists(target) and not (target.is_dir() and (_is_empty(target) or may_replace(target))):
            raise OSError(errno.EEXIST, reason)
        _replace(target, files)
    except ValueError as error:  # a NUL character in the path
        raise OutputError(path, OSError(errno.EINVAL, str(error))) from error
    except OSError as error:
        raise OutputError(path, error) from error


def _is_empty(directory: Path) -> bool:
    return next(directory.iterdir(), None) is None


def _replace(target: Path, files: Mapping[str, Sequence[bytes | memoryview]]) -> None:
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    with held():  # nothing comes between the temporary directory and its removal
        try:
            temporary.mkdir()
            with allowed():
                for name, data in files.items():
                    with (temporary / name).open("wb") as file:
                        file.writelines(data)
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            take_name(temporary, target)
        finally:
            # What is left here is what was there before, or what could not be finished.
            shutil.rmtree(temporary, ignore_errors=True)


def take_name(temporary: Path, target: Path) -> None:
    """Give a directory the name of another, which has the first one's afterwards, if it is there."""
    try:
        temporary.rename(target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        _exchange(temporary, target)


def _exchange(new: Path, old: Path) -> None:
    """Give two directories each other's names: at once where the system can, or else one after the other."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        paths = [word for path in (new, old) for word in (_HERE, ctypes.c_char_p(os.fsencode(path)))]
        if call(*paths, _EXCHANGE) == 0:
            return
        if ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    aside = new.with_name(f"{new.name}.old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    aside.rename(new)
