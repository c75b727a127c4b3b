"""How fast a decoder of Llama's kind reads and writes tokens, beside llama.cpp where it is installed.

Both run the same GGUF file, which is written with random weights first. Writing a token reads all weights
once: what the bytes of weights a second are of those that a sum reads is the share of memory's speed.
llama.cpp is the package llama-cpp-python, made for this processor: `CMAKE_ARGS=-DGGML_NATIVE=ON pip install
llama-cpp-python`.
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.report import Report
from examples.models.llama.config import SIZES
from examples.models.llama.decoder import Decoder
from examples.models.llama.generation import load_model
from examples.models.llama.reference import logits_of
from examples.models.llama.weights import FILE_NAMES, QUANTIZED, random_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.report import Row
    from examples.models.llama.config import Config

#: The numbers of layouts in GGUF, and of f32.
_KINDS, _F32, _ALIGNMENT = {"Q8_0": 8, "Q4_0": 2}, 0, 32


def measure(size: str, kind: str, options: Any) -> tuple[list[Row], list[str]]:
    """Return what was measured of a model, ours and llama.cpp's, and notes."""
    config = SIZES[size]
    options.tokens = max(1, min(options.tokens, options.prompt))
    tokens = np.random.default_rng(0).integers(3, config.vocabulary, options.prompt).tolist()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.gguf")
        _write(path, config, kind)
        model = load_model(str(path), copied=options.copied)
        ours = Decoder(model.config, model.params)
        candidates: list[tuple[str, Callable[[Sequence[int]], Any], Callable[[], object]]] = [
            ("mind_mlir", ours.read, lambda: ours.rewind(0))
        ]
        if (llama := _llama(path, options)) is not None:
            candidates.append(("llama.cpp", *llama))
        exact = None
        if options.checked:
            plain = _dequantized(model.params)
            exact = logits_of(plain, tokens[: options.checked], config)[-1]
        total = mind_mlir.jit(lambda x: x.sum())
        data = np.ones(options.megabytes << 18, np.float32)
        times = [([float("inf")], [float("inf")]) for _ in candidates]
        sums, errors = [float("inf")], [0.0] * len(candidates)
        for _, read, forget in candidates * 2:  # code is made, for both sizes of the cache
            forget()
            read(tokens)
            read(tokens[:1])
        for _ in range(options.rounds):
            for number, (_, read, forget) in enumerate(candidates):
                forget()
                if exact is not None:
                    found = np.asarray(read(tokens[: options.checked]), np.float64)
                    errors[number] = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
                    forget()
                reading, writing = times[number]
                reading.append(_seconds(partial(read, tokens)))
                writing += [_seconds(partial(read, [token])) for token in tokens[: options.tokens]]
                sums.append(_seconds(partial(total, data)))
    speed = data.nbytes / min(sums)
    rows: list[Row] = []
    for (name, _, _), (reading, writing), error in zip(candidates, times, errors, strict=True):
        row: Row = {
            "model": f"{size} {kind}",
            "by": name,
            "read, tokens/s": len(tokens) / min(reading),
            "written, tokens/s": 1 / min(writing),
            "GB/s": model.bytes_read / min(writing) / 1e9,
            "of memory": model.bytes_read / min(writing) / speed,
        }
        if exact is not None:
            row["error"] = f"{error:.1e}"
        rows.append(row)
    return rows, [f"memory is read at {speed / 1e9:.1f} GB/s by a sum, beside {kind}"]


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _dequantized(params: Any) -> Any:
    """Return weights as the f32 that they stand for."""
    if isinstance(params, dict):
        return {name: _dequantized(each) for name, each in params.items()}
    if isinstance(params, list):
        return [_dequantized(each) for each in params]
    return params.dequantized() if isinstance(params, mind_mlir.QuantizedWeights) else params


def _llama(path: Path, options: Any) -> tuple[Callable[[Sequence[int]], Any], Callable[[], object]] | None:
    """Return what reads tokens with llama.cpp and what makes it forget them; None if it is not installed."""
    try:
        import llama_cpp  # noqa: PLC0415 -- optional
    except ImportError:
        return None
    model = llama_cpp.Llama(
        str(path),
        n_ctx=options.prompt + options.tokens,
        n_batch=options.prompt,
        n_ubatch=options.prompt,
        n_threads=options.threads,
        n_threads_batch=options.threads,
        use_mmap=not options.copied,
        verbose=False,
    )

    def read(tokens: Sequence[int]) -> Any:
        model.eval(tokens)
        pointer = llama_cpp.llama_get_logits_ith(model.ctx, -1)
        return np.ctypeslib.as_array(pointer, (model.n_vocab(),)).copy()

    def forget() -> None:
        model.reset()
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(model.ctx), True)

    return read, forget


