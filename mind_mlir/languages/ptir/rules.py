"""Rules for the text of a program that hold in every notation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, Location
from mind_mlir.languages.ptir.program import SPEC_VERSION, Function, Region
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.diagnostics.findings import Findings


def wrong_version(found: str, where: Location, path: str | None = None) -> Diagnostic | None:
    """Return the finding about a program of another version of the contract; an empty one counts as ours."""
    if found in ("", SPEC_VERSION):
        return None
    place = f"{path}: " if path else ""
    message = f"{place}the program follows '{found[:40]}', expected '{SPEC_VERSION}'"
    facts = FrozenDict({"found": found, "expected": SPEC_VERSION} | ({"path": path} if path else {}))
    help_text = f"have its producer write {SPEC_VERSION}"
    return Diagnostic("E1105", message, where, (), help_text, context=facts)


def check_functions(
    functions: Sequence[Function], entry: str, findings: Findings, whole: Location | None
) -> None:
    """Report names that two functions have, and an entry that none has."""
    first: dict[str, tuple[int, Function]] = {}
    for index, function in enumerate(functions):
        if function.name not in first:
            first[function.name] = index, function
            continue
        place = f"$.functions[{index}]"
        message = f"{place}: function @{function.name[:40]} is defined twice"
        note = f"the first definition is at {first[function.name][1].location}"
        facts = FrozenDict({"function": function.name, "path": place})
        help_text = "give one of the two another name"
        findings.add(Diagnostic("E4107", message, function.location, (note,), help_text, context=facts))
    if entry not in first:
        message = f"$.entry: the program has no function @{entry[:40]}{did_you_mean(entry, first)}"
        facts = FrozenDict({"callee": entry, "path": "$.entry"})
        help_text = (
            f"the functions are {', '.join(f'@{name[:40]}' for name in list(first)[:10])}"
            if first
            else "the program has no function at all"
        )
        findings.add(Diagnostic("E4121", message, whole, (), help_text, context=facts))


def check_regions(regions: Sequence[Region], findings: Findings) -> None:
    """Report numbers that two regions have."""
    first: dict[int, Region] = {}
    for index, region in enumerate(regions):
        if region.id not in first:
            first[region.id] = region
            continue
        place = f"$.regions[{index}]"
        facts = FrozenDict({"region": region.id, "path": place})
        note = f"the first definition is at {first[region.id].location}"
        message = f"{place}: region {region.id} is defined twice"
        help_text = "give one of the two another number"
        findings.add(Diagnostic("E4302", message, region.location, (note,), help_text, context=facts))
