"""Evaluates graphs while a trace runs: each node by its rule, at once where its operands are known.

What a model computes of numbers that are known when it is read, such as shapes, is known as well: rules of
shapes compute with arrays of numpy, all others are traced by themselves and interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from mind_mlir.diagnostics import Diagnostic, InternalError, MindError, SourceText, UnsupportedError
from mind_mlir.interpreter import interpret
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.models.onnx.bodies import body_of
from mind_mlir.models.onnx.graphs.graph import Function, ModelData, OnnxGraph, OnnxNode, reads
from mind_mlir.models.onnx.graphs.layouts import Layouts
from mind_mlir.models.onnx.graphs.refusals import (
    NotSupportedError,
    RuleBrokenError,
    check_few,
    node_broken,
    node_unsupported,
)
from mind_mlir.models.onnx.graphs.scope import NOTHING, GraphScope
from mind_mlir.models.onnx.graphs.use import NodeUse, Value
from mind_mlir.models.onnx.rules import RULES
from mind_mlir.support import pytrees
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.tracing.jit import JitFunction
from mind_mlir.tracing.trace import current_trace
from mind_mlir.tracing.value import TracedValue

#: Operands of more bytes are computed with when the model runs, unless a rule of shapes takes them.
_MAX_FOLDED = 1 << 20
#: So many nodes are evaluated, those of loops and functions each time.
_MAX_NODES = 1_000_000
#: Functions call one another to this depth.
_MAX_DEPTH = 48
#: What Python raises where a rule computes with attributes or shapes that do not go together.
_MISFITS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
#: The codes of errors that name a node already.
_NAMED = ("E2420", "E7001", "E7003")


@dataclass(slots=True)
class ModelEvaluator:
    """Evaluates the graphs of one model.

    Attributes:
        data: The model.
        places: Where nodes stand in the list of the model's nodes, by their numbers in memory; those within
            others stand where these do.
        depth: How many functions are being evaluated.
        layouts: The images that are there with their channels behind.
        count: How many nodes have been evaluated.
    """

    data: ModelData
    places: Mapping[int, SourceInfo] = field(default_factory=dict)
    depth: int = 0
    layouts: Layouts = field(default_factory=Layouts)
    count: int = 0

    def graph(self, graph: OnnxGraph, scope: GraphScope) -> list[Value]:
        """Evaluate a graph whose inputs have values in ``scope``, and return its outputs."""
        for name, array in graph.initializers.items():
            if name not in scope.values:
                scope.set(name, array)
        self.nodes(graph.nodes, scope)
        return [scope.find(each.name)[0] for each in graph.outputs]

    def nodes(self, nodes: Sequence[OnnxNode], scope: GraphScope) -> None:
        """Evaluate nodes one after the other."""
        for node in nodes:
            self.node(node, scope)

    def node(self, node: OnnxNode, scope: GraphScope) -> None:
        """Evaluate a node, and give its outputs their names.

        Raises:
            VerificationError: E2420, it breaks a rule of its operator.
            UnsupportedError: E7001, it is of a form that is not read.
            Needed: The model is to be traced anew, with more numbers known.
        """
        trace = current_trace()
        before, trace.source = trace.source, self.places.get(id(node), trace.source)
        try:
            results, sources = self._evaluated(node, scope)
        except RuleBrokenError as error:
            raise node_broken(node, str(error)) from None
        except NotSupportedError as error:
            raise node_unsupported(node, str(error)) from None
        except MindError as error:
            first = error.diagnostics[0]
            if first.code in _NAMED or isinstance(error, InternalError):
                raise
            raise node_broken(node, f"{first.message} [{first.code}]", first.notes) from error
        except _MISFITS as error:
            raise node_broken(node, f"its operands and attributes do not fit: {error}") from error
        finally:
            trace.source = before
        for name, value in zip(node.outputs, results, strict=False):
            if name:
                scope.set(name, value, NOTHING if isinstance(value, np.ndarray) else sources)

    def _evaluated(self, node: OnnxNode, scope: GraphScope) -> tuple[Sequence[Value], frozenset[str]]:
        """Return the results of a node, and what they follow from."""
        self.count += 1
        check_few(self.count, _MAX_NODES, "nodes, those of loops and functions counted each time,")
        found = [scope.find(name) for name in node.inputs]
        around = [scope.find(name)[1] for name in reads(node) - set(node.inputs)] if node.graphs else []
        sources = NOTHING.union(*(each for _, each in found), *around)
        use = NodeUse(self, node, scope, [value for value, _ in found], [each for _, each in found])
        results = self._results(use)
        wanted = [name for name in node.outputs[len(results) :] if name]
        if wanted:
            raise RuleBrokenError(f"it has {len(results)} results, and none for {wanted[0]!r}")
        return results, sources

    def _results(self, use: NodeUse) -> Sequence[Value]:
        node = use.node
        function = self.data.functions.get(node.operator)
        if function is not None:
            return self.call(function, use)
        rule = RULES.get(node.operator)
        if rule is None:
            return self.call(body_of(use), use)
        leaves = pytrees.flatten(list(use.operands))[0]
        if rule.folds and not node.graphs and all(isinstance(leaf, np.ndarray) for leaf in leaves):
            if rule.is_plain:
                use.stays = True
                return [_as_array(each) for each in _listed(rule.emit(use))]
            if sum(leaf.nbytes for leaf in leaves) <= _MAX_FOLDED:
                found: Sequence[Value] = self.at_once(lambda: _listed(rule.emit(use)))
                return found
        if not rule.is_elementwise:
            return _listed(rule.emit(use))

        def emit(operands: Sequence[Value]) -> Any:
            use.operands = operands
            return rule.emit(use)

        return _listed(self.layouts.elementwise(use.operands, emit))

    def at_once(self, emit: Callable[[], Any]) -> Any:
        """Return what is made of known numbers alone, as arrays of numpy: it is traced and interpreted."""
        form: pytrees.Form
        leaves: list[Any] = []

        def run() -> list[Any]:
            nonlocal form, leaves
            leaves, form = pytrees.flatten(emit())
            return [leaf for leaf in leaves if isinstance(leaf, TracedValue)] or [np.zeros(())]

        module = JitFunction(run, promotes=False).lower().module
        arrays = iter(interpret(module, {}))
        known = [np.asarray(next(arrays)) if isinstance(leaf, TracedValue) else leaf for leaf in leaves]
        return form.unflatten(known)

    def call(self, function: Function, use: NodeUse) -> Sequence[Value]:
        """Evaluate a function for a node that calls it."""
        if len(use.operands) > len(function.inputs):
            raise RuleBrokenError(f"it has {len(use.operands)} inputs, of {len(function.inputs)}")
        if self.depth >= _MAX_DEPTH:
            raise RuleBrokenError(f"functions call one another more than {_MAX_DEPTH} deep")
        scope = GraphScope(attributes={**function.attributes, **use.attributes()})
        for place, name in enumerate(function.inputs):
            is_there = place < len(use.operands)
            scope.set(
                name,
                use.operands[place] if is_there else None,
                use.sources[place] if is_there else NOTHING,
            )
        self.depth += 1
        try:
            self.nodes(function.nodes, scope)
        finally:
            self.depth -= 1
        wanted = [
            at < len(use.node.outputs) and bool(use.node.outputs[at]) for at in range(len(function.outputs))
        ]
        return [
            scope.find(name)[0] if is_wanted else None
            for name, is_wanted in zip(function.outputs, wanted, strict=True)
        ]


def node_places(nodes: Sequence[OnnxNode], name: str) -> dict[int, SourceInfo]:
    """Return where nodes stand in a list of them, a line each, under the name of the model."""
    lines = [
        f"{', '.join(filter(None, node.outputs))} = {node.operator[1]}({', '.join(node.inputs)})"
        for node in nodes
    ]
    text, start, found = SourceText(name, "\n".join(lines)), 0, {}
    for node, line in zip(nodes, lines, strict=True):
        found[id(node)] = SourceInfo.at(text.locate(start, start + len(line)))
        start += len(line) + 1
    return found


def _as_array(value: Value) -> Value:
    """Return a number of numpy, which is what it makes of arrays of rank 0, as an array."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def _listed(found: Any) -> Sequence[Value]:
    """Return the results of a rule, which gives a tuple of several; a list is one sequence."""
    return found if isinstance(found, tuple) else (found,)


