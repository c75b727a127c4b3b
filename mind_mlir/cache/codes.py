"""Compiled code in a cache.

    content ::= digest 32 bytes, zeros up to `ALIGNMENT`, code
    code    ::= a program as `CompiledCode.to_parts` writes it, or an ELF object that programs are linked with

The checks of code tell what a program calls its values and where it has them (`diagnostics.checks`), and so
do its collectives; that is no part of a key: equal programs of different texts have one code. Code with
either is for one text alone; the digest, that of `labels_digest`, says for which, and is zero for other code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.cache.envelope import DIGEST_BYTES, digest_of
from mind_mlir.cache.fingerprint import is_as_loaded
from mind_mlir.image.compiled import CompiledCode
from mind_mlir.image.elf import function_names, is_object
from mind_mlir.image.errors import CodeError
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mind_mlir.cache.store import Store

_DIGEST_BYTES = DIGEST_BYTES
_ANY = bytes(_DIGEST_BYTES)


def find_code(store: Store, key: str, labels: Callable[[], bytes]) -> CompiledCode | None:
    """Return the code of ``key``, or None; ``labels`` gives `labels_digest` where the code has checks."""
    content = store.get(key)
    digest = None if content is None else bytes(content[:_DIGEST_BYTES])
    if content is not None and digest != _ANY and digest != labels():
        # Another text of the program has come first; this one has its place elsewhere.
        content = store.get(_own_key(key, labels()))
    try:
        return None if content is None else read_code(content)
    except CodeError:
        return None


def keep_code(store: Store, key: str, labels: Callable[[], bytes], code: CompiledCode) -> bool:
    """Keep the code of ``key``, which `find_code` has not found; return whether that went well.

    It is not kept where another release of the compiler has come since ``key`` was made.
    """
    if not is_as_loaded():
        return False
    digest = labels() if any(entry.checks or entry.mesh for entry in code.entries) else _ANY
    if digest != _ANY:
        first = store.get(key)
        if first is not None and bytes(first[:_DIGEST_BYTES]) != digest:
            key = _own_key(key, digest)
    return store.put(key, [digest.ljust(ALIGNMENT, b"\0"), *code.to_parts()])


def find_object(store: Store, key: str) -> bytes | None:
    """Return the object of ``key``, or None."""
    content = store.get(key)
    return None if content is None or not is_object(content[ALIGNMENT:]) else bytes(content[ALIGNMENT:])


def keep_object(store: Store, keys: Iterable[str], data: bytes) -> None:
    """Keep an object as that of each of ``keys``, where `keep_code` would keep code."""
    if is_as_loaded():
        for key in keys:
            store.put(key, [_ANY.ljust(ALIGNMENT, b"\0"), data])


def functions_of(content: memoryview) -> tuple[str, ...]:
    """Return the names of the functions that the code of an entry has (CodeError: it is none)."""
    data = content[ALIGNMENT:]
    return (
        function_names(data) if is_object(data) else tuple(each.name for each in read_code(content).entries)
    )


def read_code(content: memoryview) -> CompiledCode:
    """Return the code of the content of an entry; it refers to that (CodeError: it is none)."""
    if len(content) < ALIGNMENT:
        raise CodeError("the code ends too early")
    return CompiledCode.from_bytes(content[ALIGNMENT:])


def _own_key(key: str, digest: bytes) -> str:
    return digest_of(bytes.fromhex(key) + digest).hexdigest()
