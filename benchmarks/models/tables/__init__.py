"""The models of the corpus: a table for each family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.models.tables import flax, image_models, texts, torch_networks, translators, vision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.models.entry import Entry

_TABLES = (vision, image_models, texts, translators, torch_networks, flax)

#: All models by name, sorted.
ENTRIES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in sorted((entry for table in _TABLES for entry in table.ENTRIES), key=lambda each: each.name)
}
assert len(ENTRIES) == sum(len(table.ENTRIES) for table in _TABLES), "names of models are unique"
