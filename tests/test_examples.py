"""Every example computes what its comments say, compiled and interpreted; the demo learns."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import mind_mlir
from examples.digits import data
from examples.digits.forms import BATCH, FORMS, MODEL, PARAMETERS, SHAPES
from examples.digits.loop import training_loop
from examples.digits.step import first_output, training_step
from examples.digits.train import SEED, Trainer, main

if TYPE_CHECKING:
    from collections.abc import Callable

Array: TypeAlias = npt.NDArray[Any]

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def softmax(x: Array) -> Array:
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def convolve(image: Array, kernel: Array, stride: int, padding: int) -> Array:
    """Convolve NHWC with HWCF by its definition; ``padding`` zeros below and to the right."""
    image = np.pad(image, ((0, 0), (0, padding), (0, padding), (0, 0)))
    height, width = kernel.shape[:2]
    rows = range(0, image.shape[1] - height + 1, stride)
    columns = range(0, image.shape[2] - width + 1, stride)
    windows = [[image[:, r : r + height, c : c + width] for c in columns] for r in rows]
    return np.stack([np.stack([np.tensordot(w, kernel, 3) for w in row], 1) for row in windows], 1)


def quickstart(x: Array, bias: Array) -> tuple[Array, ...]:
    return (np.maximum(x + bias, 0).sum(axis=1),)


def mlp_loss(x: Array, target: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> tuple[Array, ...]:
    prediction = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    return (np.mean((prediction - target) ** 2),)


def matmul(a: Array, b: Array) -> tuple[Array, ...]:
    return (a @ b,)


def log_softmax(logits: Array, labels: Array) -> tuple[Array, ...]:
    result = np.log(softmax(logits))
    return result, np.asarray(-np.mean(result[np.arange(len(labels)), labels]))


def conv(
    image: Array, filter1: Array, bias1: Array, filter2: Array, bias2: Array, weight: Array
) -> tuple[Array, ...]:
    # Same padding of 28 at stride 2 under a filter of 3: 13 * 2 + 3 - 28 = 1, which goes to the end.
    hidden = np.maximum(convolve(image, filter1, 2, 1) + bias1, 0)
    hidden = np.maximum(convolve(hidden, filter2, 1, 0) + bias2, 0)
    return (hidden.mean(axis=(1, 2)) @ weight,)


def embedding(table: Array, tokens: Array, projection: Array) -> tuple[Array, ...]:
    return (table[tokens].mean(axis=1) @ projection,)


def attention(q: Array, k: Array, v: Array) -> tuple[Array, ...]:
    return (softmax(q @ k.transpose(0, 2, 1) / np.sqrt(32)) @ v,)


def grammar_form(image: Array, gain: Array) -> tuple[Array, ...]:
    groups = image[::2].T.reshape(4, 2, 3)
    total = (groups * gain[:, None]).sum(axis=(1, 2)) + 1
    return total, total[0]


def classifier(image: Array, label: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> tuple[Array, ...]:
    logits = np.maximum(image @ w1 + b1, 0) @ w2 + b2
    likelihood = np.log(softmax(logits))[np.arange(len(label)), label]
    return np.asarray(-likelihood.mean()), logits


REFERENCES: dict[str, Callable[..., tuple[Array, ...]]] = {
    "attention.ir": attention,
    "conv.ir": conv,
    "digits/classifier.ir": classifier,
    "embedding.ir": embedding,
    "grammar_form.ir": grammar_form,
    "log_softmax.ir": log_softmax,
    "matmul.ir": matmul,
    "mlp_loss.ir": mlp_loss,
    "quickstart.ir": quickstart,
    "softmax.ir": lambda x: (softmax(x),),
}


def random_arguments(module: mind_mlir.Module) -> dict[str, Array]:
    """Return arguments for every input: small floats, and integers that are valid labels and tokens."""
    random = np.random.default_rng(0)
    arguments: dict[str, Array] = {}
    for operation in module.inputs:
        type_ = operation.result_type
        assert isinstance(type_, mind_mlir.TensorType)
        name = str(operation.attributes["name"])
        if type_.dtype.is_float:
            arguments[name] = random.standard_normal(type_.extents, dtype=np.float32) / 2
        else:
            arguments[name] = random.integers(0, 8, type_.extents, dtype=type_.dtype.numpy)
    return arguments


def test_every_example_has_a_reference() -> None:
    # Those of control flow are in test_control_examples.py.
    flat = [path for path in EXAMPLES.rglob("*.ir") if path.parent.name != "control"]
    assert sorted(str(path.relative_to(EXAMPLES)) for path in flat) == sorted(REFERENCES)


@pytest.mark.parametrize("name", REFERENCES)
def test_example_computes_what_it_says(name: str) -> None:
    module = mind_mlir.verify(mind_mlir.load(EXAMPLES / name))
    arguments = random_arguments(module)
    expected = REFERENCES[name](
        **{
            key: value.astype(np.float64) if value.dtype == np.float32 else value
            for key, value in arguments.items()
        }
    )
    compiled = mind_mlir.compile(module)(**arguments)
    interpreted = mind_mlir.interpret(module, arguments)
    for ours, oracle, numpy in zip(compiled, interpreted, expected, strict=True):
        np.testing.assert_allclose(ours, numpy, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(oracle, numpy, rtol=1e-4, atol=1e-4)


def test_grammar_form_prints_as_reference_encoding() -> None:
    module = mind_mlir.load(EXAMPLES / "grammar_form.ir")
    text = mind_mlir.print_module(module)
    assert text.splitlines()[0] == '%image = Input {name="image"} : tensor<f32[6, 8]>'
    assert mind_mlir.parse(text) == module


def test_log_softmax_survives_any_logits() -> None:
    module = mind_mlir.load(EXAMPLES / "log_softmax.ir")
    logits = np.linspace(-1e4, 1e4, 512, dtype=np.float32).reshape(64, 8)[:, ::-1]
    labels = np.zeros(64, np.int64)
    log_softmax_values, loss = mind_mlir.compile(module)(logits, labels)
    # Neighbours are 39 apart: the largest takes all but exp(-39) of the weight.
    np.testing.assert_allclose(log_softmax_values[:, 0], 0, atol=1e-6)
    np.testing.assert_allclose(log_softmax_values[:, 1], logits[:, 1] - logits[:, 0], rtol=1e-6)
    assert abs(float(loss)) < 1e-6


def test_a_token_outside_the_table_is_reported() -> None:
    function = mind_mlir.compile(mind_mlir.load(EXAMPLES / "embedding.ir"))
    table, projection = np.zeros((1000, 64), np.float32), np.zeros((64, 4), np.float32)
    tokens = np.zeros((8, 16), np.int64)
    tokens[3, 5] = 1000
    with pytest.raises(mind_mlir.ExecutionError, match="E6001"):
        function(table=table, tokens=tokens, projection=projection)


def test_the_data_is_the_published_set() -> None:
    samples = data.load()
    assert samples.images.shape == (1797, 64)
    assert samples.images.min() == 0
    assert samples.images.max() == 1
    # The class counts that the data set is published with.
    assert np.bincount(samples.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_split_keeps_the_sets_apart() -> None:
    samples = data.load()
    training, held_out = data.split(samples, 128, np.random.default_rng(0))
    assert (len(training), len(held_out)) == (1669, 128)
    together = np.concatenate([training.images, held_out.images])
    assert sorted(map(bytes, together)) == sorted(map(bytes, samples.images))


def test_the_training_loop_is_its_steps_one_after_the_other() -> None:
    samples = data.load()
    step_module = training_step(mind_mlir.load(MODEL), PARAMETERS, rate=0.1, momentum=0.9)
    state = {k: v for k, v in random_arguments(step_module).items() if k not in ("image", "label")}
    order = np.random.default_rng(5).permutation(len(samples))[: 3 * 128]
    loop = mind_mlir.compile(training_loop(step_module, len(samples), steps=3))
    total, *ends = loop(images=samples.images, labels=samples.labels, order=order, **state)
    step, losses = mind_mlir.compile(step_module), []
    for batch in samples[order].minibatches(128):
        loss, *moved = step(image=batch.images, label=batch.labels, **state)
        state = dict(zip(state, moved, strict=True))
        losses.append(loss)
    np.testing.assert_allclose(total, np.sum(losses), rtol=1e-6)
    for found, expected in zip(ends, state.values(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_training_step_moves_down_the_gradient() -> None:
    model = mind_mlir.load(MODEL)
    arguments = random_arguments(model)
    velocities = {f"velocity_{name}": np.ones_like(arguments[name]) for name in PARAMETERS}
    step = mind_mlir.compile(training_step(model, PARAMETERS, rate=0.25, momentum=0.5))
    loss, *state = step(**arguments, **velocities)
    gradient = mind_mlir.differentiate(first_output(model), wrt=PARAMETERS)
    expected_loss, *slopes = mind_mlir.interpret(gradient.module, arguments)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    for name, slope, moved, velocity in zip(PARAMETERS, slopes, state[:4], state[4:], strict=True):
        np.testing.assert_allclose(velocity, 0.5 - 0.25 * slope, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(moved, arguments[name] + velocity, rtol=1e-6, atol=1e-6)


def test_the_three_forms_of_the_demo_learn_the_same() -> None:
    samples = data.load()[: 8 * BATCH]
    trainers = [Trainer.start(make(None), np.random.default_rng(SEED)) for make in FORMS.values()]
    curves = [[trainer.step(batch) for batch in samples.minibatches(BATCH)] for trainer in trainers]
    assert curves[0][-1] < 0.7 * curves[0][0]
    for curve, trainer in zip(curves[1:], trainers[1:], strict=True):
        np.testing.assert_allclose(curve, curves[0], rtol=1e-6)
        for name, parameter in trainers[0].parameters.items():
            np.testing.assert_allclose(trainer.parameters[name], parameter, rtol=1e-5, atol=1e-7)
    accuracies = {trainer.accuracy(samples) for trainer in trainers}
    assert len(accuracies) == 1


def test_demo_learns_and_leaves_every_stage(tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    command = [sys.executable, "-m", "examples.digits", "--output", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "training accuracy 99." in run.stdout
    assert [path.name for path in sorted(folder.iterdir())] == [
        "00-core.ir",
        "01-canonical.ir",
        "02-structured.ir",
        "03-optimized.ir",
        "04-mind.mlir",
        "05-linalg.mlir",
        "06-schedule.txt",
        "07-scheduled.mlir",
        "08-tiled.mlir",
        "09-bufferized.mlir",
        "10-llvm.mlir",
        "11-asm.s",
        "weights",
    ]
    assert all(path.stat().st_size > 1000 for path in folder.glob("*.*"))
    assert {path.stem: np.load(path).shape for path in (folder / "weights").iterdir()} == SHAPES


def test_demo_shows_a_bar_on_a_terminal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.digits", "--epochs", "2", "--output", str(tmp_path)]
    reader, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=terminal, stderr=terminal):
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # how Linux says that the other side has been closed
            while chunk := os.read(reader, 4096):
                shown += chunk
    os.close(reader)
    assert "━".encode() in shown
    assert b"epoch  2/2" in re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown)


@pytest.mark.parametrize("form", ["core", "mind"])
def test_demo_fails_when_it_has_not_learnt(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--epochs", "1", "--form", form, "--output", str(tmp_path)]) == 1
    assert "FAILED" in capsys.readouterr().out
