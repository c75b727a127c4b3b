"""The small GPT of the examples learns, and says what is wrong with what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from examples.models.gpt.model import Config, initial, logits, loss
from examples.models.gpt.train import Trainer, main, text_of

if TYPE_CHECKING:
    from pathlib import Path

TINY = Config(1, 16, 4, 8)


def test_the_loss_is_that_of_its_logits_and_the_gradient_is_its_slope() -> None:
    params = initial(TINY)
    tokens = np.random.default_rng(0).integers(0, 256, (2, 9)).astype(np.int32)
    found = mind_mlir.jit(lambda params, tokens: logits(params, tokens, TINY))(params, tokens[:, :-1])
    wide = found.astype(np.float64)
    chances = np.exp(wide) / np.exp(wide).sum(axis=-1, keepdims=True)
    expected = -np.log(np.take_along_axis(chances, tokens[:, 1:, None].astype(np.int64), -1)).mean()
    assert mind_mlir.jit(lambda params: loss(params, tokens, TINY))(params) == pytest.approx(
        expected, rel=1e-5
    )
    exact = {name: each.astype(np.float64) for name, each in params.items()}
    value_of = mind_mlir.jit(lambda params: loss(params, tokens, TINY))
    slopes = mind_mlir.grad(lambda params: loss(params, tokens, TINY))(exact)
    for name in ("0.attention.heads", "bytes", "0.inner.gain"):
        way = np.random.default_rng(1).standard_normal(params[name].shape)
        ends = [float(value_of({**exact, name: exact[name] + sign * way})) for sign in (1e-6, -1e-6)]
        assert (slopes[name] * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


def test_no_byte_sees_a_later_one() -> None:
    params = initial(TINY)
    first = np.arange(8, dtype=np.int32)[None]
    second = first.copy()
    second[0, 5:] = 200
    found = mind_mlir.jit(lambda params, tokens: logits(params, tokens, TINY))
    one, other = found(params, first)[0], found(params, second)[0]
    assert np.array_equal(one[:5], other[:5])
    assert not np.array_equal(one[5], other[5])


def test_it_learns() -> None:
    text = np.frombuffer(b"abcdefgh" * 100, np.uint8)
    trainer = Trainer(TINY, text, 120, batch=8, rate=1e-2, seed=0)
    before = trainer.held_out()
    for _ in range(120):
        trainer.advance()
    assert before > 5
    assert trainer.held_out() < 1
    assert trainer.write(b"abc", 5, temperature=0.1) == b"defgh"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(text_of([])) > 100_000
    path, weights = tmp_path / "text.txt", tmp_path / "weights.npz"
    path.write_bytes(b"to be or not to be, " * 60)
    size = ("--layers", "1", "--width", "16", "--context", "8", "--batch", "4")
    assert main([str(path), "--steps", "3", *size, "--output", str(weights)]) == 0
    shown = capsys.readouterr().out
    assert "1,200 bytes of text" in shown
    assert "step     3/3  loss" in shown
    assert "tensors are in" in shown
    assert mind_mlir.load_weights(weights)["bytes"].shape == (256, 16)
    path.write_bytes(b"short")
    assert main([str(path)]) == 1
    assert "a text of 5 bytes is too short: 64 are seen at once" in capsys.readouterr().err
    assert main([str(tmp_path / "absent")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--width", "6"])
