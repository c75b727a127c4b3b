"""Modules of torch run compiled, and mean what they mean there; `make test-torch` runs these."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

import mind_mlir

# A folder of tests is a `torch`, too.
pytest.importorskip("torch.fx", reason="runs modules of torch, which make test-torch installs")
torch: Any = pytest.importorskip("torch")

from mind_mlir.models.torch.backend import mind_mlir as backend  # noqa: E402 -- after the check for torch

PAGE = Path(__file__).parents[3] / "docs" / "torch.md"
nn: Any = torch.nn


class Counts(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Changes a buffer, and an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any, *, scale: float = 2.0) -> dict[str, Any]:
        self.calls += 1
        x.mul_(scale)
        return {"doubled": x + 0, "calls": self.calls + 0}


def perceptron() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 6), nn.GELU(), nn.LayerNorm(6), nn.Linear(6, 3))


def close(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5, check_stride=False)


def test_weights_are_read_at_each_call() -> None:
    model, x = perceptron(), torch.randn(2, 5)
    run = mind_mlir.from_torch(model, x)
    close(run(x), model(x).detach())
    with torch.no_grad():
        model[0].weight.mul_(2.0)
        close(run(x), model(x))
        model[3].bias = nn.Parameter(torch.ones(3))
        model[3].weight.data = torch.ones(3, 6)
        close(run(x), model(x))
    assert set(run.weights) == {name for name, _ in model.named_parameters()}


def test_weights_that_are_transposed_in_place_are_read_anew() -> None:
    model, x = nn.Linear(3, 3), torch.randn(2, 3)
    run = mind_mlir.from_torch(model, x)
    close(run(x), model(x).detach())
    model.weight.data = model.weight.data.t()  # the same memory at other steps
    close(run(x), model(x).detach())


def test_frozen_weights_are_constants() -> None:
    model, x = perceptron(), torch.randn(2, 5)
    run = mind_mlir.from_torch(model, x, frozen=True)
    expected = model(x).detach()
    with torch.no_grad():
        model[0].weight.zero_()
    close(run(x), expected)
    assert [each.name for each in mind_mlir.compile(run.module).parameters] == ["input"]


def test_other_shapes_and_dtypes_have_programs_of_their_own() -> None:
    run = mind_mlir.from_torch(lambda x, y: (x @ y, {"sum": x.sum()}))
    for dtype in (torch.float32, torch.float64):
        for rows in (1, 3):
            x, y = torch.randn(rows, 4, dtype=dtype), torch.randn(4, 2, dtype=dtype)
            product, others = run(x, y)
            close(product, x @ y)
            close(others["sum"], x.sum())


def test_places_of_triangles() -> None:
    x = torch.randn(4, 5)

    def triangles(square: Any) -> Any:
        rows, columns = torch.triu_indices(4, 5, 1)
        return square[rows, columns], torch.tril_indices(3, 4, -1)

    close(mind_mlir.from_torch(triangles, x)(x), triangles(x))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_images_are_resized(mode: str) -> None:
    x = torch.randn(1, 2, 4, 5)

    def resized(image: Any) -> Any:
        return nn.functional.interpolate(image, size=(6, 8), mode=mode)

    close(mind_mlir.from_torch(resized, x)(x), resized(x))


@pytest.mark.parametrize("dynamic", [True, None])
def test_dynamic_extents(dynamic: bool | None) -> None:
    model = perceptron()
    run = mind_mlir.from_torch(model, torch.randn(2, 5), dynamic=dynamic)
    for rows in (2, 3, 7):
        x = torch.randn(rows, 5)
        close(run(x), model(x).detach())


def test_changes_are_written_back() -> None:
    model, x = Counts(), torch.ones(3)
    run = mind_mlir.from_torch(model)
    found = run(x, scale=3.0)
    assert x.tolist() == [3.0] * 3
    assert found["doubled"].tolist() == [3.0] * 3
    assert found["calls"].item() == model.calls.item() == 1


def test_tensors_of_all_layouts() -> None:
    run = mind_mlir.from_torch(lambda x: x * 2)
    base = torch.randn(4, 6)
    for x in (base.T, base[:, ::2], base[1], base[0, 0], base[:0], base.expand(2, 4, 6), nn.Parameter(base)):
        close(run(x), (x * 2).detach())
    for dtype in (torch.bfloat16, torch.float16, torch.int8, torch.uint8, torch.int64):
        x = torch.arange(6).reshape(2, 3).to(dtype)
        close(run(x.T), x.T * 2)
    flags = torch.tensor([True, False])
    assert mind_mlir.from_torch(lambda x: ~x)(flags).tolist() == [False, True]


def test_results_have_the_strides_of_torch() -> None:
    x = torch.randn(2, 3, 4)
    run = mind_mlir.from_torch(lambda x: (x * 2).transpose(0, 2))
    found, expected = run(x), (x * 2).transpose(0, 2)
    close(found, expected)
    assert found.stride() == expected.stride()


def test_random_numbers_follow_the_seed() -> None:
    run = mind_mlir.from_torch(nn.Dropout(0.25).train(), torch.ones(1000))
    torch.manual_seed(3)
    one, two = run(torch.ones(1000)), run(torch.ones(1000))
    torch.manual_seed(3)
    assert torch.equal(one, run(torch.ones(1000)))
    assert not torch.equal(one, two)
    assert sorted(set(one.tolist())) == pytest.approx([0.0, 4 / 3])
    assert 0.18 < (one == 0).float().mean().item() < 0.32


def test_what_cannot_be_read_is_named() -> None:
    def function(x: Any) -> Any:
        return torch.linalg.eigvals(x).abs() + torch.fft.fft(x).abs()

    with pytest.raises(mind_mlir.UnsupportedError) as caught:
        mind_mlir.from_torch(function, torch.ones(2, 2))
    named = {each.context["operation"] for each in caught.value.diagnostics}
    assert {"aten.linalg_eig.default", "aten._fft_r2c.default"} <= named
    with pytest.raises(mind_mlir.UnsupportedError, match=r"torch\.export says"):
        mind_mlir.from_torch(lambda x: x if x.sum() > 0 else -x, torch.ones(2))
    with pytest.raises(mind_mlir.ArgumentError, match="E6105"):
        mind_mlir.from_torch(lambda x: x + 1, torch.ones(2))(torch.ones(2, device="meta"))
    with pytest.raises(mind_mlir.TracingError, match="no program yet"):
        _ = mind_mlir.from_torch(lambda x: x).module


def trained(model: Any, call: Any, x: Any) -> list[Any]:
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for _ in range(2):
        optimiser.zero_grad()
        loss = (call(x) - 1).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return [*losses, *[each.detach() for each in (*model.parameters(), *model.buffers())]]


@pytest.mark.parametrize("kind", ["perceptron", "images", "attention"])
def test_training_with_torch_compile(kind: str) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, x = {
        "perceptron": lambda: (perceptron(), torch.randn(4, 5)),
        "images": lambda: (
            nn.Sequential(
                nn.Conv2d(2, 4, 3, padding=1),
                nn.BatchNorm2d(4),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(4, 4, 3, groups=4),
            ),
            torch.randn(2, 2, 8, 8),
        ),
        "attention": lambda: (
            nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True),
            torch.randn(2, 5, 8),
        ),
    }[kind]()
    other = copy.deepcopy(model)
    expected = trained(model, model, x)
    for mine, theirs in zip(trained(other, torch.compile(other, backend=backend), x), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


def test_graph_breaks_autocast_and_dynamic_shapes() -> None:
    torch._dynamo.reset()

    def function(x: Any, scale: int) -> Any:
        y = x * scale
        torch._dynamo.graph_break()
        with torch.autocast("cpu", torch.bfloat16):
            return y @ y.T

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for rows in (2, 3):
        x = torch.randn(rows, 4)
        found = compiled(x, rows)
        assert found.dtype is torch.bfloat16
        torch.testing.assert_close(found.float(), (x * rows) @ (x * rows).T, rtol=0.05, atol=0.1)


def test_blocks_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    torch._dynamo.reset()
    torch._dynamo.register_backend(backend, name="mind_mlir")
    space: dict[str, Any] = {}
    for block in re.findall(
        r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        exec(compile(block, str(PAGE), "exec"), space)  # noqa: S102 -- blocks of our own page
    assert "aten.linalg_eig.default is not read (once: " in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:LSTM with projections")  # torch's own kernels have none
@pytest.mark.parametrize(
    "layers",
    [
        nn.LSTM(3, 5, 2, bidirectional=True, batch_first=True),
        nn.LSTM(3, 5, proj_size=2, bias=False),
        nn.GRU(3, 5, 2),
        nn.RNN(3, 5, nonlinearity="relu"),
    ],
    ids=str,
)
def test_recurrent_layers_are_loops(layers: Any) -> None:
    x = torch.randn(4, 2, 3)
    run = mind_mlir.from_torch(layers, x)
    assert run.as_text("optimized").count("While") == layers.num_layers * (1 + layers.bidirectional)
    close(run(x), layers(x))


def test_recurrent_layers_learn() -> None:
    model, x = nn.LSTM(3, 5), torch.randn(4, 2, 3)
    with torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(lambda x: model(x)[0].square().sum(), backend=backend)
        with torch.no_grad():
            close(compiled(x), model(x)[0].square().sum())
        compiled(x).backward()
    found = model.weight_hh_l0.grad.clone()
    model.zero_grad()
    model(x)[0].square().sum().backward()
    close(found, model.weight_hh_l0.grad)
