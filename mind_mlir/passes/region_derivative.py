"""Regions of an operation whose derivative is wanted, as its rule sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import Block, CoreOperation, ValueId
    from mind_mlir.ir.value import Value
    from mind_mlir.passes.backward import Backward


@dataclass(slots=True, eq=False)
class RegionDerivative:
    """Appends what a region does, and the derivative of that, wherever the builder stands.

    Its values stand for those of the region in the tables of the driver until it runs again: what runs last
    is what the derivative goes back through.
    """

    driver: Backward
    region: Block
    captured: Sequence[ValueId]

    @property
    def active(self) -> tuple[bool, ...]:
        """Return for each parameter whether it can have a cotangent."""
        return tuple([p.value_id in self.driver.varying for p in self.region.parameters])

    def run(self, arguments: Sequence[Value]) -> list[Value]:
        """Append the operations of the region; return what it yields for these ``arguments``."""
        primal = self.driver.primal
        for parameter, argument in zip(self.region.parameters, arguments, strict=True):
            primal[parameter.value_id] = argument
        self.driver.forward(self.region.operations)
        return [primal[value] for value in self.region.terminator.operands]

    def pull(self, cotangents: Sequence[Value | None]) -> tuple[list[Value | None], list[Value | None]]:
        """Append the derivative of the last run; return the cotangents of parameters and captured values."""
        driver = self.driver
        outside, driver.gradients = driver.gradients, {}
        driver.depth += 1
        for value, cotangent in zip(self.region.terminator.operands, cotangents, strict=True):
            if cotangent is not None and value in driver.varying:
                driver.accumulate(value, cotangent)
        driver.visit(self.region.operations)
        driver.depth -= 1
        found, driver.gradients = driver.gradients, outside
        parameters = [found.get(parameter.value_id) for parameter in self.region.parameters]
        return parameters, [found.get(value) for value in self.captured]


def captured_values(operation: CoreOperation) -> list[ValueId]:
    """Return the values around ``operation`` that its regions read, in the order of their ids."""
    inside: set[ValueId] = set()
    found: set[ValueId] = set()
    pending = list(operation.regions)
    while pending:
        region = pending.pop()
        inside.update(parameter.value_id for parameter in region.parameters)
        found.update(region.terminator.operands)
        for inner in region.operations:
            inside.update(inner.result_ids)
            found.update(inner.operands)
            pending += inner.regions
    return sorted(found - inside)