def missing_operators(data: ModelData) -> UnsupportedError | None:
    """Return the error that names all operators of a model for which there is no rule, or None."""
    counts: dict[tuple[str, str], list[OnnxNode]] = {}
    bodies = [data.graph.all_nodes()]
    bodies += [_all(function.nodes) for function in data.functions.values()]
    for nodes in bodies:
        for node in nodes:
            if node.operator not in data.functions and node.operator not in RULES and not _has_body(node):
                counts.setdefault(node.operator, []).append(node)
    if not counts:
        return None
    return UnsupportedError([_missing(*each) for each in counts.items()])


def _all(nodes: Sequence[OnnxNode]) -> Any:
    for node in nodes:
        yield node
        for graph in node.graphs:
            yield from graph.all_nodes()


def _has_body(node: OnnxNode) -> bool:
    from mind_mlir.models.onnx.bodies import has_body  # noqa: PLC0415 -- asks the package onnx

    return has_body(node)


def _missing(operator: tuple[str, str], nodes: Sequence[OnnxNode]) -> Diagnostic:
    domain, name = operator
    shown = f"{domain}.{name}" if domain else name
    count = "once" if len(nodes) == 1 else f"{len(nodes)} times"
    labels = [each.name or next(filter(None, each.outputs), "") for each in nodes]
    listed = ", ".join(f"'{label}'" for label in labels[:5]) + (", ..." if len(labels) > 5 else "")
    return Diagnostic(
        "E7001",
        f"operator {shown} is not read ({count}: {listed}): there is no rule for it",
        help="the page on ONNX models lists what is read",
        context={"operation": shown, "reason": "there is no rule for it", "count": len(nodes)},
    )
