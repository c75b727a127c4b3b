"""``python -m examples.models.llama``: completes texts, chats, answers over HTTP, and measures."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from examples.models.llama.chat import Chat
from examples.models.llama.config import SIZES, ModelError
from examples.models.llama.decoder import Decoder
from examples.models.llama.generation import Model, Pace, generate, load_model
from examples.models.llama.sampling import Sampling
from examples.models.llama.server import Service, serve
from examples.models.llama.weights import FORMS

if TYPE_CHECKING:
    from collections.abc import Sequence


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.models.llama", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help_ in (
        ("complete", "go on from a text"),
        ("chat", "answer what is typed"),
        ("serve", "answer over HTTP, at /v1/completions"),
        ("bench", "measure tokens a second"),
    ):
        one = commands.add_parser(name, help=help_)
        one.add_argument("model", help=f"a file of GGUF, or random weights: {', '.join(SIZES)}")
        one.add_argument("--dtype", choices=FORMS, help="what weights are multiplied in")
        one.add_argument(
            "--copied", action="store_true", help="copy a file's weights to memory, don't map it"
        )
        one.add_argument("--threads", type=int, help="how many threads there are")
        if name == "complete":
            one.add_argument("prompt", help="the text")
        if name == "serve":
            one.add_argument("--host", default="127.0.0.1")
            one.add_argument("--port", type=int, default=8080)
        if name in ("complete", "chat"):
            usual = Sampling()
            one.add_argument("--most", type=int, default=128, help="how many tokens are written at most")
            one.add_argument("--temperature", type=float, default=usual.temperature, help="0: the likeliest")
            one.add_argument("--top-k", type=int, default=usual.top_k)
            one.add_argument("--top-p", type=float, default=usual.top_p)
            one.add_argument("--seed", type=int)
        if name == "bench":
            one.add_argument("--tokens", type=int, default=32, help="how many tokens are written")
            one.add_argument("--prompt-tokens", type=int, default=512, help="how many tokens are read first")
    return parser


def _say(model: Model, decoder: Decoder, prompt: Sequence[int], options: argparse.Namespace) -> None:
    pace = Pace()
    sampling = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    tokens = generate(decoder, prompt, model.tokenizer, sampling, options.most, pace)
    for text in model.tokenizer.decode(tokens):
        print(text, end="", flush=True)
    print()
    _tell(f"[{pace}]")


def _chat(model: Model, options: argparse.Namespace) -> None:
    decoder, chat = Decoder(model.config, model.params), Chat(model.tokenizer)
    _tell("Type what you say; an empty line ends the chat.")
    while True:
        try:
            said = input("> ")
        except EOFError:
            return
        if not said:
            return
        _say(model, decoder, chat.turn(said), options)


def _serve(model: Model, options: argparse.Namespace) -> None:
    server = serve(Service(model, _tell), options.host, options.port)
    host, port = server.server_address[:2]
    _tell(f"listening at http://{host!s}:{port}/v1/completions; Ctrl-C ends it")
    with server:
        server.serve_forever()


def read_bandwidth() -> float:
    """Return how many bytes a second all threads together read from memory: the best of several sums."""
    data = np.ones(1 << 26, np.float32)
    total = mind_mlir.jit(lambda x: x.sum())
    total(data)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        total(data)
        times.append(time.perf_counter() - start)
    return data.nbytes / min(times)


def _bench(model: Model, options: argparse.Namespace) -> None:
    decoder = Decoder(model.config, model.params)
    count = min(options.prompt_tokens, model.config.context - options.tokens)
    if count < 1 or options.tokens < 1:
        raise ModelError(f"give 1 token or more, less than the {model.config.context} that there is room for")
    prompt = np.random.default_rng(0).integers(0, model.config.vocabulary, count).tolist()
    reading, writing = [], []
    for _ in range(3):  # code is made in the first round
        decoder.rewind(0)
        start = time.perf_counter()
        decoder.read(prompt)
        reading.append(time.perf_counter() - start)
        for token in (prompt * options.tokens)[: options.tokens]:
            start = time.perf_counter()
            decoder.read([token])
            writing.append(time.perf_counter() - start)
    bandwidth, step = read_bandwidth(), min(writing)
    print(f"read:    {len(prompt) / min(reading):8.1f} tokens a second ({len(prompt)} tokens)")
    print(f"written: {1 / step:8.1f} tokens a second ({1 / np.median(writing):.1f} in the median)")
    share = model.bytes_read / step / bandwidth
    print(f"memory:  {model.bytes_read / step / 1e9:8.1f} GB/s of weights, {share:.0%} of what sums read")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.threads is not None:
            mind_mlir.set_num_threads(options.threads)
        start = time.perf_counter()
        model = load_model(options.model, options.dtype, copied=options.copied)
        taken, size = time.perf_counter() - start, f"{model.config.weights / 1e6:.1f} million weights"
        _tell(f"{model.name}: {size}, {model.bytes_read / 1e9:.2f} GB, ready in {taken:.1f} s")
        if options.command == "complete":
            decoder = Decoder(model.config, model.params)
            _say(model, decoder, model.tokenizer.encode(options.prompt), options)
        elif options.command == "chat":
            _chat(model, options)
        elif options.command == "serve":
            _serve(model, options)
        else:
            _bench(model, options)
    except (ModelError, mind_mlir.MindError, ValueError) as error:
        _tell(f"error: {error}")
        return 1
    except OSError as error:  # such as a port that is taken
        _tell(f"error: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
