"""Trains GPT-2 on several processes: ranks share the batch (--data), and each layer (--model).

    mpiexec -n 2 python -m examples.distributed.gpt2 --size tiny --data 2 --model 2

What comes of it depends on the mesh, to the last bit, and not on the number of processes. Without mpiexec,
one process runs all ranks. The text is the project's own pages; tokens are its bytes.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from examples.distributed import training
from examples.distributed.gpt2_model import Gpt, initial, step, table
from examples.models.gpt.train import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = {"tiny": Gpt(2, 64, 4, 256, 64), "small": Gpt()}
RATE = 3e-4


def state_of(config: Gpt) -> list[Any]:
    """Return the weights that training begins with, and their moments; divided ones in parts."""
    weights = {}
    for name, array in initial(config).items():
        spec = table(config)[name][1] if config.is_divided else ""
        weights[name] = mind_mlir.shard(array, config.mesh, spec) if spec else array
    return [weights, {name: (_zeros(each), _zeros(each)) for name, each in weights.items()}]


def _zeros(array: Any) -> Any:
    if not isinstance(array, mind_mlir.ShardedArray):
        return np.zeros_like(array)
    parts = {rank: np.zeros_like(part) for rank, part in array.parts.items()}
    return mind_mlir.ShardedArray(array.mesh, array.sharding, array.shape, parts)


def stepper(config: Gpt) -> Callable[..., Any]:
    """Return the compiled step: of weights, moments, tokens, the rate and the number of the step."""
    specs = {name: spec if config.is_divided else "" for name, (_, spec) in table(config).items()}
    pairs = {name: (spec, spec) for name, spec in specs.items()}
    return mind_mlir.shard_map(
        step(config),
        config.mesh,
        in_specs=(specs, pairs, "data", "", ""),
        out_specs=("", specs, pairs),
        gather=False,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line says."""
    parser = training.parser("gpt2", __doc__, steps=20)
    parser.add_argument("--model", type=int, default=1, help="ranks that share each layer")
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--layers", type=int, help="layers, where there are to be others than of that size")
    parser.add_argument("--batch", type=int, default=8, help="sequences in a step")
    parser.add_argument("--length", type=int, default=64, help="tokens in a sequence")
    options = parser.parse_args(arguments)
    config = SIZES[options.size]
    config = replace(config, layers=options.layers or config.layers)
    if options.data < 1 or options.batch < 1 or options.batch % options.data:
        parser.error("--data must divide --batch")
    if options.model < 1 or config.heads % options.model:
        parser.error(f"--model must divide the {config.heads} heads")
    if not 0 < options.length <= config.context:
        parser.error(f"--length must be from 1 to {config.context}")
    config = replace(config, mesh=mind_mlir.Mesh({"data": options.data, "model": options.model}))
    run, text = stepper(config), text_of([])

    def advance(number: int, state: Any) -> tuple[Any, Any]:
        begins = np.random.default_rng([1, number]).integers(0, len(text) - options.length, options.batch)
        tokens = np.stack([text[begin : begin + options.length + 1] for begin in begins]).astype(np.int32)
        value, *state = run(*state, tokens, np.float32(RATE), np.float32(number + 1))
        return value, state

    weights, _ = training.train(options, state_of(config), advance)
    training.say(f"weights {training.digest(weights)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
