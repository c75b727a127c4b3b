"""The entry of one code in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

#: What the examples of an entry are written in. All of them are run by the tests.
Language: TypeAlias = Literal["core", "surface", "python"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A program with an error, and the same program put right."""

    bad: str
    good: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One diagnostic code.

    Attributes:
        code: For example ``E3001``; a code never changes its meaning.
        title: What is wrong, in a few words.
        explanation: When it is reported and why that is an error; plain text.
        context: The facts that the machine-readable form carries.
        language: What the examples are written in.
        bad: A minimal program with the error; empty where no program of this compiler has it.
        good: The same program put right.
        surface: Programs of the surface language as well, where the first ones are in another.
    """

    code: str
    title: str
    explanation: str
    context: tuple[str, ...] = ()
    language: Language = "core"
    bad: str = ""
    good: str = ""
    surface: Sample | None = None
