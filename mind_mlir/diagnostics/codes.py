"""The catalogue of diagnostic codes: the public ones of the language (E1001 to E6008) and ours.

The first digit is the phase. Codes ``Ex1xx`` and ``E7xxx`` are this compiler's own additions.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType

from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, Language, Sample
from mind_mlir.support.families import families

_PHASES = {
    "E11": "parse",
    "E1": "lexical",
    "E2": "type",
    "E3": "shape",
    "E4": "verification",
    "E5": "autodiff",
    "E65": "artefact",
    "E6": "runtime",
    "E7": "support",
}
#: What the languages of examples are called.
LANGUAGES: Mapping[Language, str] = {"core": "Core IR", "surface": "the surface language", "python": "Python"}

#: Every entry by its code, in ascending order.
CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType(
    {
        entry.code: entry
        for entry in sorted(
            chain(*families("mind_mlir.diagnostics.catalogue", "ENTRIES")), key=lambda entry: entry.code
        )
    }
)


def phase_of(code: str) -> str:
    """Return the phase that reports ``code``, for example ``shape``."""
    return next((phase for prefix, phase in _PHASES.items() if code.startswith(prefix)), "internal")


def lookup(code: str) -> CatalogueEntry | None:
    """Return the entry of ``code``, spelled in any case, or None."""
    return CATALOGUE.get(code.strip().upper())


def samples(entry: CatalogueEntry) -> list[tuple[Language, Sample]]:
    """Return the examples of an entry, with the language of each."""
    found = [(entry.language, Sample(entry.bad, entry.good))] if entry.bad else []
    return [*found, ("surface", entry.surface)] if entry.surface else found


def explain(entry: CatalogueEntry) -> str:
    """Return the text that `explain` prints: meaning, facts, and an example with its correction."""
    parts = [f"{entry.code}: {entry.title}  ({phase_of(entry.code)})", entry.explanation]
    if entry.context:
        parts.append(f"The machine-readable form carries: {', '.join(entry.context)}.")
    for language, sample in samples(entry):
        parts.append(f"Wrong, in {LANGUAGES[language]}:\n\n{_indent(sample.bad)}")
        parts.append(f"Right:\n\n{_indent(sample.good)}")
    return "\n\n".join(parts) + "\n"


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip("\n").split("\n"))
