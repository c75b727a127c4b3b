"""The entry of one code in the catalogue."""

from __future__ import annotations

from dataclasses import KW_ONLY  # noqa: TC003 -- `dataclass` looks for it where the class stands
from functools import partial
from typing import Literal, TypeAlias

from mind_mlir.support.lazy_dataclass import dataclass

#: What the examples of an entry are written in. All of them are run by the tests.
Language: TypeAlias = Literal["core", "surface", "python"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A program with an error, and the same program put right."""

    bad: str
    good: str


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One diagnostic code.

    Attributes:
        head: The code and, in a few words, what is wrong: ``E4002: value defined twice``.
        explanation: When it is reported and why that is an error; plain text.
        context: The facts that the machine-readable form carries.
        language: What the examples are written in.
        bad: A minimal program with the error; empty where no program of this compiler has it.
        good: The same program put right.
        surface: Programs of the surface language as well, where the first ones are in another.
    """

    head: str
    explanation: str
    _: KW_ONLY
    context: tuple[str, ...] = ()
    language: Language = "core"
    bad: str = ""
    good: str = ""
    surface: Sample | None = None

    @property
    def code(self) -> str:
        """Return the code, for example ``E3001``, which never changes its meaning."""
        return self.head.partition(": ")[0]

    @property
    def title(self) -> str:
        """Return what is wrong, in a few words."""
        return self.head.partition(": ")[2]


#: Entries whose examples are Python, and those whose examples are in the surface language.
in_python = partial(CatalogueEntry, language="python")
in_surface = partial(CatalogueEntry, language="surface")


def function(head: str, *lines: str) -> str:
    """Return the text of a function of the surface language, of its head and the lines of its body."""
    return f"fn {head} {{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def bodies(head: str, bad: str, good: str) -> Sample:
    """Return two functions of one head, the first with an error in its body."""
    return Sample(function(head, bad), function(head, good))
