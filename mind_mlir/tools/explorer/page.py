"""The page of explored programs: one file of HTML that needs nothing else, and no network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.tools.explorer.payload import payload

if TYPE_CHECKING:
    from mind_mlir.tools.explorer.exploration import Exploration

ASSETS = Path(__file__).parent / "assets"
#: What needs no document, in the order in which it is read: tests run these without a browser.
LOGIC = ("text.js", "tokens.js", "marks.js", "search.js", "changes.js", "rows.js", "address.js", "program.js")
#: What shows it.
VIEWS = (
    "elements.js",
    "splitter.js",
    "list.js",
    "pane.js",
    "surface.js",
    "graph.js",
    "plans.js",
    "tables.js",
    "finder.js",
    "rail.js",
    "compared.js",
    "dock.js",
    "app.js",
    "remembered.js",
    "start.js",
)
_STYLES = ("page.css", "pane.css")


def html(explorations: Sequence[Exploration]) -> str:
    """Return the page of one explored program, or of several, which are compared with the first.

    The page loads nothing, and its policy allows the one script in it and no other, whatever a text holds.
    """
    # In a function of its own, so that no name of it is one of the browser's.
    script = "\n".join(("(() => {", *(_asset(name) for name in (*LOGIC, *VIEWS)), "})();"))
    data = json.dumps(payload(explorations), separators=(",", ":"))
    parts = {
        "title": escape(" and ".join(dict.fromkeys(each.title for each in explorations))),
        "policy": f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'",
        "style": "\n".join(_asset(name) for name in _STYLES),
        # No text of a program ends the element that it stands in.
        "data": data.replace("<", "\\u003c"),
        "script": script,
    }
    page = _asset("page.html").split("@@")
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(page))


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
