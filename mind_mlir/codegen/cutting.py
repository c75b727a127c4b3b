"""The division of a module's functions into units that become machine code together."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING

from mind_mlir.lowering.llvm_hints import SCALAR_ATTRIBUTE
from mind_mlir.lowering.math.expansion import INLINE_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.mlir.bindings import Module, Operation

#: Operations that are worth a unit of their own: another one costs its thread 2 ms, an operation 30 us.
_WORTHWHILE = 100
#: Operations of a light function: by itself, one takes LLVM 0.4 ms.
_LIGHT = 40
#: So many of them become parts of their callers; each may need some of the caller's stack.
_MOST_JOINED = 8
#: An operation takes so many times as long where LLVM's passes go through it.
_OPTIMISED = 2


@dataclass(frozen=True, slots=True)
class SizedFunction:
    """A function with a body.

    Attributes:
        op: The function.
        name: Its name.
        size: How many operations it has.
        refers: What it calls, takes the address of or reads, by name, and from how many places; an address
            may be called from several.
        stays: Whether it has to be in the first unit.
        light: Whether it may become a part of its caller, where there is one: it has no loop over data.
    """

    op: Operation
    name: str
    size: int
    refers: Counter[str]
    stays: bool
    light: bool


@dataclass(slots=True)
class Share:
    """The functions that make one unit.

    Attributes:
        level: The level of optimisation.
        size: How many operations it has.
        functions: Its functions.
    """

    level: int
    size: int = 0
    functions: list[SizedFunction] = field(default_factory=list)

    def enter(self, functions: Iterable[SizedFunction]) -> None:
        """Add functions."""
        for function in functions:
            self.functions.append(function)
            self.size += function.size

    def names(self) -> set[str]:
        """Return the names of the functions."""
        return {function.name for function in self.functions}

    def refers(self) -> set[str]:
        """Return what the functions refer to."""
        return {name for function in self.functions for name in function.refers}

    def called_once(self) -> list[SizedFunction]:
        """Return the first few light functions that are called from one place, within the share."""
        places: Counter[str] = Counter()
        for function in self.functions:
            places.update(function.refers)
        found = [each for each in self.functions if each.light and places[each.name] == 1]
        return found[:_MOST_JOINED]


def shares(module: Module, level: int, most: int, *, whole: bool) -> list[Share]:
    """Share the functions of ``module`` out; the first share, which holds the public ones, may be empty.

    Args:
        module: A module of the LLVM dialect.
        level: The level of optimisation of the first share; if it is not 0, that holds nothing else than what
            gains by it.
        most: How many shares there are at most to be compiled at the same time.
        whole: Leave it as one share.
    """
    functions = _functions(module)
    first = Share(level)
    first.enter(function for function in functions if function.stays)
    total = sum(function.size for function in functions)
    free = total - first.size
    groups = sorted(_groups(functions), key=_size_of, reverse=True)
    if whole or not groups:
        count = 0
    elif level:
        count = min(_others(first.size, free, most), free // _WORTHWHILE)
    else:
        # One unit has the largest group; what is left has to be worth the others.
        count = min(most - 1, total // _WORTHWHILE - 1, (total - _size_of(groups[0])) // _WORTHWHILE)
    if count < 1:
        first.enter(function for function in functions if not function.stays)
        return [first]
    others = [Share(0) for _ in range(count)]
    takers = others if level else [first, *others]
    for group in groups:
        min(takers, key=lambda share: share.size).enter(group)
    return [first, *(share for share in others if share.functions)]


def _others(first: int, free: int, most: int) -> int:
    """Return how many shares take the ``free`` operations, where the first one takes others.

    Its thread is done early where it has little to do, and then there are as many others as threads.
    """
    busy = _OPTIMISED * first * most >= free + _OPTIMISED * first
    return max(most - 1, 1) if busy or most < 2 else most


def _size_of(functions: Sequence[SizedFunction]) -> int:
    return sum(function.size for function in functions)


def _groups(functions: Sequence[SizedFunction]) -> list[list[SizedFunction]]:
    """Return the functions that may be anywhere, those together that are for one another alone.

    A launch refers to nothing but its thunk, and that to its chunk.
    """
    movable = {function.name: function for function in functions if not function.stays}
    users = Counter(name for function in functions for name in function.refers)
    heads = dict(movable)
    callee: dict[str, str] = {}
    for function in movable.values():
        own = [name for name in function.refers if name in movable]
        if len(own) == 1 and users[own[0]] == 1 and own[0] in heads and own[0] != function.name:
            callee[function.name] = own[0]
            del heads[own[0]]
    found = []
    for name in heads:
        group = [movable[name]]
        while group[-1].name in callee:
            group.append(movable[callee[group[-1].name]])
        found.append(group)
    return found


def _functions(module: Module) -> list[SizedFunction]:
    """Return the functions of ``module``, but those that any unit may have a copy of."""
    found = [
        _function(op)
        for op in module.body.operations
        if op.operation.name == "llvm.func" and op.regions[0].blocks and INLINE_ATTRIBUTE not in op.attributes
    ]
    # What returns something is called directly, from where it is.
    returning = {function.name for function in found if not _returns_nothing(function.op)}
    staying = {function.name for function in found if function.stays} | returning
    pending = returning
    while pending:
        pending = {function.name for function in found if not pending.isdisjoint(function.refers)} - staying
        staying |= pending
    return [replace(each, stays=each.name in staying) for each in found] if returning else found


def _function(op: Operation) -> SizedFunction:
    attributes = op.attributes
    size = 0
    stores = False
    refers: Counter[str] = Counter()
    advance = ir.WalkResult.ADVANCE

    def visit(inner: Operation) -> object:
        nonlocal size, stores
        size += 1
        name = inner.name
        if name == "llvm.call":
            if "callee" in inner.attributes:
                refers[str(inner.attributes["callee"].value)] += 1
        elif name == "llvm.mlir.addressof":
            refers[str(inner.attributes["global_name"].value)] += 2
        elif name == "llvm.store":
            stores = True
        return advance

    op.operation.walk(visit)
    stays = "sym_visibility" not in attributes or SCALAR_ATTRIBUTE in attributes
    light = size <= _LIGHT and not stays and not (stores and len(op.regions[0].blocks) > 1)
    return SizedFunction(op, str(attributes["sym_name"].value), size - 1, refers, stays, light)


def _returns_nothing(function: Operation) -> bool:
    return str(function.attributes["function_type"]).startswith("!llvm.func<void ")
