"""Decide whether there is a cache, and where, from the platform, the environment and callers."""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.cache.store import Store
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from typing import TypeAlias

    #: What callers say of the cache: as the environment says, whether there is one, or where.
    Choice: TypeAlias = bool | str | None

#: The variables: ``on`` or ``off``, where it is, and how many bytes it may have.
SWITCH, PLACE, LIMIT = "MIND_MLIR_CACHE", "MIND_MLIR_CACHE_DIR", "MIND_MLIR_CACHE_LIMIT"
DEFAULT_LIMIT = 1 << 30

_NAME = "mind-mlir"
_SIZE = re.compile(r"(\d{1,15})([KMGT]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def checked_choice(cache: object) -> Choice:
    """Return what a caller says of the cache as plain data.

    Raises:
        TypeError: It is none of True, False, None and a path.
        ValueError: The path is empty or has a zero character, or one of the variables is wrong.
    """
    if cache is None or isinstance(cache, bool):
        choice: Choice = cache
    else:
        choice = argument_checks.path(cache, "cache")
        if not choice or "\0" in choice:
            raise ValueError(f"cache must be a path, not {argument_checks.describe(choice)}")
    store_for(choice)  # what the environment says may be wrong
    return choice


def store_for(choice: Choice = None) -> Store | None:
    """Return the cache that a caller has chosen, or None where there is none.

    Raises:
        ValueError: One of the variables is wrong.
    """
    if choice is False or (choice is None and not _switched_on()):
        return None
    place = cache_directory() if choice in (None, True) else os.path.abspath(str(choice))  # noqa: PTH100 -- as text
    return None if place is None else _store(place, size_limit())


@functools.lru_cache(maxsize=16)
def _store(directory: str, limit: int) -> Store:
    return Store(Path(directory), limit)


def cache_directory() -> str | None:
    """Return where the cache is unless a caller says otherwise; None where this user has no place for it."""
    own = os.environ.get(PLACE)
    if own:
        return os.path.abspath(own)  # noqa: PTH100 -- as text, for a call of each compilation
    base = _platform_directory()
    return None if base is None else os.path.join(base, _NAME)  # noqa: PTH118 -- as above


def _platform_directory() -> str | None:
    """Return where programs keep what they can make anew."""
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or None
    if sys.platform != "darwin":
        named = os.environ.get("XDG_CACHE_HOME", "")
        if named.startswith("/"):  # others are to be ignored, says the XDG specification
            return named
    home = os.path.expanduser("~")  # noqa: PTH111 -- as above; a user may have none
    if not home.startswith("/"):
        return None
    return f"{home}/Library/Caches" if sys.platform == "darwin" else f"{home}/.cache"


def size_limit() -> int:
    """Return how many bytes the cache may have.

    Raises:
        ValueError: The variable ``MIND_MLIR_CACHE_LIMIT`` is no size.
    """
    text = os.environ.get(LIMIT, "").strip()
    if not text:
        return DEFAULT_LIMIT
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{LIMIT} must be a number of bytes, or one like 512M or 2G, not {text!r}")
    return int(found[1]) * _FACTORS[found[2].upper()]


def _switched_on() -> bool:
    word = os.environ.get(SWITCH, "").strip().lower() or "on"
    if word not in ("on", "off"):
        raise ValueError(f"{SWITCH} must be on or off, not {word!r}")
    return word == "on"
