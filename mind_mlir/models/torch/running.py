"""Graphs as functions of arrays, which are traced like any other."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import AutodiffError, Diagnostic, TracingError, UnsupportedError, VerificationError
from mind_mlir.ir.types import TensorType
from mind_mlir.models.torch.graph import FxGraph, FxNode, Ref, mapped
from mind_mlir.models.torch.rules import draws, find_rule, takes
from mind_mlir.models.torch.rules.use import OperatorUse, Shared, UnreadUse
from mind_mlir.ops.open_axes import NotOpen
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.tracing.array import TracedArray
from mind_mlir.tracing.places import line_source
from mind_mlir.tracing.trace import current_trace

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.source_info import SourceInfo

#: How many places a finding names.
_MOST_PLACES = 10
#: The parameter that random numbers are drawn with.
SEED = "seed"


def is_random(graph: FxGraph) -> bool:
    """Return whether a graph draws random numbers."""
    return any(draws(node.operator, node.kwargs, node.args) for node in graph.all_nodes())


def check(graph: FxGraph) -> None:
    """Refuse a graph with operators that there are no rules for.

    Raises:
        UnsupportedError: E7001, all of these at once, with counts and places.
    """
    missing = _Missing()
    for node in graph.all_nodes():
        if find_rule(node.operator) is None:
            missing.note(node, "there is no rule for it")
    missing.report()


class GraphFunction:
    """A function of the arrays that a graph is given, for `mind_mlir.jit` to trace.

    Attributes:
        graph: The graph, whose operators have rules.
        known: For each input, the number that it is; None where it is an array.
        outputs: Which of the graph's outputs the function returns, where they are arrays.
        orders: For each output, the order of its dimensions in memory; None for that of their numbers.
        numbers: Once the function has been traced, the outputs among these that are no arrays.
    """

    def __init__(
        self,
        graph: FxGraph,
        known: Sequence[int | None],
        outputs: Sequence[int],
        orders: Sequence[Sequence[int] | None],
    ) -> None:
        """Say what it takes and returns."""
        self.graph, self.known, self.outputs, self.orders = graph, known, outputs, orders
        self.numbers: dict[int, Any] = {}
        self.is_random = is_random(graph)
        kinds = inspect.Parameter
        names = [each.name for each, number in zip(graph.inputs, known, strict=True) if number is None]
        self.__signature__ = inspect.Signature(
            [
                kinds(name, kinds.POSITIONAL_OR_KEYWORD)
                for name in [*names, *([SEED] if self.is_random else ())]
            ]
        )
        self.__name__ = self.__qualname__ = "main"

    def __call__(self, *arrays: TracedArray) -> list[TracedArray]:
        """Append the graph's operators to the trace that runs, and return its arrays."""
        given = iter(arrays)
        values = [next(given) if number is None else number for number in self.known]
        run = _Run()
        run.shared.seed = next(given) if self.is_random else None
        results = run.evaluate(self.graph, values)
        run.missing.report()
        found = []
        for place in self.outputs:
            result, order = results[place], self.orders[place]
            if isinstance(result, TracedArray):
                found.append(result if order is None else result.transpose(order))
            else:
                self.numbers[place] = result
        return found


def numbers_of(graph: FxGraph, places: Collection[int], given: Sequence[Any]) -> dict[int, Any]:
    """Return outputs of a graph that are numbers, and follow from numbers and shapes of inputs alone.

    Args:
        graph: The graph.
        places: Which outputs.
        given: The inputs: numbers, and what has the shapes of arrays.

    Raises:
        NotOpen: One follows from something else.
    """
    values = dict(zip([each.name for each in graph.inputs], given, strict=True))
    nodes = {node.name: node for node in graph.nodes}

    def value(part: Any) -> Any:
        if type(part) is not Ref or part.name in values:
            return values[part.name] if type(part) is Ref else part
        node = nodes[part.name]
        rule = find_rule(node.operator)
        if rule is None or node.types != (None,):
            raise NotOpen(f"it returns a number that follows from {node.operator}")
        arguments = [mapped(each, value) for each in node.args]
        values[part.name] = rule(OperatorUse(node, Shared(lambda *_: [])), *arguments)
        return values[part.name]

    return {place: value(graph.outputs[place]) for place in places}


