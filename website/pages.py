"""All that the site is made of: texts and pictures by their places on it, and its menu."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from mind_mlir.diagnostics.codes import CATALOGUE
from website import api, commands, error_index, navigation, operations, sources
from website.links import ROOT, codes_linked, rewritten, targets

#: What pages show, rather than link to.
_PICTURES = (".png", ".svg")
#: Files of the theme, beside this one.
_ASSETS = ("site.css", "iframe-worker.js")
_MIND = re.compile(r"^```mind$", re.MULTILINE)


class Site(NamedTuple):
    """What properdocs is given.

    Attributes:
        texts: Pages, in Markdown, by their places.
        files: Other files of the tree, by their places.
        menu: Its parts in order, as properdocs reads them.
    """

    texts: dict[str, str]
    files: dict[str, Path]
    menu: list[object]


def site() -> Site:
    """Return the site; a link to a page that has no line in the menu is a `KeyError` that names that page."""
    raw = {path: (ROOT / path).read_text(encoding="utf-8") for path in navigation.pages()}
    linked = {target for path, text in raw.items() for target in targets(path, text)} - {*raw}
    shown = {target for target in linked if target.endswith(_PICTURES)}
    programs = {target for target in linked - shown if not target.endswith(".md")}
    places = {path: navigation.place_of(path) for path in raw}
    places |= {target: target.removeprefix("docs/") for target in shown}
    places |= {target: sources.place_of(target) for target in programs}
    places |= operations.places(raw[operations.HEAD])
    texts = {places[path]: rewritten(path, text, places) for path, text in raw.items()}
    names, listed, described = (texts[places[each.HEAD]] for each in (api, operations, commands))
    texts[places[commands.HEAD]] = commands.page(described)
    texts |= api.pages(names) | operations.pages(listed) | error_index.pages() | sources.pages(programs)
    parts = {
        api.HEAD: {"The public API": api.menu(names)},
        operations.HEAD: {"Operations": operations.menu(listed)},
        error_index.HEAD: {"Error index": error_index.menu()},
        sources.HEAD: {"Files that pages name": sources.menu(programs)},
    }
    menu: list[object] = [
        {title: [parts.get(path, navigation.place_of(path)) for path in section]}
        for title, section in navigation.SECTIONS.items()
    ]
    files = {places[target]: ROOT / target for target in shown}
    files |= {f"assets/{name}": Path(__file__).with_name(name) for name in _ASSETS}
    codes = {code: error_index.place_of(code) for code in CATALOGUE}
    texts = {place: codes_linked(place, text, codes) for place, text in texts.items()}
    return Site({place: _for_theme(place, text) for place, text in texts.items()}, files, menu)


def _for_theme(place: str, text: str) -> str:
    """Return a page with its weight for the search; programs of `.mind` are coloured as Rust is."""
    head = f"---\nsearch:\n  boost: {navigation.weight_of(place)}\n---\n\n"
    return head + _MIND.sub("```rust", text)
