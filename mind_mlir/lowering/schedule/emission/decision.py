"""What a scheduler decided for one nest, as data: what `--emit=schedule` prints."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One thing that was chosen.

    Attributes:
        name: What, in a word: ``tile``, ``chunks``, ``pack``.
        value: The choice, as it is printed.
        reason: Why, for people.
    """

    name: str
    value: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """How one nest is computed.

    Attributes:
        kind: The schedule: ``fused``, ``product``, ``transposition``, ``plain``.
        computes: The operations of the nest, in order, each with its location where it has one.
        extents: The extents of its loops.
        choices: What was chosen, and why.
    """

    kind: str
    computes: tuple[str, ...]
    extents: tuple[int, ...]
    choices: tuple[Choice, ...]
