"""Record small graphs of torch with arguments and results, which tests read without it.

    python tests/models/torch/record.py

writes `graphs/*.json`: graphs as `mind_mlir.models.torch.stored` has them, and arrays as nested lists.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._dynamo.backends.common import aot_autograd

from mind_mlir.models.torch.decompositions import decompositions
from mind_mlir.models.torch.reading import dtype_of, read_graph
from mind_mlir.models.torch.stored import to_data

FOLDER = Path(__file__).parent / "graphs"


class Attention(nn.Module):  # type: ignore[misc]  # torch has no types here
    """A layer of a transformer with embeddings before it."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, activation="gelu")

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        found: torch.Tensor = self.layer(self.words(ids), src_mask=mask, is_causal=True)
        return found


class Images(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Convolutions of all kinds, with norms and pooling between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.own, self.apart = (
            nn.Conv2d(4, 4, 3, groups=4),
            nn.Conv2d(4, 6, 3, dilation=2, padding=2, groups=2),
        )
        self.up, self.last = nn.ConvTranspose2d(6, 3, 2, stride=2), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(nn.functional.relu(self.norm(self.first(x))), 2)
        x = nn.functional.silu(self.up(self.apart(self.own(x))))
        found: torch.Tensor = self.last(x.mean((2, 3)))
        return found


class Indices(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Reads and writes at places, sorting, running sums, integers and truth values."""

    def forward(self, x: torch.Tensor, places: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        top, where = x.topk(2, dim=1)
        y = x.clone()
        y[places] = 0.0
        y[:, 1:3] += 1.0
        filled = torch.where(mask, x, torch.full_like(x, -1.0))
        moved = torch.zeros(6, 3).scatter_add(0, places[:, None].expand(4, 3), x[:, :3])
        return (
            top,
            where,
            y,
            filled.cumsum(1),
            moved,
            (places * 3 - 7) // 4,
            places % 3,
            x.argmax(1),
            mask.any(1),
        )


def graphs_of(
    module: nn.Module, *inputs: torch.Tensor, trains: bool
) -> list[tuple[str, Any, list[Any], list[Any]]]:
    """Return graphs, forward and backward, with what they were given and returned."""
    found: list[tuple[str, Any, list[Any], list[Any]]] = []

    def compiler(kind: str) -> Any:
        def compile_graph(graph: Any, _: Any) -> Any:
            def call(values: list[Any]) -> Any:
                given = [each.clone() for each in values]
                values.clear()
                results = graph(*given)
                read, held = read_graph(graph)
                found.append((kind, read, [*given, *held], list(results)))
                return results

            call._boxed_call = True  # type: ignore[attr-defined]  # torch looks for it
            return call

        return compile_graph

    backend = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions(),
    )
    compiled = torch.compile(copy.deepcopy(module).train(trains), backend=backend, dynamic=False)
    if trains:
        compiled(*inputs).square().mean().backward()
    else:
        with torch.no_grad():
            compiled(*inputs)
    return found


def data_of(tensor: torch.Tensor) -> dict[str, Any]:
    dtype = dtype_of(tensor.dtype)
    assert dtype is not None
    data = tensor.detach().flatten().tolist()
    shown = [float(f"{each:.8g}") for each in data] if dtype.is_float else data
    return {"dtype": dtype.core_name, "shape": list(tensor.shape), "data": shown}


def main() -> None:
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # one operator for a whole layer is less to read
    x = torch.randn(4, 5)
    models: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {
        "perceptron": (nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 2)), (x,)),
        "attention": (Attention(), (torch.randint(0, 11, (2, 5)),)),
        "images": (Images(), (torch.randn(2, 2, 8, 8),)),
        "indices": (Indices(), (x, torch.tensor([3, 0, 3, 1]), x > 0)),
    }
    for name, (module, inputs) in models.items():
        for trains in (False, True):
            if trains and name == "indices":
                continue
            for kind, graph, given, results in graphs_of(module, *inputs, trains=trains):
                stored = to_data(graph)
                for node in stored["nodes"]:
                    node.pop("place", None)
                data = {
                    "torch": torch.__version__,
                    "graph": stored,
                    "inputs": [data_of(each) for each in given],
                    "outputs": [None if each is None else data_of(each) for each in results],
                }
                text = json.dumps(data, separators=(",", ":"))
                (FOLDER / f"{name}_{kind}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
