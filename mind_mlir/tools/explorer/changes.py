"""What the passes of the optimiser changed, in sentences."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.module import Module
from mind_mlir.passes.optimize.table import ALL_PASSES
from mind_mlir.passes.simplify.tables import ALGEBRA, CHAINS, DOTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mind_mlir.ir.module import CoreOperation, Function
    from mind_mlir.passes.record import Printed
    from mind_mlir.passes.simplify.pattern import Pattern, Rule

#: So many operations are named.
_MOST = 8


class Changes:
    """Looks at passes, and says what each has changed.

    Attributes:
        said: The sentences so far.
    """

    def __init__(self) -> None:
        self.said: list[str] = []
        self._fitting: dict[Pattern, dict[str, None]] = {}
        self._patterns: dict[tuple[Rule, str], Pattern] = {}
        tables = (found for table in (ALGEBRA, CHAINS, DOTS) for found in table.values())
        for pattern in chain.from_iterable(tables):
            for opcode in pattern.opcodes:
                self._patterns.setdefault((pattern.rule, opcode), pattern)
        self._about = {each.name: each.summary for each in ALL_PASSES}

    def see_rule(self, rule: Rule, operation: CoreOperation) -> None:
        """See which rule fits an operation (see `simplify.sweep.observed`)."""
        pattern = self._patterns.get((rule, operation.opcode))
        if pattern is not None:  # passes may have rules that are no identities by themselves
            self._fitting.setdefault(pattern, {})[_named(operation)] = None

    def see_pass(self, name: str, before: Printed, after: Printed) -> None:
        """See what a pass has changed (see `optimize`)."""
        self.said.append(self._sentence(name, before.code, after.code))
        for pattern, places in self._fitting.items():
            self.said.append(
                f"{name}: {pattern.before} became {pattern.after} at {_listed(places)}: {pattern.why}"
            )
        self._fitting.clear()

    def _sentence(self, name: str, before: Function | Module, after: Function | Module) -> str:
        old, new = (list(map(_named, _operations(code))) for code in (before, after))
        gone = dict.fromkeys(each for each in old if each not in set(new))
        made = dict.fromkeys(each for each in new if each not in set(old))
        parts = [f"{len(old)} operations became {len(new)}"]
        parts += [f"{_listed(gone)} went"] if gone else []
        parts += [f"{_listed(made)} came"] if made else []
        return f"{name} ({self._about[name]}): {'; '.join(parts)}"


def _operations(code: Function | Module) -> Iterable[CoreOperation]:
    functions = code.functions if isinstance(code, Module) else (code,)
    return (operation for function in functions for operation in operations_of(function.blocks))


def _named(operation: CoreOperation) -> str:
    return f"{operation.label} {operation.opcode}"


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:_MOST])
    return shown if len(names) <= _MOST else f"{shown} and {len(names) - _MOST} more"
