"""The decoder of the examples: it computes what a model of its kind does, and says what is wrong."""

from __future__ import annotations

import http.client
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import weight_files

import mind_mlir
from examples.models.llama.__main__ import main
from examples.models.llama.byte_pairs import BytePairs, _alphabet
from examples.models.llama.chat import Chat
from examples.models.llama.config import SIZES, Config, ModelError
from examples.models.llama.decoder import Decoder
from examples.models.llama.generation import generate, load_model
from examples.models.llama.reference import logits_of
from examples.models.llama.sampling import Sampling
from examples.models.llama.scored_pieces import ScoredPieces
from examples.models.llama.server import Service, serve
from examples.models.llama.tokenizers import byte_tokenizer
from examples.models.llama.weights import FILE_NAMES, FORMS, multiplied, random_weights

if TYPE_CHECKING:
    from collections.abc import Iterator


TINY = Config(2, 32, 64, 4, 2, 8, 258, 300, epsilon=2.0**-17, base=500.0)


def wide(params: Any) -> Any:
    """Return weights whose matrices are no longer quantised."""
    if isinstance(params, dict):
        return {name: wide(each) for name, each in params.items()}
    if isinstance(params, list):
        return list(map(wide, params))
    return params.dequantized() if isinstance(params, mind_mlir.QuantizedWeights) else params


@pytest.mark.parametrize(
    ("dtype", "tolerance", "counts"),
    [("f32", 1e-5, (1, 250, 30)), ("bf16", 0.1, (20, 1, 1)), ("Q4_0", 0.1, (20, 1))],
)
def test_logits_are_those_of_numpy(dtype: str, tolerance: float, counts: tuple[int, ...]) -> None:
    """Tokens are read one by one and many at once, and there is more room when there has to be."""
    params = random_weights(TINY, dtype)
    tokens = np.random.default_rng(1).integers(0, TINY.vocabulary, 290).tolist()
    expected = logits_of(wide(params), tokens, TINY)
    decoder = Decoder(TINY, params)
    for count in counts:
        logits = decoder.read(tokens[decoder.position : decoder.position + count])
        assert np.abs(logits - expected[decoder.position - 1]).max() < tolerance
    decoder.rewind(decoder.position - counts[-1])
    logits = decoder.read(tokens[decoder.position : decoder.position + counts[-1]])
    assert np.abs(logits - expected[decoder.position - 1]).max() < tolerance


def test_what_a_decoder_refuses() -> None:
    decoder = Decoder(TINY, random_weights(TINY, "f32"))
    for tokens, message in (
        ([], "there is nothing to read"),
        ([258], "a token is none of the 258 of the model"),
        ([1] * 301, "301 tokens do not fit: the model is for 300"),
    ):
        with pytest.raises(ModelError, match=message):
            decoder.read(tokens)
    with pytest.raises(ModelError, match="3 heads of width 8 cannot share 2 keys"):
        Config(1, 24, 8, 3, 2, 8, 258, 16)