class _Run:
    """One evaluation of a graph."""

    def __init__(self) -> None:
        #: The values of the outermost graph, whose inputs those within it may read.
        self.around: dict[str, Any] = {}
        self.shared = Shared(self.evaluate)
        self.missing = _Missing()

    def evaluate(self, graph: FxGraph, given: Sequence[Any]) -> list[Any]:
        """Return the outputs of a graph."""
        own: dict[str, Any] = {each.name: value for each, value in zip(graph.inputs, given, strict=True)}
        self.around = self.around or own
        values = {**self.around, **own}
        trace = current_trace()
        before = trace.source
        for node in graph.nodes:
            trace.source = _source(node)
            values[node.name] = self._result(node, values)
        trace.source = before
        return [_output(each, values) for each in graph.outputs]

    def _result(self, node: FxNode, values: dict[str, Any]) -> Any:
        rule = find_rule(node.operator)
        assert rule is not None, "check has been here"

        def value(part: Any) -> Any:
            return values[part.name] if type(part) is Ref else part

        args = [mapped(each, value) for each in node.args]
        kwargs = {name: mapped(each, value) for name, each in node.kwargs.items()}
        use = OperatorUse(node, self.shared)
        try:
            if not takes(rule, use, *args, **kwargs):
                raise UnreadUse("it is given arguments that its rule does not take")
            return rule(use, *args, **kwargs)
        except UnreadUse as reason:
            self.missing.note(node, str(reason))
        except (AutodiffError, TracingError, VerificationError) as error:
            self.missing.note(node, error.diagnostics[0].message)
        return self._anything(node)

    def _anything(self, node: FxNode) -> Any:
        """Return arrays of a node's types, so that what else is missing is found."""
        trace, found = current_trace(), []
        for each in node.types:
            if each is None or None in each.shape:
                self.missing.report()
            assert each is not None, "what has been refused was reported"
            found.append(trace.wrap(trace.builder.fresh(TensorType(each.dtype, tuple(each.shape)))))  # type: ignore[arg-type]  # all are known
        return found if len(found) != 1 else found[0]


def _output(part: Any, values: dict[str, Any]) -> Any:
    if isinstance(part, list):
        return [_output(each, values) for each in part]
    return values[part.name] if isinstance(part, Ref) else part


def _source(node: FxNode) -> SourceInfo | None:
    return None if node.place is None else line_source(node.place.file, node.place.line)


class _Missing:
    """What cannot be read of a graph, by operator and reason."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], list[FxNode]] = {}

    def note(self, node: FxNode, reason: str) -> None:
        """Note a use of an operator that cannot be read."""
        self.found.setdefault((node.operator, reason), []).append(node)

    def report(self) -> None:
        """Raise what has been noted, if anything has."""
        if self.found:
            raise UnsupportedError([_finding(*each) for each in self.found.items()])


def _finding(what: tuple[str, str], nodes: list[FxNode]) -> Diagnostic:
    operator, reason = what
    places = dict.fromkeys(f"{node.place.file}:{node.place.line}" for node in nodes if node.place is not None)
    listed = list(places)
    count = "once" if len(nodes) == 1 else f"{len(nodes)} times"
    shown = ", ".join(listed[:_MOST_PLACES]) + (", ..." if len(listed) > _MOST_PLACES else "")
    return Diagnostic(
        "E7001",
        f"{operator} is not read ({count}{': ' if shown else ''}{shown}): {reason}",
        _location(nodes[0]),
        help="the page on models of torch lists what is read",
        context=FrozenDict(
            {
                "operation": operator,
                "reason": reason,
                "count": len(nodes),
                "nodes": tuple([node.name for node in nodes]),
            }
        ),
    )


def _location(node: FxNode) -> Location | None:
    source = _source(node)
    return None if source is None else source.statement
