"""Programs and folders of the tree that pages link to, as pages of their own: the site has no other files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from website.links import ROOT

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

#: The page that lists them; it lies in no file.
HEAD = "sources/index.md"
#: Files of folders that are shown: programs.
_SHOWN = (".c", ".h", ".ir", ".mind")
#: What files are highlighted as, by the end of their names.
_LANGUAGES = {".c": "c", ".h": "c", ".mind": "mind", ".py": "python", ".toml": "toml"}


def place_of(path: str) -> str:
    """Return where the page of a file or folder is on the site."""
    return f"sources/{path}.md"


def pages(paths: Collection[str]) -> dict[str, str]:
    """Return a page for each of `paths`, by their places on the site, and one that lists them."""
    known = sorted(paths)
    listed = "".join(f"- [`{path}`]({path}.md)\n" for path in known)
    head = f"# Files that pages name\n\nPrograms and examples of the repository, as they are.\n\n{listed}"
    return {HEAD: head} | {place_of(path): _page(path) for path in known}


def menu(paths: Collection[str]) -> list[object]:
    """Return the pages as properdocs has a part of its menu."""
    return [HEAD, *(place_of(path) for path in sorted(paths))]


def _page(path: str) -> str:
    where = ROOT / path
    if where.is_file():
        return f"# {path}\n\n{_shown(where)}"
    files = sorted(each for each in where.iterdir() if each.suffix in _SHOWN)
    return f"# {path}\n" + "".join(f"\n## {each.name}\n\n{_shown(each)}" for each in files)


def _shown(path: Path) -> str:
    return f"```{_LANGUAGES.get(path.suffix, 'text')}\n{path.read_text(encoding='utf-8').rstrip()}\n```\n"
