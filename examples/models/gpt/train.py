"""Trains the model, shows how the loss falls, and lets it write."""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from examples.models.gpt.model import Config, evaluate, following, initial, train

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[3]
#: Of the text, so much at its end is not trained on.
_HELD_OUT = 0.05
_ROUNDS = 8


def text_of(paths: Sequence[str]) -> Any:
    """Return the bytes of files one after the other; without any, those of the project's own pages."""
    files = [Path(path) for path in paths] or sorted((ROOT / "docs").rglob("*.md"))
    return np.frombuffer(b"\n".join(file.read_bytes() for file in files), np.uint8)


class Trainer:
    """A model that is trained on a text.

    Attributes:
        params: Its weights.
        step: How many steps have been made.
    """

    def __init__(self, config: Config, text: Any, steps: int, *, batch: int, rate: float, seed: int) -> None:
        """Begin with random weights.

        Raises:
            ValueError: The text is too short.
        """
        held = math.ceil(len(text) * _HELD_OUT)
        if held <= config.context + 1:
            raise ValueError(f"a text of {len(text)} bytes is too short: {config.context} are seen at once")
        self._config, self._steps, self._batch, self._rate = config, steps, batch, rate
        self._text, self._held_out = text[:-held], text[-held:]
        self._random = np.random.default_rng(seed)
        self.params: Any = initial(config, seed)
        self._moments: Any = {
            name: (np.zeros_like(each), np.zeros_like(each)) for name, each in self.params.items()
        }
        self.step = 0

    def advance(self) -> float:
        """Make a step, and return the loss before it."""
        self.step += 1
        warm, done = min(1.0, self.step / (0.05 * self._steps)), self.step / self._steps
        rate = self._rate * warm * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done)))
        value, self.params, self._moments = train(
            self.params,
            self._moments,
            self._drawn(self._text, self._random),
            np.float32(rate),
            np.float32(self.step),
            config=self._config,
        )
        return float(value)

    def held_out(self) -> float:
        """Return the loss of what is not trained on, of the same places each time."""
        random = np.random.default_rng(0)
        losses = [
            float(evaluate(self.params, self._drawn(self._held_out, random), config=self._config))
            for _ in range(_ROUNDS)
        ]
        return sum(losses) / _ROUNDS

    def write(self, beginning: bytes, count: int, temperature: float = 0.7, seed: int = 0) -> bytes:
        """Return bytes that the model writes behind others."""
        random, written = np.random.default_rng(seed), list(beginning)
        for _ in range(count):
            seen = written[-self._config.context :]
            tokens = np.zeros(self._config.context, np.int32)
            tokens[: len(seen)] = seen
            found = following(self.params, tokens, np.int32(len(seen) - 1), config=self._config)
            chances = np.exp((found.astype(np.float64) - found.max()) / temperature)
            written.append(int(random.choice(len(chances), p=chances / chances.sum())))
        return bytes(written[len(beginning) :])

    def _drawn(self, text: Any, random: np.random.Generator) -> Any:
        begins = random.integers(0, len(text) - self._config.context, self._batch)
        return np.stack([text[begin : begin + self._config.context + 1] for begin in begins]).astype(np.int32)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line says, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.models.gpt", description=__doc__)
    parser.add_argument("text", nargs="*", help="files of text; the project's own pages unless given")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", type=int, default=Config.layers)
    parser.add_argument("--width", type=int, default=Config.width)
    parser.add_argument("--context", type=int, default=Config.context)
    parser.add_argument("--output", help="where to write the weights, an .npz file")
    given = parser.parse_args(arguments)
    if min(given.steps, given.batch, given.layers, given.context) < 1 or given.width < 4 or given.width % 4:
        parser.error("steps, batch, layers and context must be 1 or more, and width a multiple of 4")
    try:
        config = Config(given.layers, given.width, 4, given.context)
        text = text_of(given.text)
        trainer = Trainer(config, text, given.steps, batch=given.batch, rate=given.rate, seed=given.seed)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    count = sum(each.size for each in trainer.params.values())
    print(f"{len(text):,} bytes of text, {count:,} weights; a byte by chance: loss {math.log(256):.2f}")
    _run(trainer, given.steps, given.batch * given.context)
    print(f"\n{trainer.write(b'# The ', 200).decode(errors='replace')}")
    if given.output:
        np.savez(given.output, allow_pickle=False, **trainer.params)
        print(f"\n{len(mind_mlir.load_weights(given.output))} tensors are in {given.output}")
    return 0


def _run(trainer: Trainer, steps: int, tokens: int) -> None:
    """Make all steps, and show the loss ten times on the way."""
    print(f"before the first step: held out {trainer.held_out():.3f}")
    trainer.advance()  # for which code is made
    shown, losses, start = max(steps // 10, 1), [], time.perf_counter()
    for number in range(2, steps + 1):
        losses.append(trainer.advance())
        if number % shown == 0 or number == steps:
            pace = tokens * len(losses) / (time.perf_counter() - start)
            mean = sum(losses) / len(losses)
            held = trainer.held_out()
            print(
                f"step {number:>5}/{steps}  loss {mean:.3f}  held out {held:.3f}  {pace:,.0f} bytes a second",
                flush=True,
            )
            losses, start = [], time.perf_counter()
