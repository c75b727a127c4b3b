"""The report on an installation: findings under headings, as text for people and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about an installation.

    Attributes:
        heading: What it is about.
        name: What is asked.
        value: The answer.
        trouble: What is wrong with it, and what to do; empty where nothing is.
    """

    heading: str
    name: str
    value: str
    trouble: str = ""


def as_text(findings: Iterable[Finding]) -> str:
    """Return findings for people; what is wrong stands once more at the end."""
    found = tuple(findings)
    width = max((len(each.name) for each in found), default=0)
    lines = []
    for heading, group in groupby(found, lambda each: each.heading):
        lines.append(f"{heading}")
        lines += [f"  {each.name:<{width}}  {'! ' * bool(each.trouble)}{each.value}" for each in group]
    return "\n".join((*lines, *_troubles(found), ""))


def _troubles(findings: Sequence[Finding]) -> list[str]:
    troubles = [f"! {each.name}: {each.trouble}" for each in findings if each.trouble]
    return ["", *troubles] if troubles else ["", "OK: nothing is wrong"]


def as_json(findings: Iterable[Finding]) -> str:
    """Return findings as one JSON document: a list of objects with the fields of `Finding`."""
    return json.dumps([asdict(each) for each in findings], indent=1, ensure_ascii=False) + "\n"
