"""Links between pages: those of the tree, which name files in it, become those of the site."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[1]
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
#: What a fence says behind its language: why its code is not run. Only tests read it.
_NOTE = re.compile(r"^(```\w+) .*$", re.MULTILINE)
_CODE = re.compile(r"\bE[1-9]\d{3}\b")
#: Where codes are no links: headings, code, and links.
_KEPT = re.compile(r"(^#.*$|`[^`]*`|\[[^\]]*\]\([^)]*\))", re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def targets(path: str, text: str) -> Iterator[str]:
    """Yield what in the tree the page that lies at `path` links to."""
    for part in FENCED.split(text)[::2]:
        for found in _LINK.finditer(part):
            target = _resolved(path, found[2])
            if target is not None:
                yield target


def rewritten(path: str, text: str, places: Mapping[str, str]) -> str:
    """Return the page that lies at `path` in the tree as it is on the site.

    Args:
        path: Where the page lies.
        text: Its Markdown.
        places: Where on the site the pages and files of the tree are, and sections that are pages there.
    """
    here = PurePosixPath(places[path]).parent

    def link(found: re.Match[str]) -> str:
        target = _resolved(path, found[2])
        if target is None:
            return found[0]
        section = places.get(f"{target}{found[3].removesuffix(')')}")  # has a page of its own
        place, anchor = (section, ")") if section else (places[target], found[3])
        return f"{found[1]}{os.path.relpath(place, here)}{anchor}"

    parts = FENCED.split(text)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    parts[1::2] = [_NOTE.sub(r"\1", part) for part in parts[1::2]]
    return "".join(parts)


def codes_linked(place: str, text: str, pages: Mapping[str, str]) -> str:
    """Return a page of the site in which diagnostic codes are links to their pages.

    Args:
        place: Where the page is on the site.
        text: Its Markdown.
        pages: The pages of codes, by these.
    """
    here = PurePosixPath(place).parent

    def link(found: re.Match[str]) -> str:
        page = pages.get(found[0], place)
        return found[0] if page == place else f"[{found[0]}]({os.path.relpath(page, here)})"

    def linked(text: str) -> str:
        parts = _KEPT.split(text)
        parts[::2] = [_CODE.sub(link, part) for part in parts[::2]]
        return "".join(parts)

    parts = FENCED.split(text)
    parts[::2] = [linked(part) for part in parts[::2]]
    return "".join(parts)


def _resolved(path: str, target: str) -> str | None:
    """Return what in the tree a link means, or None for one that leaves it."""
    if "://" in target or target.startswith("mailto:"):
        return None
    return os.path.normpath(PurePosixPath(path).parent / target)
