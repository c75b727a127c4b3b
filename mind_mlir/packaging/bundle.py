"""Writes bundles: directories with an object, its header, a shared library, and a manifest of them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.image.errors import CodeError
from mind_mlir.packaging.directories import replace_directory
from mind_mlir.packaging.errors import unsupported
from mind_mlir.packaging.manifest import MANIFEST, File, Manifest, is_manifest
from mind_mlir.support.artefact_kinds import HEADER, OBJECT, SHARED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mind_mlir.image.entry import Entry

#: How the names of files end that a bundle is made of.
_ENDINGS = (".o", ".h", ".so")


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
) -> None:
    """Write a bundle, which takes the place of one that is there; nobody sees half of it.

    Args:
        path: The directory.
        library: What the names of its C functions and files begin with.
        compiler: The version of the compiler.
        machine: What it runs on.
        features: What the processor has to have.
        entries: Its functions.
        contents: What is in its files, by what they are: an object, a header, and perhaps a shared library.

    Raises:
        ArtefactError: E6504, nobody could load it.
        OutputError: It cannot be written, or something is there that is no bundle.
    """
    names = file_names(library)
    files = {role: File.of(names[role], data) for role, data in contents.items()}
    manifest = Manifest(library, compiler, machine, tuple(features), tuple(entries), files)
    described = manifest.to_bytes()
    try:
        Manifest.from_bytes(described)
    except CodeError as error:
        raise unsupported("size", f"no bundle can hold the program: {error}") from None
    data = {MANIFEST: described} | {names[role]: data for role, data in contents.items()}
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
