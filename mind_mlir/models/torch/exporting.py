"""Modules as graphs, by `torch.export`: what a module does with arguments of one form, and its weights."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, MindError, UnsupportedError
from mind_mlir.models.torch.compiled import CompiledGraph
from mind_mlir.models.torch.decompositions import exported_decompositions
from mind_mlir.models.torch.graph import Ref
from mind_mlir.models.torch.guards import Guards
from mind_mlir.models.torch.plain_graphs import made_plain
from mind_mlir.models.torch.reading import orders_of, read_graph
from mind_mlir.models.torch.tensors import load_torch
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions

#: Held while `torch.export` works, for one thread at a time, and while a module's tensors are fetched.
EXPORTING = threading.RLock()
_HELD = frozenset({"PARAMETER", "BUFFER", "CONSTANT_TENSOR"})
#: What torch says of a module that differentiates, while no gradients are being recorded.
_ASKS_FOR_GRADIENTS = "does not require grad"
_CHANGES = frozenset({"BUFFER_MUTATION", "PARAMETER_MUTATION", "USER_INPUT_MUTATION"})
_WAY_OUT = (
    "the page on models of torch says what can; "
    "torch.compile(module, backend='mind_mlir') leaves what cannot be followed to Python"
)
#: A dict of a module that holds a weight, and its key there.
Slot = tuple[dict[str, Any], str]


@dataclass(slots=True)
class Exported:
    """A module for arguments of one form.

    Attributes:
        compiled: The graph, which takes weights and arguments, and returns new values of what is changed in
            place before the results.
        fetches: For each input of the graph, what returns it for the leaves of a call's arguments; None for
            constants of the code.
        changed: What is written back after a call: the number of the output, and what returns its tensor.
        results: The numbers of the outputs that are the module's results.
        out_spec: How these are put together.
        guards: Which other extents it holds for; None where it is for one form alone.
    """

    compiled: CompiledGraph
    fetches: list[Callable[[Sequence[Any]], Any] | None]
    changed: list[tuple[int, Callable[[Sequence[Any]], Any]]]
    results: list[int]
    out_spec: Any
    guards: Guards | None = None

    def __call__(self, leaves: Sequence[Any], values: Sequence[Any]) -> Any:
        """Run the module on the leaves of its arguments, with what was fetched for the graph's inputs."""
        found = self.compiled(values)
        if self.changed:
            with load_torch().no_grad():
                for place, target in self.changed:
                    target(leaves).copy_(found[place])
        results = [found[place] for place in self.results]
        return results[0] if self.out_spec.is_leaf() else self.out_spec.unflatten(results)

    def values(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the inputs of the graph for the leaves of a call's arguments."""
        return [fetch and fetch(leaves) for fetch in self.fetches]


def exported(
    module: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: CompileOptions,
    *,
    dynamic: Any,
    frozen: bool,
    buckets: object = None,
) -> Exported:
    """Return what a module does with arguments of the form of ``args`` and ``kwargs``.

    Raises:
        UnsupportedError: E7001, `torch.export` cannot follow the module, or operators have no rules.
    """
    program = _program(module, args, kwargs, dynamic)
    signature = _Signature(module, program)
    graph, _ = read_graph(program.graph_module)  # torch has made inputs of all tensors that it holds
    used = graph.used_names()
    inputs = tuple([each for each in graph.inputs if each.type is not None or each.name in used])
    kept = {name: slot for name, slot in signature.lasting.items() if name not in signature.written}
    compiled = CompiledGraph(
        replace(graph, inputs=inputs),
        options,
        constants={name: slot[0][slot[1]] for name, slot in kept.items()} if frozen else None,
        lasting=[place for place, each in enumerate(inputs) if each.name in kept],
        orders=orders_of(program.graph_module),
        buckets=buckets,
    )
    returned = {each.name for each in graph.outputs if isinstance(each, Ref)}
    gone = set(kept) - returned if frozen else set()
    fetches = [None if each.name in gone else signature.fetches[each.name] for each in inputs]
    leaves = load_torch().utils._pytree.tree_leaves((args, kwargs))
    guards = Guards(module, program, leaves) if dynamic else None
    out_spec = program.call_spec.out_spec
    return Exported(compiled, fetches, signature.changed, signature.results, out_spec, guards)


class _Signature:
    """What the inputs and outputs of an exported program are of the module.

    Attributes:
        fetches: By the name of an input, what returns it for the leaves of a call's arguments.
        lasting: The inputs that are weights, or constants of the program, by name, and where they are held.
        written: Those of them that a call changes.
        changed: As of `Exported`.
        results: As of `Exported`.
    """

    def __init__(self, module: Any, program: Any) -> None:
        """Look at all of them (E7001: one is of a kind that has no counterpart)."""
        self.fetches: dict[str, Callable[[Sequence[Any]], Any]] = {}
        self.lasting: dict[str, Slot] = {}
        self.written: set[str] = set()
        self.changed: list[tuple[int, Callable[[Sequence[Any]], Any]]] = []
        self.results: list[int] = []
        names: dict[str, str] = {}  # of inputs, by what the outputs that change them call these
        count = 0
        for spec in program.graph_signature.input_specs:
            name, kind = spec.arg.name, spec.kind.name
            if kind == "USER_INPUT":
                self.fetches[name], count = _leaf(count), count + 1
                names[name] = name
                continue
            if kind not in _HELD:
                raise _unreadable(f"it has an input of the kind {kind}")
            constant = kind == "CONSTANT_TENSOR"
            slot = (program.constants, spec.target) if constant else _slot(module, spec.target)
            self.lasting[name], self.fetches[name] = slot, _from_slot(slot)
            names[spec.target] = name
        for place, spec in enumerate(program.graph_signature.output_specs):
            if spec.kind.name == "USER_OUTPUT":
                self.results.append(place)
            elif spec.kind.name in _CHANGES:
                self.changed.append((place, self.fetches[names[spec.target]]))
                self.written.add(names[spec.target])
            else:
                raise _unreadable(f"it has an output of the kind {spec.kind.name}")


def _program(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic: Any) -> Any:
    torch = load_torch()
    shapes = dynamic
    if dynamic is True:
        automatic = torch.export.Dim.AUTO
        shapes = torch.utils._pytree.tree_map(
            lambda leaf: [automatic] * leaf.ndim if isinstance(leaf, torch.Tensor) else None, (args, kwargs)
        )
        shapes = _named(module, *shapes)
    try:
        with torch.no_grad():
            return _decomposed(torch, module, args, kwargs, shapes)
    except MindError:
        raise
    except Exception as error:
        if not (_ASKS_FOR_GRADIENTS in str(error) and torch.is_grad_enabled()):
            raise _refused(error) from error
    try:  # the module differentiates something itself
        return _decomposed(torch, module, args, kwargs, shapes)
    except Exception as error:
        raise _refused(error) from error


def _decomposed(torch: Any, module: Any, args: Any, kwargs: Any, shapes: Any) -> Any:
    with warnings.catch_warnings():
        # recurrent layers keep their weights in a list as well
        warnings.filterwarnings("ignore", "The tensor attributes? self._flat_weights")
        found = torch.export.export(module, args, kwargs, dynamic_shapes=shapes or None)
    # What autocast converts is seen where torch traces the operators, not in what is exported.
    if not torch.is_autocast_enabled("cpu") and made_plain(found.graph_module):
        return _without_tokens(found)
    return _without_tokens(found.run_decompositions(exported_decompositions()))


def _refused(error: Exception) -> UnsupportedError:
    line = next(iter(str(error).strip().splitlines()), "")
    reason = f"torch.export says {type(error).__name__}: {line}"
    if "register a pytree" in line or "register_dataclass" in line:
        return _unreadable(reason, "say what the class is made of: torch.export.register_dataclass(TheClass)")
    if isinstance(error, TypeError):
        return _unreadable(reason, "call it as the module itself is called")
    return _unreadable(reason)


def _without_tokens(program: Any) -> Any:
    """Return a program without what keeps its effects in order: those that are read are none."""
    if all(spec.kind.name != "TOKEN" for spec in program.graph_signature.input_specs):
        return program
    from torch.export._remove_effect_tokens_pass import (  # noqa: PLC0415 -- as torch itself
        _remove_effect_tokens,
    )

    return _remove_effect_tokens(program)


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


def _leaf(place: int) -> Callable[[Sequence[Any]], Any]:
    return lambda leaves: leaves[place]


def _unreadable(reason: str, help_: str = _WAY_OUT) -> UnsupportedError:
    return UnsupportedError(Diagnostic("E7001", f"the module cannot be read: {reason}", help=help_))
