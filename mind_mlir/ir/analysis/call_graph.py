"""The call graph of functions, and the order in which to look at them: the called ones first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from mind_mlir.ir.module import Block, CoreOperation, Function

#: A node of a graph.
Node = TypeVar("Node", bound="Hashable")
CALL = "Call"
CUSTOM_CALL = "CustomCall"


def operations_of(blocks: Sequence[Block]) -> Iterator[CoreOperation]:
    """Yield all operations of ``blocks`` in source order, each before those in its regions."""
    stack = [iter(block.operations) for block in reversed(blocks)]
    while stack:
        for operation in stack[-1]:
            yield operation
            if operation.regions:
                stack.extend(iter(region.operations) for region in reversed(operation.regions))
                break
        else:
            stack.pop()


def callee_of(operation: CoreOperation) -> str | None:
    """Return the name of the function that ``operation`` calls, or None where it calls none."""
    if operation.opcode != CALL:
        return None
    name = operation.attributes.get("callee")
    return name if isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The calls of a module's functions.

    Attributes:
        functions: The functions by name; of several with one name, which no verified module has, the first.
        calls: For each function its calls of functions that exist: one operation for each callee, the first.
    """

    functions: Mapping[str, Function]
    calls: Mapping[str, Mapping[str, CoreOperation]]

    @classmethod
    def of(cls, functions: Sequence[Function]) -> CallGraph:
        """Find the calls in ``functions``, those in regions included."""
        by_name: dict[str, Function] = {}
        for function in functions:
            by_name.setdefault(function.name, function)
        calls: dict[str, Mapping[str, CoreOperation]] = {}
        for name, function in by_name.items():
            found: dict[str, CoreOperation] = {}
            for operation in operations_of(function.blocks):
                callee = callee_of(operation)
                if callee is not None and callee in by_name:
                    found.setdefault(callee, operation)
            calls[name] = found
        return cls(by_name, calls)

    def components(self) -> list[list[str]]:
        """Return the functions in groups that call one another, called groups before those that call them.

        A function that takes part in no recursion is a group by itself.
        """
        return strong_components(self.functions, self.calls.__getitem__)

    def reached(self, names: Iterable[str]) -> set[str]:
        """Return the functions called ``names`` and those that they call, directly or not."""
        found = set(names)
        pending = list(found)
        while pending:
            new = self.calls[pending.pop()].keys() - found
            found |= new
            pending += new
        return found

    def callees_first(self) -> list[Function]:
        """Return the functions, each after all that it calls, where there is no recursion."""
        return [self.functions[name] for group in self.components() for name in group]

    def cycles(self) -> list[list[str]]:
        """Return one shortest cycle of each group of functions that call one another, in the module's order.

        ``["f", "g"]`` says that f calls g, which calls f; it starts with the first of them in the module.
        """
        place = {name: index for index, name in enumerate(self.functions)}
        starts = [
            (min(group, key=place.__getitem__), group)
            for group in self.components()
            if len(group) > 1 or group[0] in self.calls[group[0]]
        ]
        return [self._cycle(start, group) for start, group in sorted(starts, key=lambda item: place[item[0]])]

    def _cycle(self, start: str, group: Sequence[str]) -> list[str]:
        """Return a shortest way from ``start`` through its group back to it."""
        within = set(group)
        caller: dict[str, str] = {}
        queue = [start]
        for name in queue:  # grows
            for callee in self.calls[name]:
                if callee == start:
                    path = [name]
                    while path[-1] != start:
                        path.append(caller[path[-1]])
                    return path[::-1]
                if callee in within and callee not in caller:
                    caller[callee] = name
                    queue.append(callee)
        raise AssertionError("a function of the group is on a cycle")


def strong_components(nodes: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> list[list[Node]]:
    """Return the strongly connected components of a graph, each after those that it leads to.

    The nodes of each stand in the order in which the search meets them, from the first of ``nodes`` on. This
    is Tarjan's algorithm (1972), without recursion.
    """
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}
    open_: dict[Node, None] = {}
    groups: list[list[Node]] = []
    for start in nodes:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        open_[start] = None
        stack = [(start, iter(following(start)))]
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if target not in number:
                    number[target] = low[target] = len(number)
                    open_[target] = None
                    stack.append((target, iter(following(target))))
                    break
                if target in open_:
                    low[node] = min(low[node], number[target])
            else:
                stack.pop()
                if stack:
                    before = stack[-1][0]
                    low[before] = min(low[before], low[node])
                if low[node] == number[node]:
                    group: list[Node] = []
                    while not group or group[-1] != node:
                        group.append(open_.popitem()[0])
                    groups.append(group[::-1])
    return groups


def with_calls_renamed(block: Block, names: Mapping[str, str]) -> Block:
    """Return ``block`` with calls, those in regions included, of the functions that ``names`` renames."""
    return replace(block, operations=tuple(_renamed(operation, names) for operation in block.operations))


def _renamed(operation: CoreOperation, names: Mapping[str, str]) -> CoreOperation:
    if operation.regions:  # as deep as regions nest, which is bounded
        regions = tuple(with_calls_renamed(region, names) for region in operation.regions)
        return replace(operation, regions=regions)
    callee = callee_of(operation)
    if callee is None or callee not in names:
        return operation
    return replace(operation, attributes={**operation.attributes, "callee": names[callee]})
