"""The site: all pages are in its menu, its links lead somewhere, and it shows what the compiler says."""

from __future__ import annotations

import importlib.util
import json
import pkgutil
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.diagnostics.codes import CATALOGUE, samples
from mind_mlir.tools.cli.main import COMMANDS
from website import error_index, navigation
from website.__main__ import lay_out
from website.links import codes_linked, rewritten
from website.pages import Site, site
from website.pictures.__main__ import FOLDER, PICTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
COMPARED = ("from-jax.md", "from-numpy.md", "from-torch.md")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"`((?:mind_mlir|mnp|jax|np|numba|torch)(?:\.\w+)+)")


@pytest.fixture(scope="module")
def made() -> Site:
    return site()


def anchors(text: str) -> set[str]:
    """Return what links may name behind a ``#``."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def in_menu(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    else:
        for each in part.values() if isinstance(part, dict) else part:
            yield from in_menu(each)


def test_all_pages_of_the_tree_have_a_line_in_the_menu() -> None:
    """`website/navigation.py` is where it stands."""
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages - {*navigation.pages()} == set()


def test_the_menu_has_all_pages_once(made: Site) -> None:
    assert sorted(in_menu(made.menu)) == sorted(made.texts)


def test_links_lead_to_pages_and_headings(made: Site) -> None:
    lost = []
    for place, text in made.texts.items():
        for target, anchor in LINK.findall(FENCED.sub("", text)):
            if "://" in target:
                continue
            found = posixpath.normpath(posixpath.join(posixpath.dirname(place), target)) if target else place
            if found not in made.texts and found not in made.files:
                lost.append(f"{place}: {target}")
            elif anchor and anchor not in anchors(made.texts[found]):
                lost.append(f"{place}: {target}#{anchor}")
    assert lost == []


def test_links_of_the_tree_become_those_of_the_site() -> None:
    places = {"README.md": "index.md", "docs/a.md": "a.md", "docs/in/b.md": "in/b.md"}
    text = (
        "[a](docs/a.md#one) [b](docs/in/b.md) [c](https://c.d/e)\n```sh not-run: why\n[a](docs/a.md)\n```\n"
    )
    assert rewritten("README.md", text, places) == (
        "[a](a.md#one) [b](in/b.md) [c](https://c.d/e)\n```sh\n[a](docs/a.md)\n```\n"
    )
    places["docs/a.md#two"] = "a/two.md"
    assert rewritten("docs/in/b.md", "[up](../../README.md) [a](../a.md) [two](../a.md#two)", places) == (
        "[up](../index.md) [a](../a.md) [two](../a/two.md)"
    )


def test_codes_become_links() -> None:
    codes = {"E3001": "errors/E3001.md"}
    text = "# E3001\nE3001, `E3001`, [E3001](x) E9999\n```text\nE3001\n```\n"
    linked = text.replace("\nE3001, ", "\n[E3001](../errors/E3001.md), ")
    assert codes_linked("in/b.md", text, codes) == linked
    assert codes_linked("errors/E3001.md", text, codes) == text


def test_every_code_has_a_page_with_what_is_said(made: Site) -> None:
    pages = made.texts
    found = {place for place in pages if place.startswith("errors/")}
    assert {f"errors/{code}.md" for code in CATALOGUE} | {error_index.PLACE} == found
    for code, entry in CATALOGUE.items():
        assert pages[f"errors/{code}.md"].count(f"[{code}]: ") >= len(samples(entry)), code
        assert f"[{code}]({code}.md)" in pages[error_index.PLACE]


def test_the_list_of_codes_is_up_to_date() -> None:
    """`make docs` writes it anew."""
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == error_index.listing()


def test_every_public_name_has_a_page(made: Site) -> None:
    assert {f"api/{name}.md" for name in mind_mlir.__all__} <= set(made.texts)
    text = made.texts["api/compile.md"]
    assert text.startswith("---\nsearch:\n  boost: 1.0\n---\n\n# compile\n")
    assert "[`Executable`](Executable.md)" in text
    assert "| [`compile`](compile.md) | Compile a module" in made.texts["api/index.md"]


def test_every_command_is_described(made: Site) -> None:
    listed = re.findall(r"^\| `mind-mlir ([a-z]+)", (ROOT / "docs/commands.md").read_text(), re.MULTILINE)
    assert set(listed) == set(COMMANDS)
    for name in COMMANDS:
        assert f"\n## mind-mlir {name}\n\n```text\nUsage: mind-mlir {name} " in made.texts["commands.md"]


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_show_what_the_compiler_says(name: str) -> None:
    """`make docs` draws them anew."""
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == PICTURES[name]()


def installed(package: str) -> bool:
    """Return whether there is such a package; folders of tests that are called so are none."""
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None


def exists(name: str) -> bool:
    """Return whether a dotted name leads to something; one of a package that is not installed does."""
    short, *rest = name.split(".")
    package = {"mnp": "mind_mlir.numpy", "np": "numpy"}.get(short, short)
    if package in {"jax", "numba", "torch"} and not installed(package):
        return True
    try:
        pkgutil.resolve_name(".".join([package, *rest]))
    except (AttributeError, ImportError):
        return False
    return True


@pytest.mark.parametrize("page", COMPARED)
def test_names_that_tables_compare_exist(page: str) -> None:
    names = set(NAME.findall((ROOT / "docs" / page).read_text(encoding="utf-8")))
    assert len(names) > 20
    assert sorted(name for name in names if not exists(name)) == []


def test_what_numpy_has_and_the_table_says_otherwise_is_not_here() -> None:
    """A function that comes to `mind_mlir.numpy` leaves the table of those that there are none of."""
    text = (ROOT / "docs" / "from-numpy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \| .*outside of the function", text, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`np\.([\w.]+)`", row)]
    assert {"nonzero", "unique", "linalg.qr"} <= set(named)
    assert [name for name in named if hasattr(mnp, name) or ("." not in name and not hasattr(np, name))] == []


def test_it_is_laid_out_for_properdocs(made: Site, tmp_path: Path) -> None:
    lay_out(made, tmp_path)
    settings = json.loads((tmp_path / "properdocs.yml").read_text(encoding="utf-8"))
    assert Path(settings["INHERIT"]).is_file()
    pages = tmp_path / "pages"
    written = sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.md"))
    assert written == sorted(in_menu(settings["nav"]))
    assert (pages / "pictures" / "stages.svg").read_bytes() == (FOLDER / "stages.svg").read_bytes()
