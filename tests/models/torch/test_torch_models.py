"""Modules of torch run compiled, and mean what they mean there; `make test-torch` runs these."""

from __future__ import annotations

import copy
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mind_mlir

# A folder of tests is a `torch`, too.
pytest.importorskip("torch.fx", reason="runs modules of torch, which make test-torch installs")
torch: Any = pytest.importorskip("torch")

from mind_mlir.models.torch.backend import mind_mlir as backend  # noqa: E402 -- after the check for torch
from mind_mlir.models.torch.rules import RULES, takes  # noqa: E402 -- as above

while_loop: Any = pytest.importorskip("torch._higher_order_ops.while_loop").while_loop
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
    model[0] = nn.Identity()
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
    assert run.reason is None


class Attention(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Attends to what came before, and takes positions from a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.inner = nn.Embedding(64, 8), nn.Linear(8, 8)
        self.register_buffer("places", torch.arange(64).expand(1, -1))

    def forward(self, x: Any) -> Any:
        length, self.rank = x.shape[1], x.ndim  # the module is another one once it has run
        x = x + self.table(self.places[:, :length])
        keep = torch.ones(length, length, dtype=torch.bool).tril()
        scores = (x @ x.transpose(1, 2)).masked_fill(~keep, -torch.inf) / length**0.5
        x = self.inner(scores.softmax(-1) @ x)
        return x, x[:, -1], x.mean(1), x.reshape(-1, 8)[torch.arange(length) * 2], 2 * length + 1


def test_twenty_lengths_are_one_program() -> None:
    model, length = Attention().eval(), torch.export.Dim("length", min=4, max=60)
    shapes = {"x": {1: length}}
    run = mind_mlir.from_torch(model, torch.randn(2, 9, 8), dynamic=shapes, buckets=[32])
    for extent in range(12, 32):
        x = torch.randn(2, extent, 8)
        with torch.no_grad():
            expected = model(x)
        for mine, theirs in zip(run(x), expected, strict=True):
            close(mine, theirs)
    assert (run.compiled, run.reason) == (1, None)


def test_what_has_no_program_for_a_range_has_one_for_each_extent() -> None:
    run = mind_mlir.from_torch(lambda x: x.sort(dim=0).values, torch.randn(5), dynamic=True)
    for extent in (5, 6):
        x = torch.randn(extent)
        close(run(x), x.sort().values)
    assert run.compiled == 2
    assert "along an open dimension" in str(run.reason)


def test_open_extents_that_a_branch_tells_apart_are_read_anew() -> None:
    def function(x: Any, *more: Any) -> Any:
        return x.shape[0], x.sum() * 2 if x.shape[0] % 2 == 0 else more[0].squeeze(0) - x.sum()

    run = mind_mlir.from_torch(function, torch.ones(4), torch.ones(3), dynamic=True)
    for rows, columns in ((6, 3), (5, 3), (5, 1), (1, 2), (8, 4)):
        x, y = torch.ones(rows), torch.ones(columns)
        assert run(x, y)[0] == rows
        close(run(x, y)[1], function(x, y)[1])


class Scaled(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Reads a number, a tensor that is no buffer, a module, and a weight that is in two places."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift, self.inner, self.calls = 2.0, torch.ones(3), nn.Dropout(0.5), 0
        self.one, self.other = nn.Linear(3, 3), nn.Linear(3, 3)
        self.other.weight = self.one.weight

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return self.other(self.one(self.inner(x) * self.scale + self.shift))


def test_what_has_changed_of_a_module_is_seen() -> None:
    model, x = Scaled().eval(), torch.ones(2, 3)
    run = mind_mlir.from_torch(model, x)
    changes: list[Any] = [
        lambda: setattr(model, "scale", 3.0),
        lambda: setattr(model, "shift", torch.zeros(3)),
        lambda: setattr(model, "inner", nn.Tanh()),
        lambda: setattr(model.other, "weight", nn.Parameter(torch.ones(3, 3))),
        lambda: model.one.register_forward_hook(lambda *given: given[2] * 2),
    ]
    for change in [lambda: None, *changes]:
        change()
        close(run(x), model(x).detach())
    calls = model.calls
    run(x)
    assert model.calls == calls  # nothing has changed that the module has not changed itself
    with torch.autocast("cpu", torch.bfloat16):
        assert run(x).dtype is torch.bfloat16


def test_models_are_called_by_several_threads_and_pickled() -> None:
    model = perceptron()
    run = mind_mlir.from_torch(model)
    rows = [torch.randn(1 + each % 3, 5) for each in range(12)]
    expected = [model(each).detach() for each in rows]  # not while torch exports: that changes modules
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(pool.map(run, rows), expected, strict=True):
            close(one, other)
    close(pickle.loads(pickle.dumps(run))(rows[0]), model(rows[0]).detach())  # noqa: S301 -- our own bytes


def test_graphs_within_graphs_hold_tensors() -> None:
    def function(x: Any) -> Any:
        return torch.cond(
            x.sum() > 0,
            lambda x: x * torch.tensor([1.0, 2.0]) + torch.tensor([3.0, 4.0]),
            lambda x: x - torch.tensor([5.0, 6.0]),
            (x,),
        )

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    for x in (torch.ones(2), -torch.ones(2)):
        close(compiled(x), function(x))


def test_a_loop_and_a_module_that_differentiates() -> None:
    def looped(x: Any, count: Any) -> Any:
        return while_loop(lambda i, x: i < count, lambda i, x: (i + 1, x * 2 + 1), (torch.tensor(0), x))

    x = torch.ones(3)
    close(mind_mlir.from_torch(looped)(x, torch.tensor(4))[1], torch.full((3,), 31.0))

    def force(x: Any) -> Any:
        return torch.autograd.grad(x.requires_grad_().sin().sum(), x)[0]

    close(mind_mlir.from_torch(force)(x), x.cos())


def test_arguments_of_numpy_and_traced_ones_are_refused() -> None:
    run = mind_mlir.from_torch(perceptron())
    calls: list[Any] = [
        lambda: run(np.ones((2, 5), np.float32)),
        lambda: torch.func.vmap(run)(torch.ones(2, 5)),
    ]
    for call in calls:
        with pytest.raises(mind_mlir.ArgumentError, match="E6105"):
            call()


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
        return torch.special.bessel_j0(x) + torch.lgamma(x)

    with pytest.raises(mind_mlir.UnsupportedError) as caught:
        mind_mlir.from_torch(function, torch.ones(2, 2))
    named = {each.context["operation"] for each in caught.value.diagnostics}
    assert {"aten.special_bessel_j0.default", "aten.lgamma.default"} <= named
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


class InPlace(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Changes tensors of its own in place, some of which have views."""

    def forward(self, x: Any) -> Any:
        y = x * 2
        a = y.relu_()
        y.mul_(a.add_(1) * 3)
        z = x + 1
        part = z[0]
        z.sub_(3)
        return y + a, part, nn.functional.dropout(y, 0.5, training=False)


def test_graphs_that_change_tensors_are_read() -> None:
    x = torch.randn(3, 4)
    for mine, theirs in zip(mind_mlir.from_torch(InPlace(), x)(x), InPlace()(x), strict=True):
        close(mine, theirs)


@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_runs_what_is_not_read(dynamic: bool) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = perceptron()
    compiled = torch.compile(
        lambda x: torch.lgamma(model(x).abs() + 1).sum(), backend=backend, dynamic=dynamic
    )
    x = torch.randn(4, 5, requires_grad=True)
    with pytest.warns(UserWarning, match=r"torch itself runs .*aten\.(lgamma|digamma)\.default"):
        compiled(x).backward()
    found, x.grad = x.grad, None
    torch.lgamma(model(x).abs() + 1).sum().backward()
    torch.testing.assert_close(found, x.grad, rtol=1e-4, atol=1e-5)


def test_gradients_of_linear_algebra() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)

    def function(x: Any) -> Any:
        square = x @ x.T + torch.eye(5)
        found = torch.linalg.solve(x, x[:, :2] * 2).sum() + torch.linalg.det(x.T) + torch.linalg.det(x)
        return found + torch.linalg.cholesky(square)[-1].sum() + torch.fft.rfft(x).abs().sum()

    one = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    other = one.detach().clone().requires_grad_()
    torch.compile(function, backend=backend)(one).backward()
    function(other).backward()
    torch.testing.assert_close(one.grad, other.grad)


def test_overloads_without_a_row_of_their_own_take_what_the_rule_takes() -> None:
    """A position that is a flag in one overload, and a number or a list in another, would be misread."""
    for name, rule in RULES.items():
        space, _, rest = name.partition(".")
        packet = getattr(torch.ops.aten, rest, None) if space == "aten" and "." not in rest else None
        kinds: dict[int, set[bool]] = {}
        for overload in () if packet is None else packet.overloads():
            schema = getattr(packet, overload)._schema
            tensors = [str(each.type) for each in (*schema.arguments, *schema.returns)]
            if schema.is_mutable or f"{name}.{overload}" in RULES or not any("Tensor" in t for t in tensors):
                continue
            plain = [each for each in schema.arguments if not each.kwarg_only]
            if takes(rule, None, *plain):
                for place, each in enumerate(plain):
                    kinds.setdefault(place, set()).add(str(each.type) == "bool")
        assert all(len(each) == 1 for each in kinds.values()), name


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
        r"^```python[^\n]*\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        exec(compile(block, str(PAGE), "exec"), space)  # noqa: S102 -- blocks of our own page
    assert "aten.lgamma.default is not read (once: " in capsys.readouterr().out


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
