"""`Needed`: what a model raises while it is traced and asks for numbers that are not known."""

from __future__ import annotations


class Needed(Exception):  # noqa: N818 -- no error: the model is traced again with these numbers known
    """A rule asks for the numbers of a value that are not known while a model is traced.

    Attributes:
        sources: The inputs and initializers of the graph that they follow from; none where they are decided
            while the model runs.
        why: What they decide.
    """

    def __init__(self, sources: frozenset[str], why: str) -> None:
        """Hold the names, and what the numbers decide."""
        super().__init__(why)
        self.sources, self.why = sources, why