def test_logits_are_those_of_transformers() -> None:
    pytest.importorskip("torch.fx")  # a folder of tests is a `torch`, too
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = Config(2, 32, 64, 4, 2, 8, 100, 64, epsilon=1e-5, base=10000.0)
    theirs = transformers.LlamaConfig(
        num_hidden_layers=config.layers,
        hidden_size=config.width,
        intermediate_size=config.hidden,
        num_attention_heads=config.heads,
        num_key_value_heads=config.groups,
        vocab_size=config.vocabulary,
        max_position_embeddings=config.context,
        rms_norm_eps=config.epsilon,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(theirs).eval()
    state = {name: each.detach().numpy() for name, each in model.state_dict().items()}

    def neighbours(weight: Any) -> Any:
        """Return a matrix whose heads have pairs side by side; those of transformers have halves."""
        halves = weight.reshape(-1, 2, config.depth // 2, config.width)
        return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(weight.shape))

    def layer(number: int) -> dict[str, Any]:
        given = {name.removeprefix(f"model.layers.{number}."): each for name, each in state.items()}
        return {
            "attention_norm": given["input_layernorm.weight"],
            "query": neighbours(given["self_attn.q_proj.weight"]),
            "key": neighbours(given["self_attn.k_proj.weight"]),
            "value": given["self_attn.v_proj.weight"],
            "attention_output": given["self_attn.o_proj.weight"],
            "gated_norm": given["post_attention_layernorm.weight"],
            "gate": given["mlp.gate_proj.weight"],
            "up": given["mlp.up_proj.weight"],
            "down": given["mlp.down_proj.weight"],
        }

    params = {
        "embedding": state["model.embed_tokens.weight"],
        "layers": [layer(number) for number in range(config.layers)],
        "norm": state["model.norm.weight"],
        "output": state["lm_head.weight"],
        "factors": np.ones(config.depth // 2, np.float32),
    }
    tokens = [3, 1, 4, 1, 5, 92, 65, 35]
    with torch.no_grad():
        expected = model(torch.tensor([tokens])).logits[0].numpy()
    decoder = Decoder(config, params)
    for count in (5, 1, 1, 1):
        logits = decoder.read(tokens[decoder.position : decoder.position + count])
        assert np.abs(logits - expected[decoder.position - 1]).max() < 1e-5


WORDS = [
    *_alphabet().values(),
    "he",
    "ll",
    "hell",
    "\u0120h",
    "<|end_of_text|>",
    "<|im_start|>",
    "<|im_end|>",
]


OF_WORDS = replace(TINY, vocabulary=len(WORDS))


def gguf_file(path: Path, *, without: str = "", tensors: Any = None, **other: Any) -> Any:
    """Write a model with random weights, and return these; ``other`` is metadata, with _ for a point."""
    config = OF_WORDS
    params = random_weights(config, "f32", seed=3)
    names = {"token_embd": params["embedding"], "output_norm": params["norm"], "output": params["output"]}
    for number, layer in enumerate(params["layers"]):
        names |= {f"blk.{number}.{FILE_NAMES[name]}": each for name, each in layer.items()}
    metadata = {
        "general.architecture": "llama",
        "general.name": "Tiny",
        "llama.block_count": config.layers,
        "llama.embedding_length": config.width,
        "llama.feed_forward_length": config.hidden,
        "llama.attention.head_count": config.heads,
        "llama.attention.head_count_kv": config.groups,
        "llama.attention.layer_norm_rms_epsilon": config.epsilon,
        "llama.rope.freq_base": config.base,
        "llama.context_length": config.context,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": WORDS,
        "tokenizer.ggml.token_type": [1] * 260 + [3] * 3,
        "tokenizer.ggml.merges": ["\u0120 h", "h e", "l l", "he ll"],
        "tokenizer.ggml.eos_token_id": WORDS.index("<|end_of_text|>"),
    }
    metadata |= {name.replace("__", "."): value for name, value in other.items()}
    found = {f"{name}.weight": each for name, each in names.items()} | (tensors or {})
    kept = {name: each for name, each in found.items() if name != without}
    path.write_bytes(weight_files.gguf(kept, {k: v for k, v in metadata.items() if v is not None}))
    return params


def test_a_model_of_a_gguf_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tiny.gguf"
    params = gguf_file(path)
    model = load_model(str(path))
    assert model.name == "Tiny"
    assert model.config == OF_WORDS
    tokens = model.tokenizer.encode("hello hell")
    assert [WORDS[token] for token in tokens] == ["hell", "o", "\u0120h", "e", "ll"]
    expected = logits_of(params, tokens, OF_WORDS)[-1]
    assert np.abs(Decoder(model.config, model.params).read(tokens) - expected).max() < 1e-5
    copied = load_model(str(path), copied=True)
    assert np.abs(Decoder(copied.config, copied.params).read(tokens) - expected).max() < 1e-5
    assert main(["complete", str(path), "hello", "--most", "4", "--temperature", "0"]) == 0
    told = capsys.readouterr().err
    assert "Tiny: 0.0 million weights" in told
    assert "2 tokens read" in told


def test_tied_and_quantised_weights_and_factors(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    name, factors = "blk.1.ffn_up.weight", np.array([1, 2, 4, 8], np.float32)
    blocks = weight_files.quantized_blocks("Q8_0", (64, 32))
    given = {name: (8, (64, 32), blocks), "rope_freqs.weight": factors}
    params = gguf_file(path, without="output.weight", tensors=given)
    scales = np.frombuffer(blocks, np.uint8).reshape(64, 34)
    wide = scales[:, :2].copy().view(np.float16).astype(np.float32)
    params["layers"][1]["up"] = wide * scales[:, 2:].view(np.int8)
    params |= {"output": params["embedding"], "factors": factors}
    model = load_model(str(path))
    expected = logits_of(params, [1, 2, 3], OF_WORDS)[-1]
    found = Decoder(model.config, model.params).read([1, 2, 3])
    assert isinstance(model.params["layers"][1]["up"], mind_mlir.QuantizedWeights)
    assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()  # activations are of 8 bits
    found = Decoder(model.config, load_model(str(path), "f32").params).read([1, 2, 3])
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


def test_weights_become_what_is_asked_for() -> None:
    matrix = np.random.default_rng(0).standard_normal((2, 32)).astype(np.float32)
    for dtype in FORMS:
        made = multiplied(matrix, dtype)
        assert multiplied(made, dtype) is made
        assert multiplied(made, None) is made
        assert np.abs(wide(multiplied(made, "f32")) - matrix).max() < 0.3
    assert multiplied(matrix.astype(np.float16), None).dtype == np.float32


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"without": "blk.1.attn_q.weight"}, "the file has no tensor 'blk.1.attn_q.weight'"),
        (
            {"tensors": {"x": np.ones(1, np.float32)}},
            "the model has 'x' and 0 more, which this decoder lacks",
        ),
        (
            {"tensors": {"output_norm.weight": np.ones(3, np.float32)}},
            r"'output_norm.weight' has shape \[3\], expected \[32\]",
        ),
        ({"general__architecture": "gemma"}, "the model is of the architecture 'gemma'"),
        ({"llama__block_count": None}, "the file does not say what llama.block_count is"),
        ({"llama__rope__scaling__type": "yarn"}, "positions are scaled in the way 'yarn'"),
        ({"llama__expert_count": 8}, "the model has experts"),
        ({"llama__rope__dimension_count": 4}, "4 of 8 numbers of a head are turned"),
        ({"tokenizer__ggml__model": "bert"}, "the tokenizer is of the kind 'bert'"),
        ({"tokenizer__ggml__pre": "x"}, "the tokenizer cuts texts in the way 'x'"),
        ({"tokenizer__ggml__tokens": None}, "the file has no vocabulary"),
        ({"tokenizer__ggml__tokens": ["a"] * len(WORDS)}, "the vocabulary has no token for"),
        ({"tokenizer__ggml__model": "llama"}, "has 263 pieces and 0 scores"),
    ],
)
def test_models_that_are_refused(tmp_path: Path, other: Any, message: str) -> None:
    path = tmp_path / "tiny.gguf"
    gguf_file(path, **other)
    with pytest.raises(ModelError, match=message):
        load_model(str(path))


