"""The pages say what is so: their code runs and prints what they show, their links and commands exist.

In a page, ``python`` blocks run in order in one namespace, and a ``text`` block right after one is what it
prints. ``mind`` blocks are programs, which are checked; a ``text`` block right after one is what is wrong
with it, or what its function ``main`` gives. Their text is ``source`` to the Python blocks, whose functions
they may call. In a ``console`` block every ``$`` line is a command, run in the project's folder, and the
lines after it are what it prints. ``sh`` blocks are scripts, run in a folder of their own that has the
examples, and the ``c`` blocks of the page whose fences say ``file: NAME``. ``...`` stands for anything, as in
doctest. Behind the language, a fence may say ``not-run:`` and why, or ``needs:`` and a program. Other blocks
are not run.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mind_mlir
from mind_mlir.diagnostics.render import render
from mind_mlir.support.stages import FORMS
from mind_mlir.tracing.jit import JitFunction

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mind_mlir"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / "examples" / name / "README.md" for name in ("c", "digits", "models")),
]
FENCE = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTE = re.compile(r"not-run: \S.*|needs: \S+|file: \S+|")
RUN = ("console", "mind", "python", "sh")
#: Other names of these, under which blocks would not be run.
ALIASES = ("bash", "py", "pycon", "python3", "shell", "zsh")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
ANCHORED = re.compile(r"\[[^\]]*\]\(([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
TERM = re.compile(r'^\| <a id="([a-z0-9_-]+)"></a>\*\*(.+?)\*\* \|.*\| `([^`]+)` \|$', re.MULTILINE)


@dataclass(frozen=True)
class Block:
    language: str
    note: str  # what the fence says behind the language
    text: str
    line: int
    follows: bool  # whether nothing but white space stands between it and the block before

    @property
    def runs(self) -> bool:
        needed = self.note.removeprefix("needs: ")
        return not self.note or (needed != self.note and shutil.which(needed) is not None)


def blocks(text: str) -> list[Block]:
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(match[1], match[2] or "", match[3], line, not text[end : match.start()].strip()))
        end = match.end()
    return found


def agrees(expected: str, found: str) -> bool:
    return doctest.OutputChecker().check_output(expected, found, doctest.ELLIPSIS)


def compare(expected: str, found: str, where: str) -> None:
    # A failing assertion on equal-looking texts would be a riddle: show them as they are.
    if not agrees(expected, found):
        pytest.fail(f"{where} prints\n{found}\nbut the page says\n{expected}")


def run_python(code: str, namespace: dict[str, Any], where: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, where, "exec"), namespace)  # noqa: S102 - the code of our own pages
    return out.getvalue()


def run_mind(text: str, namespace: dict[str, Any]) -> str:
    """Return what is wrong with a program, or what its function ``main`` gives, or nothing."""
    namespace["source"] = text
    functions = {name: found for name, found in namespace.items() if isinstance(found, JitFunction)}
    try:
        program = mind_mlir.verify(mind_mlir.parse(text, "program.mind", functions=functions))
    except mind_mlir.MindError as error:
        return render(error.diagnostics)
    return f"{mind_mlir.compile(program)()}\n" if "fn main()" in text else ""


def run_command(command: str, scratch: Path, where: str = "") -> str:
    """Return what a command prints; what it has in /tmp is in ``scratch``: others may have such files.

    If the place that it stands at is given, it is run in ``scratch``, and is to end well.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(  # noqa: S602 - the commands of our own pages, as a reader would type them
        command.replace("/tmp/", f"{scratch}/"),  # noqa: S108 -- a place that pages name
        shell=True,
        cwd=scratch if where else ROOT,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert not (where and result.returncode), f"{where} fails: {result.stdout}"
    return result.stdout.replace(f"{scratch}/", "/tmp/")  # noqa: S108 -- see above


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_of_a_page_prints_what_it_shows(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    namespace: dict[str, Any] = {"__name__": "page"}
    found = blocks(page.read_text(encoding="utf-8"))
    for block, following in itertools.zip_longest(found, found[1:]):
        where = f"{page.name}:{block.line}"
        if not block.runs:
            continue
        if block.language == "mind":
            printed = run_mind(block.text, namespace)
        elif block.language == "python":
            printed = run_python(block.text, namespace, where)
        else:
            continue
        shown = following.text if following and following.language == "text" and following.follows else ""
        compare(shown, printed, where)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language != "console" or not block.runs:
            continue
        for entry in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, shown = entry.partition("\n")
            compare(shown, run_command(command, tmp_path), f"{page.name}:{block.line}: {command}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_scripts_of_a_page_end_well(page: Path, tmp_path: Path) -> None:
    found = blocks(page.read_text(encoding="utf-8"))
    if not any(block.language == "sh" and block.runs for block in found):
        return
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in found:
        if block.note.startswith("file: "):
            (tmp_path / block.note.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
    for block, following in itertools.zip_longest(found, found[1:]):
        if block.language == "sh" and block.runs:
            shown = following.text if following and following.language == "text" and following.follows else ""
            where = f"{page.name}:{block.line}"
            compare(shown, run_command(f"set -eu\n{block.text}", tmp_path, where), where)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_that_are_not_run_say_why(page: Path) -> None:
    found = blocks(page.read_text(encoding="utf-8"))
    assert [block.line for block in found if block.language in ALIASES] == []
    assert [block.line for block in found if not NOTE.fullmatch(block.note)] == []
    assert [block.line for block in found if block.note.startswith("file: ") and block.language in RUN] == []
    plain = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^    (?:import |from \w+ import |>>> ).*", plain, re.MULTILINE) == []  # has no fence


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def anchors(page: Path) -> set[str]:
    """Return what a link to ``page`` may name behind a ``#``: headings, as GitHub spells them, and ids."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = [
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)
    ]
    return {*headings, *re.findall(r'<a id="([^"]+)">', text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_into_a_page_meet_a_heading_or_a_term(page: Path) -> None:
    named = [
        (page.parent / target if target else page, anchor)
        for target, anchor in ANCHORED.findall(page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    lost = [f"{path.name}#{anchor}" for path, anchor in named if anchor not in anchors(path)]
    assert lost == []


def test_the_glossary_is_in_order_and_says_where_things_are() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = TERM.findall(text)
    assert len(terms) == text.count("\n| <a ") > 100
    names = [re.sub(r"[^a-z ]", "", re.sub("[-_]", " ", name.lower())) for _, name, _ in terms]
    assert names == sorted(names)
    assert len({anchor for anchor, _, _ in terms}) == len(terms)
    places = [where for _, _, where in terms]
    assert [where for where in places if not any((base / where).exists() for base in (PACKAGE, ROOT))] == []


@pytest.mark.parametrize("page", ["docs/commands.md", "docs/tutorial.md"])
def test_pages_list_all_forms_in_order(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.search(r",?\s(?:and\s)?".join(f"`{form}`" for form in FORMS), text)


def _without_fences(page: Path) -> str:
    return page.read_text(encoding="utf-8").replace("```", "")


def test_make_targets_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {
        target
        for page in PAGES
        for code in re.findall(r"`([^`]+)`|^    (.*)$", _without_fences(page), re.MULTILINE)
        for target in re.findall(r"\bmake ([a-z-]+)", " ".join(code))
    }
    assert {"demo", "test"} <= named <= targets


def test_modules_that_pages_run_exist() -> None:
    texts = [path.read_text(encoding="utf-8") for path in [*PAGES, *(ROOT / "mind_mlir").rglob("*.py")]]
    named = {module for text in texts for module in re.findall(r"\bpython -m (benchmarks[\w.]*\w)", text)}
    assert "benchmarks.matmul" in named
    assert [module for module in sorted(named) if importlib.util.find_spec(module) is None] == []


@cache
def files() -> list[str]:
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*.*"))
    return [str(path) for path in found if path.parts[0] not in (".venv", "build")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_page_names_exist(page: Path) -> None:
    """A page may leave out the folders that a path begins with."""
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|md|ir|mind|mlir))`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not any(file.endswith(name) for file in files())] == []


def test_make_help_lists_every_target(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    listed = re.findall(r"^  make ([a-z-]+) ", run_command("make", tmp_path), re.MULTILINE)
    assert sorted(listed) == sorted(phony[1].split())


def test_every_dependency_is_accounted_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([A-Za-z0-9_-]+)` \|", table, re.MULTILINE)
    assert sorted(named) == sorted(re.split("[=<>]", requirement)[0] for requirement in requirements)