# The file


def _write(path: Path, config: Config, kind: str) -> None:
    """Write a model with random weights and a vocabulary of bytes and names; memory is to forget the file."""
    params = random_weights(config, kind)
    tensors = {"token_embd.weight": params["embedding"]}
    for number, layer in enumerate(params["layers"]):
        tensors |= {f"blk.{number}.{FILE_NAMES[name]}.weight": each for name, each in layer.items()}
    tensors |= {"output_norm.weight": params["norm"], "output.weight": params["output"]}
    entries = [_text(key) + value for key, value in _metadata(config)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries)
    contents, offset = [], 0
    for name, each in tensors.items():
        is_quantized = isinstance(each, mind_mlir.QuantizedWeights)
        data = each.blocks if is_quantized else each
        extents = tuple(reversed(each.shape))
        number = _KINDS[kind] if is_quantized else _F32
        head += _text(name) + struct.pack(f"<I{len(extents)}QIQ", len(extents), *extents, number, offset)
        contents.append(data)
        offset += data.nbytes + -data.nbytes % _ALIGNMENT
    with path.open("wb") as file:
        file.write(head + bytes(-len(head) % _ALIGNMENT))
        for data in contents:
            file.write(memoryview(data).cast("B"))
            file.write(bytes(-data.nbytes % _ALIGNMENT))
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):  # what a map then reads anew lies in large pages
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _metadata(config: Config) -> Iterator[tuple[str, bytes]]:
    texts = {"general.architecture": "llama", "tokenizer.ggml.model": "llama"}
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    names = [*names, *(f"word{number}" for number in range(len(names), config.vocabulary))]
    kinds = [2, 3, 3, *[6] * 256]
    kinds += [1] * (config.vocabulary - len(kinds))
    integers = {
        "llama.block_count": config.layers,
        "llama.context_length": config.context,
        "llama.embedding_length": config.width,
        "llama.feed_forward_length": config.hidden,
        "llama.attention.head_count": config.heads,
        "llama.attention.head_count_kv": config.groups,
        "llama.rope.dimension_count": config.depth,
        "llama.vocab_size": config.vocabulary,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    yield from ((key, struct.pack("<I", 8) + _text(value)) for key, value in texts.items())
    yield from ((key, struct.pack("<II", 4, value)) for key, value in integers.items())
    yield "llama.attention.layer_norm_rms_epsilon", struct.pack("<If", 6, config.epsilon)
    count = config.vocabulary
    yield "tokenizer.ggml.tokens", struct.pack("<IIQ", 9, 8, count) + b"".join(map(_text, names[:count]))
    yield "tokenizer.ggml.scores", struct.pack(f"<IIQ{count}f", 9, 6, count, *(-n for n in range(count)))
    yield "tokenizer.ggml.token_type", struct.pack(f"<IIQ{count}i", 9, 5, count, *kinds[:count])


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("decoding", __doc__)
    options_parser.add_argument("--size", choices=SIZES, default="1.1B")
    options_parser.add_argument("--formats", nargs="+", choices=QUANTIZED, default=QUANTIZED)
    options_parser.add_argument("--threads", type=int, default=1)
    options_parser.add_argument("--prompt", type=int, default=512, help="tokens that are read at once")
    options_parser.add_argument("--tokens", type=int, default=16, help="tokens that are written")
    options_parser.add_argument("--rounds", type=int, default=3)
    options_parser.add_argument("--megabytes", type=int, default=256, help="of memory that sums read")
    options_parser.add_argument("--copied", action="store_true", help="weights in memory, not as mapped")
    options_parser.add_argument("--checked", type=int, default=0, help="tokens whose logits f64 checks")
    options = options_parser.parse_args(arguments)
    rows: list[Row] = []
    notes: list[str] = []
    before = mind_mlir.get_num_threads()
    mind_mlir.set_num_threads(options.threads)
    try:
        for kind in options.formats:
            more, beside = measure(options.size, kind, options)
            rows, notes = [*rows, *more], [*notes, *beside]
    finally:
        mind_mlir.set_num_threads(before)
    title = f"a decoder of {options.size} weights, {options.threads} threads, {options.prompt} tokens read"
    if options.checked:
        notes.append("error: of logits, relative to those of the same weights in f64")
    return show(Report(title, rows, notes), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
