"""The choice of the next token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from examples.models.llama.config import ModelError


@dataclass(frozen=True)
class Sampling:
    """The way in which tokens are drawn from their logits.

    Attributes:
        temperature: What logits are divided by; 0 takes the likeliest token.
        top_k: Of how many tokens one is drawn, the likeliest ones; 0 for all.
        top_p: Of these, the fewest that are at least as likely as this together; 1 for all.
        seed: What the draws begin with; None for others each time.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < np.inf:
            raise ModelError(f"the temperature must be 0 or more, not {self.temperature}")
        if self.top_k < 0:
            raise ModelError(f"top_k must be 0 or more, not {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ModelError(f"top_p must be above 0 and at most 1, not {self.top_p}")

    def generator(self) -> np.random.Generator:
        """Return what the draws of one text come from."""
        return np.random.default_rng(self.seed)

    def draw(self, logits: Any, random: np.random.Generator) -> int:
        """Return a token, given the logits of all."""
        if self.temperature == 0:
            return int(np.argmax(logits))
        count = min(self.top_k or len(logits), len(logits))
        tokens = np.argpartition(logits, -count)[-count:]
        tokens = tokens[np.argsort(-logits[tokens], kind="stable")]
        chances = np.exp((logits[tokens].astype(np.float64) - logits[tokens[0]]) / self.temperature)
        chances /= chances.sum()
        kept = int(np.searchsorted(np.cumsum(chances), self.top_p)) + 1
        chances = chances[:kept] / chances[:kept].sum()
        return int(tokens[random.choice(len(chances), p=chances)])