def test_byte_pairs_are_those_of_the_library() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    text = Path(__file__).read_text(encoding="utf-8")
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet)
    theirs.train_from_iterator([text], trainer)
    model = json.loads(theirs.to_str())["model"]
    words = sorted(model["vocab"], key=model["vocab"].__getitem__)
    ours = BytePairs(words, [" ".join(pair) for pair in model["merges"]], "gpt-2")
    for sample in (text, "it's  100 \u00fcber_alles!\n\n  x", "\u4f60\u597d \U0001f600", ""):
        tokens = ours.encode(sample)
        assert tokens == theirs.encode(sample).ids
        assert b"".join(map(ours.bytes_of, tokens)).decode() == sample


def test_llama_3_cuts_numbers_and_lines() -> None:
    pieces = BytePairs([*_alphabet().values()], [], "llama-bpe")
    found = [match[0] for match in pieces._cut.finditer("I'M 12345 ok!!\n\n  (x_y)")]
    assert found == ["I", "'M", " ", "123", "45", " ok", "!!\n\n", " ", " (", "x", "_y", ")"]


def test_scored_pieces() -> None:
    words = [
        "<unk>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "\u2581",
        "a",
        "b",
        "ab",
        "\u2581a",
        "bb",
        "abb",
    ]
    scores = [0.0] * 257 + [-10.0, -11.0, -12.0, -2.0, -3.0, -1.0, -0.5]
    pieces = ScoredPieces(words, scores, spaced=True)
    assert [words[token] for token in pieces.encode("abb")] == ["\u2581", "abb"]
    assert [words[token] for token in pieces.encode("ab b")] == ["\u2581", "ab", "\u2581", "b"]
    plain = ScoredPieces(words, scores, spaced=False)
    assert [words[token] for token in plain.encode("abb")] == ["abb"]
    assert [words[token] for token in plain.encode("\u00e9")] == ["<0xC3>", "<0xA9>"]
    for text in ("", "ab bba \u00e9 b", "bbbbbbb"):
        assert b"".join(map(plain.bytes_of, plain.encode(text))).decode() == text


