"""A model of the corpus: its name, and what is needed to build it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Entry:
    """A model.

    Attributes:
        name: Its name, of which there is no other.
        family: Where it is from: a module of `benchmarks.models.frameworks` builds all of one family.
        architecture: What the family calls it.
        inputs: The kind of what it is called with, where a family has several.
        small: Settings with which a call takes well under a second; with none it is as large as it is used.
        always: Settings of either size.
        trains: Whether gradients and a step of an optimiser are compared, too.
        quick: Whether it is one of the few of `--quick`.
    """

    name: str
    family: str
    architecture: str
    inputs: str = ""
    small: Mapping[str, Any] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)
    trains: bool = True
    quick: bool = False

    def settings(self, *, real: bool) -> dict[str, Any]:
        """Return the settings of a size."""
        return {**self.always} if real else {**self.always, **self.small}
