"""Find the errors of a program that no binding of its symbolic dimensions avoids.

An extent that depends on a symbol, against another one, is neither right nor wrong before both are bound; 2
against 3 is wrong. So the program is verified with numbers in the place of its symbols: what comes up for one
choice and not for another is open, and if any choice makes all of it right, nothing is to be said. What comes
up for every choice is an error, unless extents that depend on symbols are all that it is about.
"""

from __future__ import annotations

import random
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.diagnostics.findings import with_names
from mind_mlir.languages.ptir.symbols import bind, symbols_of
from mind_mlir.languages.ptir.to_module import attempt
from mind_mlir.languages.ptir.values import all_leaves

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.languages.ptir.program import Function, Program, Region

#: How many of the program's own extents are tried, and how many choices at random.
_EXTENTS, _DRAWS = 12, 16
#: Extents from here on mark symbols; programs seldom say so large ones.
_MARK = 1_000_003
#: What a type looks like in a message.
_TYPE = re.compile(r"tensor<(\w+)\[([^\]]*)\]>")

#: A dtype and extents, as a message has them.
_Spelled: TypeAlias = "tuple[str, tuple[int, ...]]"


def impossible(program: Program) -> list[Diagnostic]:
    """Return what is wrong with ``program`` for all extents of its symbols, in source order."""
    kept: dict[Hashable, list[Diagnostic]] = {}
    for number, choice in enumerate(_choices(program)):
        found = attempt(bind(program, choice))[1]
        errors = {_key(each): each for each in found if each.severity == "error"}
        if number == 0:
            kept = {key: [each] for key, each in errors.items()}
            warnings = [each for each in found if each.severity != "error"]
        else:
            kept = {key: [*kept[key], each] for key, each in errors.items() if key in kept}
        if not kept:
            return warnings
    errors_left = [findings[0] for findings in kept.values() if not _is_open(findings)]
    # They are about the first choice.
    marks = {str(_MARK + index): f"?{name}" for index, name in enumerate(symbols_of(program))}
    return with_names([*warnings, *errors_left], marks)


def _choices(program: Program) -> Iterator[Mapping[str, int]]:
    """Yield what symbols are taken to be, of which the first tells one from the other by its extents."""
    names = symbols_of(program)
    yield {name: _MARK + index for index, name in enumerate(names)}
    extents = list(dict.fromkeys((*islice(_static_extents(program), _EXTENTS), 0, 1, 2, 64, 4096)))
    for extent in extents:
        yield dict.fromkeys(names, extent)
    draw = random.Random(0)  # noqa: S311 -- the same choices in every run
    for _ in range(_DRAWS):
        yield {name: draw.choice(extents) for name in names}


def _static_extents(program: Program) -> Iterator[int]:
    """Yield the extents that the program says, each once, in order."""
    met: set[int] = set()
    parts: list[Function | Region] = [*program.functions, *program.regions]
    for part in parts:
        outputs = (instruction.output for instruction in part.body)
        for type_ in all_leaves((*part.parameters, *outputs)):
            for extent in type_.shape:
                if isinstance(extent, int) and extent not in met:
                    met.add(extent)
                    yield extent


def _key(finding: Diagnostic) -> Hashable:
    """Return what tells a finding from others, for whatever extents."""
    inside = [note for note in finding.notes if note.startswith(("in %", "at $"))]
    where = (finding.location.line, finding.location.column) if finding.location else None
    facts = tuple(
        finding.context.get(name) for name in ("operation", "value", "operand", "dimension", "axis")
    )
    return (finding.code, where, facts, *inside)


def _is_open(findings: Sequence[Diagnostic]) -> bool:
    """Return whether a finding that came up for every choice is about extents that symbols give.

    Of two types that are to be equal, dtypes and ranks are known, and so are extents that are the same for
    all choices; where those agree, other extents of the symbols may make the types equal.
    """
    if findings[0].code == "E3003":
        pairs_of_extents = zip(*(each.context.get("extents", ()) for each in findings), strict=False)
        return any(len(set(extents)) > 1 for extents in pairs_of_extents)
    if findings[0].code not in ("E2001", "E4115"):
        return False
    pairs = [_compared(each) for each in findings]
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs):
        return False
    for left, right in zip(*known[0], strict=False):
        if left[0] != right[0] or len(left[1]) != len(right[1]):
            return False
    first, second = known[0]
    for index in range(len(first)):
        for axis in range(len(first[index][1])):
            left_side = {pair[0][index][1][axis] for pair in known}
            right_side = {pair[1][index][1][axis] for pair in known}
            if len(left_side) == 1 and len(right_side) == 1 and left_side != right_side:
                return False
    return len(first) == len(second)


def _compared(finding: Diagnostic) -> tuple[list[_Spelled], list[_Spelled]] | None:
    """Return the types that a finding compares, or None where it does not say them."""
    context = finding.context
    for names in (("expected", "found"), ("declared", "returned"), ("left", "right")):
        left, right = (_spelled(str(context.get(name, ""))) for name in names)
        if left and right:
            return left, right
    types = _spelled(" ".join((finding.message, *finding.notes)))
    return ([types[0]], [types[1]]) if len(types) == 2 else None


def _spelled(text: str) -> list[_Spelled]:
    return [
        (dtype, tuple(int(extent) for extent in extents.split(",") if extent.strip()))
        for dtype, extents in _TYPE.findall(text)
    ]
