"""The public API as a page for each name, cut from `docs/api.md`, which is written from the docstrings."""

from __future__ import annotations

import re
from typing import NamedTuple

#: The page of all names, in the tree.
HEAD = "docs/api.md"
#: The same on the site; those of the names lie beside it.
PLACE = "api/index.md"
_TOPIC = re.compile(r"^## (.+)\n", re.MULTILINE)
_ENTRY = re.compile(r"^### `(\w+)`\n", re.MULTILINE)
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"`(\w+)`")


class Topic(NamedTuple):
    """Names that belong together, and the texts of their pages."""

    title: str
    pages: dict[str, str]


def topics(text: str) -> list[Topic]:
    """Return the entries of `docs/api.md` by topic, in its order."""
    _, *parts = _TOPIC.split(text)
    found = []
    for title, part in zip(parts[::2], parts[1::2], strict=True):
        _, *entries = _ENTRY.split(part)
        found.append(Topic(title, dict(zip(entries[::2], entries[1::2], strict=True))))
    return found


def pages(text: str) -> dict[str, str]:
    """Return the pages by their places on the site: the one that lists them first."""
    found = topics(text)
    names = {name for topic in found for name in topic.pages}
    head = _TOPIC.split(text)[0].rstrip()
    tables = "".join(f"\n## {topic.title}\n\n| name | |\n| --- | --- |\n{_rows(topic)}" for topic in found)
    made = {PLACE: f"{head}\n{tables}"}
    for topic in found:
        for name, entry in topic.pages.items():
            made[f"api/{name}.md"] = f"# {name}\n{_linked(entry.replace('#### ', '## '), names - {name})}"
    return made


def menu(text: str) -> list[object]:
    """Return the pages as properdocs has a part of its menu."""
    return [
        PLACE,
        *({topic.title: [f"api/{name}.md" for name in topic.pages]} for topic in topics(text)),
    ]


def _rows(topic: Topic) -> str:
    return "".join(f"| [`{name}`]({name}.md) | {_first(entry)} |\n" for name, entry in topic.pages.items())


def _first(entry: str) -> str:
    """Return the first sentence of an entry that is no signature."""
    texts = [part for part in _FENCED.sub("", entry).split("\n\n") if part.strip()]
    sentence = texts[1].strip() if len(texts) > 1 else ""
    return sentence.partition(". ")[0].rstrip(".").replace("|", "\\|")


def _linked(entry: str, names: set[str]) -> str:
    """Return an entry in which names of the API are links to their pages."""
    parts = _FENCED.split(entry)
    parts[::2] = [_names_linked(part, names) for part in parts[::2]]
    parts[1::2] = [part.replace("```", "```python", 1) for part in parts[1::2]]
    return "".join(parts)


def _names_linked(text: str, names: set[str]) -> str:
    lines = [
        line
        if line.startswith("#")
        else _NAME.sub(lambda found: f"[{found[0]}]({found[1]}.md)" if found[1] in names else found[0], line)
        for line in text.split("\n")
    ]
    return "\n".join(lines)
