"""The operations as a page each, cut from `dialect/ops.md`, which is written from their records."""

from __future__ import annotations

import re

#: The page of all operations, in the tree and on the site; those of the operations lie beside it.
HEAD = "dialect/ops.md"
PLACE = "operations/index.md"
_ENTRY = re.compile(r"^## (\w+)( \(extension\))?\n", re.MULTILINE)
_LISTED = re.compile(r"\[(\w+)\]\(#[\w-]+\)")


def pages(text: str) -> dict[str, str]:
    """Return the pages by their places on the site: the one that lists them first."""
    head, *parts = _ENTRY.split(text)
    made = {PLACE: _LISTED.sub(r"[\1](\1.md)", head)}
    for name, extension, entry in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        made[place_of(name)] = f"# {name}{extension or ''}\n{entry}"
    return made


def places(text: str) -> dict[str, str]:
    """Return where on the site the sections of the page are, by what links to them say."""
    return {
        f"{HEAD}#{name.lower()}{'-extension' if extension else ''}": place_of(name)
        for name, extension in _ENTRY.findall(text)
    }


def place_of(name: str) -> str:
    """Return where the page of an operation is on the site."""
    return f"operations/{name}.md"


def menu(text: str) -> list[object]:
    """Return the pages as properdocs has a part of its menu."""
    return [PLACE, *(place_of(name) for name, _ in _ENTRY.findall(text))]
