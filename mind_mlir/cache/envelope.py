"""The envelope of the content of an entry, by which anything else is told from it.

    entry    ::= magic "MINDCODE", version u32, 0 u32, key 32 bytes, digest of the content 32 bytes,
                 size of the content u64, zeros up to `HEADER_BYTES`, content          (little-endian)

The header follows from key and content alone, and is compared as a whole: no bit of an entry can change
without notice.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.target.abi import ALIGNMENT

try:
    # What `hashlib.blake2b` is; importing that loads OpenSSL, which takes as long as all else of a hit.
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

if TYPE_CHECKING:
    from collections.abc import Iterable

DIGEST_BYTES = 32

#: Begins a digest of bytes, as the functions of `hashlib` do.
digest_of = partial(blake2b, digest_size=DIGEST_BYTES)

_MAGIC = b"MINDCODE"
#: The form of entries; those of another one are not read.
_VERSION = 2
_FORM = struct.Struct("<8sII32s32sQ")
#: Where the content begins: it is aligned where the entry is.
HEADER_BYTES = 2 * ALIGNMENT
#: The digits of a key: those of a digest.
KEY_DIGITS = 64


def header(key: str, parts: Iterable[bytes | memoryview]) -> bytes:
    """Return what stands before a content that is these parts, one behind the other."""
    digest, size = digest_of(), 0
    for part in parts:
        digest.update(part)
        size += memoryview(part).nbytes
    fields = _FORM.pack(_MAGIC, _VERSION, 0, bytes.fromhex(key), digest.digest(), size)
    return fields.ljust(HEADER_BYTES, b"\0")


def content_bytes(start: bytes | memoryview, key: str) -> int | None:
    """Return how many bytes the content has of an entry that begins with ``start``; None where it is none."""
    if len(start) != HEADER_BYTES:
        return None
    magic, version, _, own_key, _, size = _FORM.unpack_from(start)
    known = (magic, version, own_key) == (_MAGIC, _VERSION, bytes.fromhex(key))
    return int(size) if known else None


def content(entry: memoryview, key: str) -> memoryview | None:
    """Return the content of an entry; None where it is damaged, or no entry of this key."""
    found = entry[HEADER_BYTES:]
    return found if entry[:HEADER_BYTES] == header(key, [found]) else None
