"""The error index: a page for each diagnostic code, made of the catalogue that `mind-mlir explain` reads.

The message below a wrong program is what the compiler says about it when the page is made.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import defaultdict
from typing import TYPE_CHECKING

from mind_mlir import MindError, SurfaceProgram, parse
from mind_mlir.diagnostics.codes import CATALOGUE, LANGUAGES, phase_of, samples
from mind_mlir.diagnostics.render import render
from mind_mlir.passes.verify import check

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, Language

#: The page of all codes, in the tree.
HEAD = "docs/errors.md"
#: The same on the site; those of the codes lie beside it.
PLACE = "errors/index.md"
_FENCES = {"core": "text", "surface": "mind", "python": "python"}
_NO_PROGRAM = """\
No program shows it here: it is about what lies outside of a program, or this compiler does not report it."""
_ROW = re.compile(r"^\| (E\d{4}) \|", re.MULTILINE)
_HEAD = """\
# Error index

<!-- Written by `python -m website.error_index`; do not edit. -->

What goes wrong because of a program, an argument or the surroundings has a code, which never changes its
meaning. `mind-mlir explain E3001` says more about one: when it is reported, and a wrong and a right program.
On the site, each has a page with that, and with what the compiler says about the wrong program; the tests run
them all. In Python, the code is `MindError.code`, and each finding of an error has one.
"""


def by_phase() -> dict[str, list[CatalogueEntry]]:
    """Return the entries of the catalogue by the phase that reports them, in the order of codes."""
    found = defaultdict(list)
    for entry in CATALOGUE.values():
        found[phase_of(entry.code)].append(entry)
    return dict(found)


def listing() -> str:
    """Return the page of all codes."""
    tables = [
        f"\n## {phase.capitalize()}\n\n| code | what is wrong |\n| --- | --- |\n"
        + "".join(f"| {entry.code} | {entry.title} |\n" for entry in entries)
        for phase, entries in by_phase().items()
    ]
    return _HEAD + "".join(tables)


def pages() -> dict[str, str]:
    """Return the page of all codes, with links, and the page of each, by their places on the site."""
    listed = _ROW.sub(r"| [\1](\1.md) |", listing())
    return {PLACE: listed} | {place_of(code): page(entry) for code, entry in CATALOGUE.items()}


def place_of(code: str) -> str:
    """Return where the page of a code is on the site."""
    return f"errors/{code}.md"


def menu() -> list[object]:
    """Return the pages as properdocs has a part of its menu."""
    phases = by_phase().items()
    return [
        PLACE,
        *({phase.capitalize(): [place_of(each.code) for each in entries]} for phase, entries in phases),
    ]


def page(entry: CatalogueEntry) -> str:
    """Return the page of one code."""
    parts = [f"# {entry.code}: {entry.title}", entry.explanation]
    if entry.context:
        facts = ", ".join(f"`{fact}`" for fact in entry.context)
        parts.append(f"The machine-readable form (`--diagnostic-format=json`) carries {facts}.")
    for language, sample in samples(entry):
        fence, name = _FENCES[language], LANGUAGES[language]
        parts += [f"## Wrong, in {name}", _fenced(sample.bad, fence)]
        parts += ["What is said about it:", _fenced(message(language, sample.bad), "text")]
        parts += [f"## Right, in {name}", _fenced(sample.good, fence)]
    if not samples(entry):
        parts.append(_NO_PROGRAM)
    return "\n\n".join(parts) + "\n"


def message(language: Language, text: str) -> str:
    """Return what the compiler says about a program, or about a program of Python that uses it."""
    try:
        found = _findings(language, text)
    except MindError as error:
        found = list(error.diagnostics)
    # Programs of Python write to folders whose names are random.
    return re.sub(re.escape(tempfile.gettempdir()) + r"/\w+", "FOLDER", render(found))


def _findings(language: Language, text: str) -> list[Diagnostic]:
    if language == "python":
        exec(compile(text, "program.py", "exec"), {"__name__": "program"})  # noqa: S102 -- of our own catalogue
        return []
    program = parse(text, "program.mind" if language == "surface" else "program.ir")
    return program.check() if isinstance(program, SurfaceProgram) else check(program)


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


if __name__ == "__main__":
    sys.stdout.write(listing())
