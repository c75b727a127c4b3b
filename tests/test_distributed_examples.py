"""Training on several processes: the same bits with any number of them, and on from a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mpi_harness import launch

import mind_mlir
from examples.distributed import digits, gpt2
from examples.distributed.gpt2_model import Gpt, initial

if TYPE_CHECKING:
    from pathlib import Path

DIGITS = ("-m", "examples.distributed.digits", "--data", "8", "--steps", "4")
GPT = ("-m", "examples.distributed.gpt2", "--data", "2", "--model", "2", "--layers", "1", "--steps", "2")


def test_the_digits_learn_the_same_bits_with_1_2_4_and_8_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert digits.main([*DIGITS[2:]]) == 0
    expected = capsys.readouterr().out
    assert "step     4/4  loss 2.1" in expected
    for processes in (2, 4, 8):
        done = launch(processes, *DIGITS)
        assert done.stderr == ""
        assert done.stdout == expected
    assert digits.main([*DIGITS[2:-1], "2", "--checkpoint", str(tmp_path)]) == 0
    resumed = launch(2, *DIGITS, "--checkpoint", str(tmp_path)).stdout
    assert f"goes on after step 2, which {tmp_path} has" in resumed
    assert resumed.splitlines()[-1] == expected.splitlines()[-1]


def test_layers_that_ranks_share_learn_as_whole_ones_do() -> None:
    tokens = np.random.default_rng(0).integers(0, 64, (4, 9)).astype(np.int32)

    def trained(mesh: str) -> tuple[list[float], dict[str, Any]]:
        config = Gpt(1, 16, 4, 64, 8, mind_mlir.Mesh(mesh))
        run, state, losses = gpt2.stepper(config), gpt2.state_of(config), []
        for number in (1, 2, 3):
            value, *state = run(*state, tokens, np.float32(1e-3), np.float32(number))
            losses.append(float(value))
        return losses, {name: np.asarray(each) for name, each in state[0].items()}

    whole, weights = trained("data=1,model=1")
    assert whole[2] < whole[0]
    begun = initial(Gpt(1, 16, 4, 64, 8))
    losses, found = trained("data=2,model=2")
    np.testing.assert_allclose(losses, whole, rtol=1e-5)
    for name, each in found.items():
        # Adam's first steps are about as long whatever the slope is: those of slopes near 0 may differ.
        moved = np.abs(weights[name] - begun[name]).max()
        assert (np.abs(each - weights[name]) > 0.05 * moved).mean() < 0.02, name


def test_gpt2_learns_the_same_bits_with_2_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpt2.main(list(GPT[2:])) == 0
    expected = capsys.readouterr().out
    done = launch(2, *GPT)
    assert done.stderr == ""
    assert done.stdout == expected


@pytest.mark.parametrize(
    ("main", "arguments", "words"),
    [
        (digits.main, ["--data", "3"], "--data must divide the batch of 128"),
        (gpt2.main, ["--model", "3"], "--model must divide the 4 heads"),
        (gpt2.main, ["--data", "16"], "--data must divide --batch"),
        (gpt2.main, ["--length", "65"], "--length must be from 1 to 64"),
    ],
)
def test_wrong_command_lines_are_told(
    main: Any, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert words in capsys.readouterr().err
