"""The manifest of a bundle: what is in its files, and how its functions are called.

It is a file of JSON whose last member is the digest of all that stands before. So is each byte of a bundle
covered by a digest, those of the manifest included.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, BinaryIO

from mind_mlir.image.entry import Entry, count, item, items
from mind_mlir.image.errors import CodeError
from mind_mlir.packaging.weights import WeightsFile
from mind_mlir.support.artefact_kinds import HEADER, OBJECT, SHARED
from mind_mlir.support.lazy_dataclass import dataclass

#: The name of the file.
MANIFEST = "manifest.json"
#: No manifest is larger: it has some hundred bytes for each function, input, output and check.
MOST_BYTES = 64 << 20
#: What the files of a bundle are, in order: those that every bundle has, and one that it may have.
_ROLES = (OBJECT, HEADER, SHARED)
_NEEDED = (OBJECT, HEADER)

_FORMAT = "mind_mlir bundle"
_VERSION = 2
_HEAD = f'{{\n "format": "{_FORMAT}",\n'.encode("ascii")
_HEX = 64
#: How a manifest ends: the digest of all bytes before this.
_TAIL = re.compile(rb',\n "sha256": "([0-9a-f]{64})"\n}\n\Z')
_TAIL_BYTES = len(',\n "sha256": ""\n}\n') + _HEX
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file of a bundle.

    Attributes:
        name: Its name in the directory.
        size: How many bytes it has.
        digest: Their SHA-256, in hexadecimal digits.
    """

    name: str
    size: int
    digest: str

    @classmethod
    def of(cls, name: str, data: bytes) -> BundleFile:
        """Return what a manifest says of a file that holds ``data``."""
        return cls(name, len(data), digest_of(data))


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a bundle: its functions, its files and what they run on.

    Attributes:
        library: What the names of its C functions begin with.
        compiler: The version of the compiler that wrote it.
        machine: What it runs on, ``x86_64`` or ``aarch64``.
        features: What the processor has to have, as Linux calls it.
        entries: Its functions.
        files: Its files by what they are.
        weights: The file of weights that it maps, if there is one.
    """

    library: str
    compiler: str
    machine: str
    features: tuple[str, ...]
    entries: tuple[Entry, ...]
    files: Mapping[str, BundleFile]
    weights: WeightsFile | None = None

    def to_bytes(self) -> bytes:
        """Return the file."""
        data = {
            "format": _FORMAT,
            "version": _VERSION,
            "library": self.library,
            "compiler": self.compiler,
            "machine": self.machine,
            "features": list(self.features),
            "files": {
                role: {"name": file.name, "bytes": file.size, "sha256": file.digest}
                for role, file in self.files.items()
            },
            "functions": [entry.to_json() for entry in self.entries],
        }
        if self.weights is not None:
            data["weights"] = self.weights.to_json()
        return sealed(data)

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Return what a file says.

        Raises:
            CodeError: It is no manifest, or damaged.
        """
        if len(data) > MOST_BYTES:
            raise CodeError(f"{MANIFEST} has {len(data)} bytes instead of at most {MOST_BYTES}")
        fields = unsealed(data)
        if fields.get("format") != _FORMAT:
            raise CodeError(f"{MANIFEST} does not describe a bundle")
        version = item(fields, "version", int)
        if version != _VERSION:
            raise CodeError(f"it is of version {_number(version)}, and version {_VERSION} is read here")
        files = item(fields, "files", dict)
        if not set(_NEEDED) <= files.keys() <= set(_ROLES):
            raise CodeError(f"the files of a bundle are {', '.join(_ROLES)}")
        found = {role: _file(files[role]) for role in _ROLES if role in files}
        if len({MANIFEST, *(file.name for file in found.values())}) != len(found) + 1:
            raise CodeError("two files of the bundle have one name")
        entries = tuple(Entry.from_json(each) for each in items(fields, "functions"))
        if len({entry.name for entry in entries}) != len(entries):
            raise CodeError("two functions of the bundle have one name")
        features = items(fields, "features")
        if not all(isinstance(each, str) for each in features):
            raise CodeError("each of features must be of type str")
        library = item(fields, "library", str)
        if not _IDENTIFIER.match(library):
            raise CodeError("library must be an identifier")
        return cls(
            library,
            item(fields, "compiler", str),
            item(fields, "machine", str),
            tuple(features),
            entries,
            found,
            WeightsFile.from_json(fields["weights"]) if "weights" in fields else None,
        )


def is_manifest(file: BinaryIO) -> bool:
    """Return whether a file begins as a manifest does."""
    return file.read(len(_HEAD)) == _HEAD


def sealed(fields: Mapping[str, Any]) -> bytes:
    """Return an object of JSON as a file whose last member is the digest of what stands before."""
    text = json.dumps(fields, indent=1, ensure_ascii=True, allow_nan=False)
    body = text.removesuffix("\n}").encode("ascii")
    return body + f',\n "sha256": "{digest_of(body)}"\n}}\n'.encode("ascii")


def unsealed(data: bytes) -> dict[str, Any]:
    """Return what `sealed` made a file of.

    Raises:
        CodeError: It did not make it.
    """
    tail = _TAIL.search(data[-_TAIL_BYTES:])
    if tail is None:
        raise CodeError(f"{MANIFEST} does not end as a manifest does")
    body = memoryview(data)[:-_TAIL_BYTES]
    if digest_of(body) != tail[1].decode("ascii"):
        raise CodeError(f"{MANIFEST} was changed after it was written")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CodeError(f"{MANIFEST} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise CodeError(f"{MANIFEST} holds no object")
    return fields


def digest_of(data: bytes | memoryview) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def _file(data: object) -> BundleFile:
    file = BundleFile(item(data, "name", str), count(data, "bytes"), item(data, "sha256", str))
    if not _NAME.match(file.name):
        raise CodeError("the name of a file must be one in the bundle itself")
    if not _DIGEST.match(file.digest):
        raise CodeError("a digest must have 64 hexadecimal digits")
    return file


def _number(value: int) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
