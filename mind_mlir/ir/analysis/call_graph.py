"""The call graph of functions, and the order in which to look at them: the called ones first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir.ir.module import Block, CoreOperation, Function

CALL = "Call"


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

        A function that takes part in no recursion is a group by itself. This is Tarjan's algorithm.
        """
        number: dict[str, int] = {}
        low: dict[str, int] = {}
        open_: dict[str, None] = {}
        groups: list[list[str]] = []
        for start in self.functions:
            if start in number:
                continue
            number[start] = low[start] = len(number)
            open_[start] = None
            stack = [(start, iter(self.calls[start]))]
            while stack:
                name, callees = stack[-1]
                for callee in callees:
                    if callee not in number:
                        number[callee] = low[callee] = len(number)
                        open_[callee] = None
                        stack.append((callee, iter(self.calls[callee])))
                        break
                    if callee in open_:
                        low[name] = min(low[name], number[callee])
                else:
                    stack.pop()
                    if stack:
                        caller = stack[-1][0]
                        low[caller] = min(low[caller], low[name])
                    if low[name] == number[name]:
                        groups.append(_popped(open_, name))
        return groups

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


def _popped(open_: dict[str, None], name: str) -> list[str]:
    """Remove ``name`` and what was opened after it, and return that in the order in which it was opened."""
    group: list[str] = []
    while not group or group[-1] != name:
        group.append(open_.popitem()[0])
    return group[::-1]
