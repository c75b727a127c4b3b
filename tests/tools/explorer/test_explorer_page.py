"""The page as a file: it holds all it needs, runs one script, and texts of programs are only text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

from explorations import HOSTILE, chain, small

from mind_mlir.tools.explorer.page import ASSETS, LOGIC, VIEWS, html
from mind_mlir.tools.explorer.payload import payload


class _Elements(HTMLParser):
    """The elements of a page with what they hold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = [("", {})]
        self.texts = [""]
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}", {}))
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(each[1], text) for each, text in zip(self.found, self.texts, strict=True) if each[0] == tag]


def test_the_policy_allows_the_script_of_the_page_and_no_other() -> None:
    page = _Elements(html([small(hostile=True)]))
    (data, (attributes, script)) = page.all("script")
    assert attributes == {}
    assert data[0] == {"type": "application/json", "id": "data"}
    (policy,) = [each["content"] for each, _ in page.all("meta") if "http-equiv" in each]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    )


def test_texts_of_programs_are_only_text() -> None:
    exploration = small("<b>&.ir", hostile=True)
    page = _Elements(html([exploration]))
    assert not page.all("b")
    assert not page.all("img")
    assert page.all("title")[0][1].startswith("<b>&.ir")
    (_, data), _ = page.all("script")
    assert json.loads(data)["explorations"][0]["panes"][0]["text"].endswith(HOSTILE)


def test_the_page_loads_nothing() -> None:
    page = html([small()])
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)""", page)
    assert not re.findall(
        r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|fetch\(|XMLHttpRequest|WebSocket", page
    )


def test_the_same_programs_give_the_same_page() -> None:
    assert html([small(), chain(20, 50)]) == html([small(), chain(20, 50)])


def test_every_asset_is_in_the_page() -> None:
    parts = {path.name for path in ASSETS.iterdir() if path.suffix == ".js"}
    assert parts == {*LOGIC, *VIEWS}
    page = html([small()])
    for path in ASSETS.iterdir():
        text = path.read_text(encoding="utf-8")
        assert path.suffix == ".html" or text in page


def test_lines_of_the_same_operations_are_one_run() -> None:
    (program,) = payload([small()])["explorations"]
    assert program["sets"] == ((), (0,), (1,), (2,), (3,), (2, 3))
    assert program["panes"][2]["runs"] == [1, 0, 8, 5, 1, 0]


def test_programs_are_compared_stage_by_stage() -> None:
    first, second = small(), small(hostile=True)
    (comparison,) = payload([first, second])["comparisons"]
    assert comparison["stages"] == {"source": [4, 5, 4, 5], "mind": [], "asm": []}
    assert comparison["same"] == [0, 1, 2, 3]


def test_two_programs_of_one_name_are_named_once() -> None:
    assert _Elements(html([small(), small()])).all("title")[0][1] == "small.ir · mind-mlir explore"
