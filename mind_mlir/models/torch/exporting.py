"""Modules as graphs, by `torch.export`: what a module does with arguments of one form, and its weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, MindError, UnsupportedError
from mind_mlir.models.torch.compiled import CompiledGraph
from mind_mlir.models.torch.decompositions import is_kept
from mind_mlir.models.torch.graph import Ref, parts
from mind_mlir.models.torch.reading import orders_of, read_graph
from mind_mlir.models.torch.tensors import load_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.support.options import CompileOptions

#: A dict of a module that holds a weight, and its key there.
Slot = tuple[dict[str, Any], str]


@dataclass(slots=True)
class Exported:
    """A module for arguments of one form.

    Attributes:
        compiled: The graph, which takes weights and arguments, and returns new values of what is changed in
            place before the results.
        fetches: For each input of the graph, what returns it for the leaves of a call's arguments.
        weights: Parameters and buffers, by name.
        changed: What is written back after a call: the number of the output, and what returns its tensor.
        results: The numbers of the outputs that are the module's results.
        out_spec: How these are put together.
    """

    compiled: CompiledGraph
    fetches: list[Callable[[Sequence[Any]], Any]]
    weights: dict[str, Slot]
    changed: list[tuple[int, Callable[[Sequence[Any]], Any]]]
    results: list[int]
    out_spec: Any

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run the module on the leaves of its arguments."""
        found = self.compiled([fetch(leaves) for fetch in self.fetches])
        if self.changed:
            with load_torch().no_grad():
                for place, target in self.changed:
                    target(leaves).copy_(found[place])
        results = [found[place] for place in self.results]
        return results[0] if self.out_spec.is_leaf() else self.out_spec.unflatten(results)


def exported(
    module: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: CompileOptions,
    *,
    dynamic: Any,
    frozen: bool,
) -> Exported:
    """Return what a module does with arguments of the form of ``args`` and ``kwargs``.

    Raises:
        UnsupportedError: E7001, `torch.export` cannot follow the module, or there are operators without rules.
    """
    program = _program(module, args, kwargs, dynamic)
    signature, own = program.graph_signature, program.graph_module
    graph, held = read_graph(own)
    if held:
        raise AssertionError("torch lifts the tensors of a graph to its inputs")
    kinds = {spec.arg.name: spec for spec in signature.input_specs}
    used = {part.name for node in graph.all_nodes() for part in parts([*node.args, *node.kwargs.values()]) if isinstance(part, Ref)}
    used |= {part.name for part in parts(list(graph.outputs)) if isinstance(part, Ref)}
    inputs = [each for each in graph.inputs if each.type is not None or each.name in used]
    fetches, weights, constants, lasting, sources = [], {}, {}, [], {}
    user = 0
    for spec in signature.input_specs:
        name, kind = spec.arg.name, spec.kind.name
        if kind in ("PARAMETER", "BUFFER"):
            slot = weights[spec.target] = _slot(module, spec.target)
            sources[name] = sources[spec.target] = _from_slot(slot)
            constants[name] = slot
        elif kind == "CONSTANT_TENSOR":
            sources[name] = _same(program.constants[spec.target])
            constants[name] = (program.constants, spec.target)
        elif kind == "USER_INPUT":
            sources[name] = _leaf(user)
            user += 1
        else:
            raise _unreadable(f"it has an input of the kind {kind}")
    changed, results = [], []
    for place, spec in enumerate(signature.output_specs):
        kind = spec.kind.name
        if kind in ("BUFFER_MUTATION", "PARAMETER_MUTATION", "USER_INPUT_MUTATION"):
            changed.append((place, sources[spec.target]))
            constants = {name: slot for name, slot in constants.items() if kinds[name].target != spec.target}
        elif kind == "USER_OUTPUT":
            results.append(place)
        else:
            raise _unreadable(f"it has an output of the kind {kind}")
    fixed = {}
    for place, each in enumerate(inputs):
        fetches.append(sources[each.name])
        if each.name in constants:
            lasting.append(place)
            if frozen:
                fixed[each.name] = constants[each.name][0][constants[each.name][1]]
    compiled = CompiledGraph(
        replace(graph, inputs=tuple(inputs)),
        options,
        constants=fixed,
        lasting=lasting,
        orders=orders_of(own),
    )
    return Exported(compiled, fetches, weights, changed, results, program.call_spec.out_spec)


def _program(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic: Any) -> Any:
    torch = load_torch()
    shapes = dynamic
    if dynamic is True:
        automatic = torch.export.Dim.AUTO
        shapes = torch.utils._pytree.tree_map(
            lambda leaf: [automatic] * leaf.ndim if isinstance(leaf, torch.Tensor) else None, (args, kwargs)
        )
        shapes = _named(module, *shapes)
    table = torch.export.default_decompositions()
    for operator in [each for each in table if is_kept(str(each))]:
        table.pop(operator)
    try:
        with torch.no_grad():
            found = torch.export.export(module, args, kwargs, dynamic_shapes=shapes or None)
            return found.run_decompositions(table)
    except MindError:
        raise
    except Exception as error:
        raise _unreadable(f"torch.export says: {str(error).strip().splitlines()[0]}") from error


def _named(module: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return shapes of arguments by the names of the parameters, as `torch.export` wants them."""
    import inspect  # noqa: PLC0415 -- for dynamic extents alone

    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    return dict(bound.arguments)


def _slot(module: Any, target: str) -> Slot:
    owner, _, name = target.rpartition(".")
    holder = module.get_submodule(owner)
    return (holder._parameters if name in holder._parameters else holder._buffers), name


def _from_slot(slot: Slot) -> Callable[[Sequence[Any]], Any]:
    held, name = slot
    return lambda _: held[name]


def _same(tensor: Any) -> Callable[[Sequence[Any]], Any]:
    return lambda _: tensor


def _leaf(place: int) -> Callable[[Sequence[Any]], Any]:
    return lambda leaves: leaves[place]


def _unreadable(reason: str) -> UnsupportedError:
    return UnsupportedError(
        Diagnostic(
            "E7001",
            f"the module cannot be read: {reason}",
            help="the page on models of torch says what can; torch.compile(module, backend='mind_mlir') leaves "
            "what cannot be followed to Python",
        )
    )
