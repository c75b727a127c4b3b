"""``python -m examples.models.bert``: words that fit a gap, and how alike sentences are."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from examples.models.bert.network import (
    SIZES,
    Config,
    ModelError,
    config_of,
    named,
    random_weights,
    sentence,
    word_logits,
)
from examples.models.bert.tokenizer import MASK, Tokenizer, letters, read_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.models.bert", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help_ in (
        ("fill", f"say which words fit {MASK} in a text"),
        ("compare", "say how alike sentences are to the first one"),
    ):
        one = commands.add_parser(name, help=help_)
        one.add_argument(
            "model",
            help="a directory with model.safetensors, config.json and vocab.txt, as of transformers; a file "
            f"of weights; or random weights: {', '.join(SIZES)}",
        )
        one.add_argument("texts", nargs=1 if name == "fill" else "+", metavar="text", help="a sentence")
        one.add_argument("--vocabulary", help="a file with a word on each line; that of the model's folder")
        one.add_argument("--threads", type=int, help="how many threads there are")
        if name == "fill":
            one.add_argument("--most", type=int, default=5, help="how many words are shown")
    return parser


class Model:
    """A model and its vocabulary, whose functions are compiled for each length of a text.

    Attributes:
        params: Its weights, which each call reads where they lie.
        config: Its size.
        tokenizer: Its vocabulary.
    """

    def __init__(self, params: Any, config: Config, tokenizer: Tokenizer) -> None:
        if len(tokenizer.words) > config.vocabulary:
            raise ModelError(
                f"the vocabulary has {len(tokenizer.words)} words, and the model {config.vocabulary}"
            )
        self.params, self.config, self.tokenizer = params, config, tokenizer
        self._logits = mind_mlir.jit(word_logits, static_argnames="config")
        self._sentence = mind_mlir.jit(sentence, static_argnames="config")

    def words(self, text: str) -> Any:
        """Return f32[vocabulary]: the share that each word has in the gap of a text."""
        if "cls.predictions.transform.dense.weight" not in self.params:
            raise ModelError("the model has no head for masked words")
        tokens = self._tokens(text)
        (places,) = np.nonzero(tokens == self.tokenizer.mask)
        if len(places) != 1:
            raise ModelError(f"the text has {len(places)} times {MASK}, and needs one")
        found = np.asarray(self._logits(self.params, tokens, np.int32(places[0]), config=self.config))
        powers = np.exp(found - found.max())
        return powers / powers.sum()

    def vector(self, text: str) -> Any:
        """Return f32[width], of length 1, for a text."""
        return np.asarray(self._sentence(self.params, self._tokens(text), config=self.config))

    def _tokens(self, text: str) -> Any:
        tokens = np.array(self.tokenizer.encode(text), np.int32)
        if len(tokens) > self.config.context:
            raise ModelError(f"the text has {len(tokens)} tokens, and the model takes {self.config.context}")
        return tokens


def load_model(model: str, vocabulary: str | None = None) -> Model:
    """Return a model: random weights of a size, or those of a file or folder.

    Raises:
        ModelError: There is none, or it is of another kind.
    """
    folder = Path(model) if Path(model).is_dir() else Path(model).parent
    if vocabulary is None and model not in SIZES:
        vocabulary = str(folder / "vocab.txt")
    tokenizer = letters() if vocabulary is None else read_vocabulary(vocabulary)
    if model in SIZES:
        layers, width, hidden, heads = SIZES[model]
        config = Config(layers, width, hidden, heads, len(tokenizer.words))
        return Model(random_weights(config), config, tokenizer)
    params = named(mind_mlir.load_weights(model))
    said = folder / "config.json"
    given = json.loads(said.read_text("utf-8")) if said.is_file() else {}
    return Model(params, config_of(params, given), tokenizer)


def _timed(call: Callable[[], Any]) -> tuple[Any, str]:
    """Return what ``call`` returns, and how long it takes the first time and at best."""
    times = []
    for _ in range(6):
        start = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - start)
    return found, f"[ready in {times[0]:.1f} s; {min(times[1:]) * 1e3:.1f} ms a text]"


def _fill(model: Model, text: str, most: int) -> None:
    shares, pace = _timed(lambda: model.words(text))
    for place in np.argsort(-shares, kind="stable")[:most].tolist():
        name = model.tokenizer.words[place] if place < len(model.tokenizer.words) else f"word {place}"
        print(f"{shares[place]:6.1%}  {name}")
    _tell(pace)


def _compare(model: Model, texts: Sequence[str]) -> None:
    first, pace = _timed(lambda: model.vector(texts[0]))
    for text in texts:
        print(f"{first @ model.vector(text):6.3f}  {text}")
    _tell(pace)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.threads is not None:
            mind_mlir.set_num_threads(options.threads)
        model = load_model(options.model, options.vocabulary)
        if options.command == "fill":
            _fill(model, options.texts[0], options.most)
        else:
            _compare(model, options.texts)
    except (ModelError, mind_mlir.MindError, ValueError) as error:
        _tell(f"error: {error}")
        return 1
    except OSError as error:
        _tell(f"error: {error.filename or ''}: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
