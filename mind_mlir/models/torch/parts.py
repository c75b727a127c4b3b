"""Graphs of Dynamo's in parts: compiled ones, and between these the operators that have no rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import UnsupportedError
from mind_mlir.models.torch.compiled import CompiledGraph
from mind_mlir.models.torch.reading import orders_of, read_graph
from mind_mlir.models.torch.tensors import load_torch

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions

    #: Takes the tensors and numbers that a graph is given, and returns its outputs.
    Runner = Callable[..., Any]


def runner_of(module: Any, options: CompileOptions, lasting: Collection[str]) -> Runner:
    """Return a function that runs a graph: compiled, but for the operators that have no rules.

    Args:
        module: A `torch.fx.GraphModule` that changes nothing in place, and returns a list.
        options: How it is compiled.
        lasting: The names of inputs that are mostly the same tensors from call to call.
    """
    try:
        run = _whole(module, options, lasting)
    except UnsupportedError as refused:
        return _in_parts(module, options, lasting, refused)

    def call(*values: Any) -> Any:
        nonlocal run
        try:
            return run(*values)
        except UnsupportedError as refused:  # a graph of any extents is read when it is called
            run = _in_parts(module, options, lasting, refused)
        return run(*values)

    return call


def _whole(module: Any, options: CompileOptions, lasting: Collection[str]) -> Runner:
    graph, held = read_graph(module)
    first = len(graph.inputs) - len(held)
    places = [place for place, each in enumerate(graph.inputs) if place >= first or each.name in lasting]
    compiled = CompiledGraph(graph, options, lasting=places, orders=orders_of(module))
    compiled.prepare()
    return lambda *values: compiled([*values, *held])


def _in_parts(
    module: Any, options: CompileOptions, lasting: Collection[str], refused: UnsupportedError
) -> Runner:
    """Return what runs the nodes that were refused as torch does, and compiles what is between them.

    Raises:
        UnsupportedError: ``refused``, none of its nodes is one of the graph itself.
    """
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner  # noqa: PLC0415 -- torch calls this

    named = {name for finding in refused.diagnostics for name in finding.context.get("nodes", ())}
    if not named & {node.name for node in module.graph.nodes}:
        raise refused
    _warn(refused)
    support = _Support(named)
    whole = CapabilityBasedPartitioner(
        module, support, allows_single_node_partition=True
    ).partition_and_fuse()
    for name, part in list(whole.named_children()):
        if name.startswith("fused_"):
            setattr(whole, name, _module_of(_part(part, options, lasting)))
    found: Runner = whole.forward
    return found


class _Support:
    """Says of each node whether it is compiled, as partitioners ask."""

    def __init__(self, refused: Collection[str]) -> None:
        self._refused = refused

    def is_node_supported(self, _modules: Any, node: Any) -> bool:
        """Return whether a node is compiled; parts of a program that are graphs are left to torch."""
        others = [each for each in node.all_input_nodes if each.op == "get_attr"]
        return node.op == "call_function" and node.name not in self._refused and not others


def _part(module: Any, options: CompileOptions, lasting: Collection[str]) -> Runner:
    """Return what runs a part of a graph, which returns its only output itself, or several."""
    (output,) = module.graph.find_nodes(op="output")
    (returned,) = output.args
    if isinstance(returned, list | tuple):
        return runner_of(module, options, lasting)
    output.args = ([returned],)
    run = runner_of(module, options, lasting)
    return lambda *values: run(*values)[0]


def _module_of(run: Runner) -> Any:
    """Return a function as a module, which graphs of torch call."""

    class PartModule(load_torch().nn.Module):  # type: ignore[misc]  # torch has no types here
        def forward(self, *values: Any) -> Any:
            return run(*values)

    return PartModule()


def _warn(refused: UnsupportedError) -> None:
    """Warn of operators that torch runs, but for checks of numbers, which are its own to make."""
    listed = "; ".join(
        f"{each.context['operation']}: {each.context['reason']}"
        for each in refused.diagnostics
        if each.context["operation"] != "higher_order.with_effects"
    )
    if listed:
        message = f"torch itself runs the operators that mind_mlir does not read: {listed}"
        warnings.warn(message, stacklevel=2)
