"""Collects what is wrong with a program: the first findings in full, the number of the others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType

from mind_mlir.diagnostics.model import Diagnostic
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

#: Findings kept of one reading or verification. Nobody reads more, and a generated text may have millions.
MAX_FINDINGS = 1000
#: The code that ends a list of findings which is not complete.
MORE = "E1107"


@dataclass(slots=True)
class Findings:
    """The findings so far; the first `MAX_FINDINGS` are kept."""

    kept: list[Diagnostic] = field(default_factory=list)
    total: int = 0

    @property
    def full(self) -> bool:
        """Return whether further findings are only counted: they need not be worded then."""
        return len(self.kept) >= MAX_FINDINGS

    def add(self, finding: Diagnostic) -> None:
        """Take a finding."""
        self.total += 1
        if not self.full:
            self.kept.append(finding)

    def extend(self, findings: Iterable[Diagnostic]) -> None:
        """Take several findings."""
        for finding in findings:
            self.add(finding)

    def count(self, number: int = 1) -> None:
        """Count findings that nobody worded."""
        self.total += number

    def in_source_order(self) -> list[Diagnostic]:
        """Return what was kept, ordered by place, and at the end how many more there are."""
        return closed(sorted(self.kept, key=_source_order), self.total - len(self.kept))


def closed(findings: Sequence[Diagnostic], omitted: int) -> list[Diagnostic]:
    """Return the findings, ended by one that says how many are ``omitted`` where there are any."""
    if not omitted:
        return list(findings)
    more = Diagnostic(
        MORE,
        f"{omitted:,} more error{'s' if omitted > 1 else ''}, not shown",
        help="mend the first ones: they may have caused the others",
        context=MappingProxyType({"omitted": omitted}),
    )
    return [*findings, more]


def limited(findings: Sequence[Diagnostic], limit: int) -> list[Diagnostic]:
    """Return at most ``limit`` of the findings (0: all of them) and how many more there are."""
    omitted = sum(finding.context["omitted"] for finding in findings if finding.code == MORE)
    kept = [finding for finding in findings if finding.code != MORE]
    if limit and len(kept) > limit:
        omitted, kept = omitted + len(kept) - limit, kept[:limit]
    return closed(kept, omitted)


def with_names(findings: Iterable[Diagnostic], names: Mapping[str, str]) -> list[Diagnostic]:
    """Return findings with names in the place of the numbers that mark them, which ``names`` says."""
    number = re.compile(r"(?<![\w.?])(?:" + "|".join(names) + r")(?![\w.])")

    def named(text: str) -> str:
        return number.sub(lambda found: names[found[0]], text)

    def of_one(each: Diagnostic) -> Diagnostic:
        facts = {key: named(fact) if isinstance(fact, str) else fact for key, fact in each.context.items()}
        notes, help_ = tuple(map(named, each.notes)), each.help and named(each.help)
        return replace(each, message=named(each.message), notes=notes, help=help_, context=FrozenDict(facts))

    return list(map(of_one, findings))


def _source_order(finding: Diagnostic) -> tuple[float, int]:
    """Order by place; findings without one follow in the order they were made."""
    location = finding.location
    return (location.line, location.column) if location else (math.inf, 0)
