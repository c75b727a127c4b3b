"""Record small models of the corpus as graphs with arguments and results, which tests read without torch.

    python tests/models/torch/record_models.py [NAME...]

writes `graphs/model_*.json`, where the extra ``models`` is installed. Graphs are those of inference: trained
ones are recorded by `record.py`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

sys.path[:0] = [str(Path(__file__).parents[3])]
from benchmarks.models.tables import ENTRIES  # noqa: E402 -- where pytest is not
from benchmarks.models.weights import enliven  # noqa: E402 -- as above
from mind_mlir.models.torch.decompositions import exported_decompositions  # noqa: E402 -- as above
from mind_mlir.models.torch.reading import dtype_of, read_graph  # noqa: E402 -- as above
from mind_mlir.models.torch.stored import to_data  # noqa: E402 -- as above

FOLDER = Path(__file__).parent / "graphs"
_BERT = {"hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 8, "vocab_size": 20}
#: Models, and settings that make them smaller still.
MODELS: dict[str, dict[str, Any]] = {
    "bert": {**_BERT, "max_position_embeddings": 16},
    "llama": {**_BERT, "head_dim": 2},
    "torch_graph_attention": {"width": 4},
    "torch_lstm": {"width": 4},
    "torch_mixture_of_experts": {"width": 4},
    "torch_state_space": {"width": 4},
    "torch_unet": {"width": 4},
    "torch_wavenet": {"width": 4},
    "vit": {**_BERT, "image_size": 16},
}


def recorded(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a model's graph, its weights and arguments, and what torch computes of them."""
    torch.manual_seed(0)
    entry = ENTRIES[name]
    smaller = replace(entry, small={**entry.small, **settings})
    family = import_module(f"benchmarks.models.frameworks.{entry.family}_family")
    model, args, kwargs = family.build(smaller, real=False)
    enliven(model, args, kwargs)
    model.eval()
    args, kwargs = torch.utils._pytree.tree_map(shortened, (args, kwargs))
    with torch.no_grad():
        for each in (*model.parameters(), *model.buffers()):
            each.copy_(shortened(each))
    with torch.no_grad():
        program = torch.export.export(model, args, kwargs).run_decompositions(exported_decompositions())
        expected = torch.utils._pytree.tree_leaves(program.module()(*args, **kwargs))
    graph, _ = read_graph(program.graph_module)
    used = graph.used_names()
    graph = replace(graph, inputs=tuple([each for each in graph.inputs if each.name in used]))
    held = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs if spec.target}
    given = iter(torch.utils._pytree.tree_leaves((args, kwargs)))
    tensors = {**program.state_dict, **program.constants}
    named = {
        spec.arg.name: tensors[held[spec.arg.name]] if spec.arg.name in held else next(given)
        for spec in program.graph_signature.input_specs
    }
    stored = to_data(graph)
    for node in stored["nodes"]:
        node.pop("place", None)
    return {
        "torch": torch.__version__,
        "graph": stored,
        "inputs": [data_of(named[each.name]) for each in graph.inputs],
        "outputs": [data_of(each) for each in expected],
    }


def shortened(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose numbers have few digits, with which files are short."""
    return tensor.round(decimals=3) if tensor.is_floating_point() else tensor


def data_of(tensor: torch.Tensor) -> dict[str, Any]:
    """Return a tensor as what a file holds."""
    dtype = dtype_of(tensor.dtype)
    assert dtype is not None
    data = tensor.detach().flatten().tolist()
    shown = [float(f"{each:.8g}") for each in data] if dtype.is_float else data
    return {"dtype": dtype.core_name, "shape": list(tensor.shape), "data": shown}


def main() -> None:
    """Write the files of the models that are named, or all."""
    for name in sys.argv[1:] or MODELS:
        text = json.dumps(recorded(name, MODELS[name]), separators=(",", ":"))
        (FOLDER / f"model_{name}.json").write_text(text + "\n", encoding="utf-8")
        print(name, len(text))


if __name__ == "__main__":
    main()
