"""The networks of the examples: they compute what numpy does, and say what is wrong."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from examples.models.bert.__main__ import Model, load_model
from examples.models.bert.__main__ import main as bert
from examples.models.bert.network import Config, random_weights
from examples.models.bert.tokenizer import Tokenizer, letters
from examples.models.resnet import network
from examples.models.resnet.__main__ import main as resnet
from examples.models.resnet.images import drawn, prepared, read_image

if TYPE_CHECKING:
    from pathlib import Path


def test_an_image_is_classified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "tiny.npz", **network.random_weights("tiny"))
    image = drawn(300)
    (tmp_path / "image.ppm").write_bytes(b"P6 # drawn\n300 300\n255\n" + image.tobytes())
    np.save(tmp_path / "image.npy", image)
    (tmp_path / "labels").write_text("\n".join(f"thing {place}" for place in range(1000)), "utf-8")
    files = (str(tmp_path / "tiny.npz"), str(tmp_path / "image.ppm"), "--calls=1", "--most=2")
    found = []
    for more in (["--by-reference"], ["--labels", str(tmp_path / "labels")]):
        assert resnet([*files, *more]) == 0
        said = capsys.readouterr()
        assert "ms an image" in said.err
        found.append(said.out)
    assert found[0].replace("class", "thing") == found[1]
    assert found[1].count("thing") == 2
    np.testing.assert_array_equal(read_image(files[1]), read_image(str(tmp_path / "image.npy")))
    assert prepared(image).shape == (1, 3, 224, 224)


@pytest.mark.parametrize("size", ["18", "50"])
def test_blocks_have_two_or_three_convolutions(size: str) -> None:
    params = network.random_weights(size)
    lowered = mind_mlir.jit(network.logits).lower(params, np.zeros((1, 3, 224, 224), np.float32))
    assert str(lowered.module).count(" = Convolution ") == {"18": 20, "50": 53}[size]


def test_what_is_no_image_and_no_network_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("P6 2 2 255", "utf-8")
    np.save(tmp_path / "floats.npy", np.ones((2, 2)))
    np.savez(tmp_path / "other.npz", w=np.ones(2, np.float32))
    for given, said in (
        (["tiny", str(tmp_path / "text")], "cut short"),
        (["tiny", str(tmp_path / "floats.npy")], "float64[2, 2]"),
        (["tiny", str(tmp_path / "none")], "No such file"),
        ([str(tmp_path / "other.npz")], "there is no conv1.weight"),
        ([str(tmp_path / "text")], "E6505"),
    ):
        assert resnet(given) == 1
        assert said in capsys.readouterr().err


def test_words_fit_a_gap_and_sentences_are_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert bert(["fill", "tiny", "A cat [MASK] on the mat.", "--most=3"]) == 0
    assert capsys.readouterr().out.count("%") == 3
    assert bert(["compare", "tiny", "a cat", "a cat", "the dog"]) == 0
    assert capsys.readouterr().out.startswith(" 1.000  a cat\n 1.000  a cat\n")
    assert bert(["fill", "tiny", "no gap"]) == 1
    assert "0 times [MASK]" in capsys.readouterr().err


def test_the_network_is_berts() -> None:
    """Against the same layers in numpy, in f64."""
    config = Config(1, 16, 32, 2, len(letters().words), 64)
    params = random_weights(config, seed=1)
    model = Model(params, config, letters())
    wide = {name: np.asarray(each, np.float64) for name, each in params.items()}
    tokens = model.tokenizer.encode("a cat")
    x = _bert(wide, tokens, config).mean(axis=0)
    np.testing.assert_allclose(model.vector("a cat"), x / np.linalg.norm(x), atol=1e-5)


def _bert(params: Any, tokens: list[int], config: Config) -> Any:
    def norm(name: str, x: Any) -> Any:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + config.epsilon)
        return x * params[f"{name}.weight"] + params[f"{name}.bias"]

    def layer(name: str, x: Any) -> Any:
        return x @ params[f"{name}.weight"].T + params[f"{name}.bias"]

    embeddings = "embeddings"
    x = params[f"{embeddings}.word_embeddings.weight"][tokens]
    x = x + params[f"{embeddings}.position_embeddings.weight"][: len(tokens)]
    x = norm(f"{embeddings}.LayerNorm", x + params[f"{embeddings}.token_type_embeddings.weight"][0])
    name, heads = "encoder.layer.0", []
    q, k, v = (layer(f"{name}.attention.self.{part}", x) for part in ("query", "key", "value"))
    for each in np.split(np.arange(config.width), config.heads):
        scores = np.exp(q[:, each] @ k[:, each].T / np.sqrt(len(each)))
        heads.append(scores / scores.sum(-1, keepdims=True) @ v[:, each])
    attended = layer(f"{name}.attention.output.dense", np.concatenate(heads, axis=-1))
    x = norm(f"{name}.attention.output.LayerNorm", x + attended)
    inner = layer(f"{name}.intermediate.dense", x)
    erf = np.vectorize(math.erf)
    inner = inner * 0.5 * (1 + erf(inner / np.sqrt(2)))
    return norm(f"{name}.output.LayerNorm", x + layer(f"{name}.output.dense", inner))


def test_a_folder_of_weights_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", "sit", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words), "utf-8")
    config = Config(1, 16, 32, 2, len(words), 8)
    weights = {f"bert.{name}": each for name, each in random_weights(config).items()}
    np.savez(tmp_path / "model.npz", **weights)
    said = {"num_attention_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(said), "utf-8")
    model = load_model(str(tmp_path / "model.npz"))
    assert model.config == config
    assert model.tokenizer.encode("Cats sít. 猫") == [2, 5, 6, 7, 8, 1, 3]
    assert bert(["compare", str(tmp_path / "model.npz"), "cat " * 9]) == 1
    assert "11 tokens" in capsys.readouterr().err
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": 3}), "utf-8")
    assert bert(["compare", str(tmp_path / "model.npz"), "cat"]) == 1
    assert "3 heads" in capsys.readouterr().err


def test_pieces_are_the_longest() -> None:
    words = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "##affable", "a"]
    tokenizer = Tokenizer(words)
    assert tokenizer.encode("unaffable [MASK]a unx") == [1, 4, 7, 3, 8, 0, 2]
