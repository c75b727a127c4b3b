"""Digests of what is kept, and of what it is made of."""

from __future__ import annotations

from functools import partial

try:
    # What `hashlib.blake2b` is; importing that loads OpenSSL, which takes as long as all else of a hit.
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

DIGEST_BYTES = 32

#: Begins a digest of bytes, as the functions of `hashlib` do.
digest_of = partial(blake2b, digest_size=DIGEST_BYTES)
