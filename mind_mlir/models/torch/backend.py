"""The backend ``mind_mlir`` of `torch.compile`: Dynamo's graphs, forward and backward, compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mind_mlir.models.torch.decompositions import decompositions
from mind_mlir.models.torch.parts import runner_of
from mind_mlir.models.torch.tensors import load_torch
from mind_mlir.runtime.options import Options, options_of
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions


def mind_mlir(
    module: Any, examples: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Return a graph of Dynamo's as a function that runs compiled, with its gradient.

    Args:
        module: A `torch.fx.GraphModule`.
        examples: What it is called with.
        options: What `torch.compile(..., options=)` is given: those of `mind_mlir.compile`.

    Operators without rules are run by torch itself, between compiled parts; a `UserWarning` names them all.

    Raises:
        TypeError: An option is of another type.
        ValueError: As `mind_mlir.compile`.
    """
    from functorch.compile import min_cut_rematerialization_partition  # noqa: PLC0415 -- torch calls this
    from torch._dynamo.backends.common import aot_autograd  # noqa: PLC0415 -- torch calls this

    given = argument_checks.mapping(options or {}, "options", "a mapping from names to values")
    named = {argument_checks.text(name, "each name in options"): value for name, value in given.items()}
    chosen = options_of(named, "torch.compile", Options)

    def forward(graph: Any, inputs: Sequence[Any]) -> Any:
        return _compiled(graph, chosen, _weights(len(inputs)))

    def backward(graph: Any, inputs: Sequence[Any]) -> Any:
        return _compiled(graph, chosen, ())

    with _recurrent_steps():
        made: Callable[..., Any] = aot_autograd(
            fw_compiler=forward,
            bw_compiler=backward,
            inference_compiler=forward,
            decompositions=decompositions(),
            partition_fn=min_cut_rematerialization_partition,
        )(module, examples)
    return made


@contextmanager
def _recurrent_steps() -> Iterator[None]:
    """Let gradients be of an LSTM's steps, whose layers torch makes operators of oneDNN otherwise."""
    torch = load_torch()
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(before and not torch.is_grad_enabled())
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _weights(count: int) -> Sequence[int]:
    """Return the places of inputs that are weights, as AOTAutograd knows them."""
    from torch._guards import TracingContext  # noqa: PLC0415 -- torch calls this

    context = TracingContext.try_get()
    known = getattr(getattr(context, "fw_metadata", None), "static_input_indices", None) or ()
    return [place for place in known if place < count]


def _compiled(module: Any, options: CompileOptions, lasting: Sequence[int]) -> Any:
    """Return a graph as what takes its arguments in a list, which it empties."""
    from functorch.compile import make_boxed_func  # noqa: PLC0415 -- torch calls this

    names = [each.name for each in module.graph.find_nodes(op="placeholder")]
    return make_boxed_func(runner_of(module, options, {names[place] for place in lasting}))