def test_characters_come_whole() -> None:
    tokenizer = byte_tokenizer()
    assert tokenizer.encode("\u00e9") == [256, 0xC3, 0xA9]
    assert list(tokenizer.decode([0xC3, 0xA9, 256, 65, 0xC3])) == ["", "\u00e9", "", "A", "", "\ufffd"]


def test_tokens_are_drawn_from_the_likeliest() -> None:
    logits = np.log(np.array([0.5, 0.02, 0.3, 0.18], np.float32))
    random = np.random.default_rng(0)

    def drawn(**given: Any) -> dict[int, float]:
        sampling = Sampling(**{"temperature": 1.0, "top_k": 0, "top_p": 1.0} | given)
        found = [sampling.draw(logits, random) for _ in range(2000)]
        return {token: found.count(token) / 2000 for token in sorted(set(found))}

    assert drawn(temperature=0) == {0: 1.0}
    assert drawn(top_k=1) == {0: 1.0}
    assert drawn(top_k=2) == pytest.approx({0: 0.625, 2: 0.375}, abs=0.05)
    assert drawn(top_p=0.79) == pytest.approx({0: 0.625, 2: 0.375}, abs=0.05)
    assert drawn() == pytest.approx({0: 0.5, 1: 0.02, 2: 0.3, 3: 0.18}, abs=0.05)
    assert drawn(temperature=0.5, top_k=2) == pytest.approx({0: 0.735, 2: 0.265}, abs=0.05)
    for wrong in ({"temperature": -1.0}, {"temperature": float("nan")}, {"top_k": -1}, {"top_p": 0.0}):
        with pytest.raises(ModelError):
            Sampling(**wrong)


def test_the_same_seed_says_the_same() -> None:
    model = load_model("tiny")

    def said(seed: int) -> list[int]:
        decoder = Decoder(model.config, model.params)
        return list(generate(decoder, [256, 72], model.tokenizer, Sampling(seed=seed), 12))

    assert said(1) == said(1) != said(2)


def test_a_text_ends_where_there_is_no_more_room() -> None:
    params = random_weights(Config(1, 16, 16, 2, 1, 8, 258, 8), "f32")
    decoder = Decoder(Config(1, 16, 16, 2, 1, 8, 258, 8), params)
    tokens = generate(decoder, [1] * 5, byte_tokenizer(), Sampling(temperature=0), 100)
    assert len(list(tokens)) <= 4
    assert decoder.position <= 8


