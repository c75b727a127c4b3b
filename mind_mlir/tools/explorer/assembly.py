"""The assembly of a program, and which operations each of its instructions is for.

An instruction is for what the line table says. LLVM gives line 0, or none, to what it has made of several
instructions or of none, as constants that a loop shares, moves between registers and what keeps these: that
is for all that its function is for. What fills up the space between functions is for nothing. The functions
that MLIR's engine adds for callers of its own are left out: no image has them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.codegen.disassemble import AssemblyLine, assembly_lines
from mind_mlir.image.elf import read_object
from mind_mlir.image.lines import lines_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.image.elf import ElfObject
    from mind_mlir.lowering.traced import LineSets

#: Sections are so far apart where the places of all of them are in one order.
_APART = 1 << 40
#: What instructions are called that are in no function.
PADDING = "between functions"
#: What MLIR's engine puts before the name of a function to call it by.
_ENGINES = "_mlir_"


@dataclass(slots=True)
class Assembly:
    """Assembly, line by line.

    Attributes:
        lines: The text.
        marks: The operations that each line is for.
        exact: How many instructions are for what the line table says.
        shared: How many are for all that their function is for.
        rest: Those that are for nothing, by the functions that they are in.
    """

    lines: list[str] = field(default_factory=list)
    marks: list[frozenset[int]] = field(default_factory=list)
    exact: int = 0
    shared: int = 0
    rest: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """How many instructions there are."""
        return self.exact + self.shared + self.rest.total()

    @property
    def traced(self) -> int:
        """How many are for operations."""
        return self.exact + self.shared

    def summary(self) -> str:
        """Return the counts in a sentence."""
        return (
            f"Of {self.total} instructions, {self.exact} are for what the line table says, {self.shared} for "
            f"all that their function is for, and {self.rest.total()} for nothing of the program."
        )


def assembly_of(data: bytes, sets: LineSets) -> Assembly:
    """Return the code of an object with a line table whose lines are ``sets``.

    Raises:
        UnsupportedError: E7003, the tools that print assembly are not installed.
    """
    listing = _of_program(assembly_lines(data))
    file = read_object(data)
    rows = lines_of(file, lambda symbol, addend: _place(file, symbol, addend))
    starts = [row.offset for row in rows]
    found = Assembly()
    for line in listing:
        at = bisect_right(starts, line.section * _APART + line.address) - 1
        exact = sets.at(rows[at].line) if at >= 0 and line.function else frozenset()
        whole = sets.functions.get(line.function, frozenset())
        _add(found, line, exact, whole)
    return found


def _of_program(lines: Sequence[AssemblyLine]) -> list[AssemblyLine]:
    """Return assembly without what MLIR's engine has added, and what fills up the space behind it."""
    added = {f"{_ENGINES}{line.function}" for line in lines}
    kept = []
    before = ""
    for line in lines:
        before = line.function or before
        if before not in added:
            kept.append(line)
    return kept


def _add(found: Assembly, line: AssemblyLine, exact: frozenset[int], whole: frozenset[int]) -> None:
    found.lines.append(line.text)
    is_function = line.text == f"{line.function}:"
    found.marks.append(whole if is_function else exact or whole)
    if not line.size:
        return
    if exact:
        found.exact += 1
    elif whole:
        found.shared += 1
    else:
        found.rest[line.function or PADDING] += 1


def _place(file: ElfObject, symbol: int, addend: int) -> int | None:
    """Return where something is, all sections one behind the other."""
    section = file.symbols[symbol].section
    return None if section is None else section * _APART + file.symbols[symbol].value + addend