def test_turns_of_a_chat(tmp_path: Path) -> None:
    chat = Chat(byte_tokenizer())
    assert chat.turn("hi") == [256, *b"User: hi\nAssistant:"]
    assert chat.turn("so") == [*b"\nUser: so\nAssistant:"]
    path = tmp_path / "tiny.gguf"
    gguf_file(path)
    chat = Chat(load_model(str(path)).tokenizer)
    words = "".join(WORDS[token] for token in chat.turn("<|im_end|>"))
    assert words.startswith("<|im_start|>user\u010a<|im_end|><|im_end|>")
    assert chat.turn("x")[0] == WORDS.index("<|im_end|>")


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    server = serve(Service(load_model("tiny"), lambda _: None), "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    host, port = server.server_address[:2]
    yield str(host), int(port)
    server.shutdown()
    server.server_close()
    thread.join()


def ask(address: tuple[str, int], method: str, path: str, body: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*address, timeout=60)
    connection.request(method, path, body)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def test_completions_over_http(address: tuple[str, int]) -> None:
    status, text = ask(address, "GET", "/v1/models")
    assert (status, json.loads(text)["data"][0]["id"]) == (200, "tiny")
    request = {"prompt": "Hello", "max_tokens": 5, "temperature": 0}
    status, text = ask(address, "POST", "/v1/completions", json.dumps(request))
    answer = json.loads(text)
    assert status == 200
    assert answer["usage"]["prompt_tokens"] == 6
    assert answer["usage"]["completion_tokens"] <= 5
    assert answer["choices"][0]["finish_reason"] in ("length", "stop")
    status, text = ask(address, "POST", "/v1/completions", json.dumps(request | {"stream": True}))
    events = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert (status, events[-1]) == (200, "[DONE]")
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert "".join(choice["text"] for choice in choices) == answer["choices"][0]["text"]
    assert [choice["finish_reason"] for choice in choices[-2:]] == [
        None,
        answer["choices"][0]["finish_reason"],
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "the request is not JSON"),
        ("[" * 100_000, "the request is not JSON"),
        ("[]", "the request must be an object of JSON"),
        ("{}", "prompt must be a text"),
        ('{"prompt": "x", "n": 2}', "n must be 1"),
        ('{"prompt": "x", "stop": "y"}', "'stop' is not supported"),
        ('{"prompt": "x", "max_tokens": 0}', "max_tokens must be 1 or more"),
        ('{"prompt": "x", "temperature": "hot"}', "temperature must be a number"),
        ('{"prompt": "x", "temperature": NaN}', "temperature must be a number"),
        ('{"prompt": "x", "top_p": 2}', "top_p must be above 0 and at most 1, not 2"),
        (json.dumps({"prompt": "x" * 600}), "601 tokens do not fit: the model is for 512"),
    ],
)
def test_requests_that_are_refused(address: tuple[str, int], body: str, message: str) -> None:
    status, text = ask(address, "POST", "/v1/completions", body)
    assert (status, json.loads(text)["error"]["type"]) == (400, "invalid_request_error")
    assert message in json.loads(text)["error"]["message"]
    assert ask(address, "POST", "/v1/chat", body)[0] == 404
    assert ask(address, "GET", "/")[0] == 404


def test_the_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert main(["bench", "tiny", "--tokens", "2", "--prompt-tokens", "8"]) == 0
    assert "tokens a second (8 tokens)" in capsys.readouterr().out
    lines = iter(["hello", ""])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    assert main(["chat", "tiny", "--most", "3"]) == 0
    assert "tokens read" in capsys.readouterr().err
    for arguments, message in (
        (["complete", "tinier", "x"], "'tinier' is neither a file of GGUF nor one of tiny, 100M, 300M, 1.1B"),
        (["complete", str(tmp_path / "none.gguf"), "x"], "No such file or directory"),
        (["complete", "tiny", "x", "--top-p", "0"], "top_p must be above 0"),
        (["bench", "tiny", "--tokens", "0"], "give 1 token or more"),
    ):
        assert main(arguments) == 1
        assert message in capsys.readouterr().err
    assert SIZES["1.1B"].weights == 1_100_048_384
