"""Checks of what depends on run-time data: their facts, and what is said where one fails.

A check looks at integers and has a range that they must lie in. Interpreted code raises at the first number
outside. Compiled code never stops: it keeps the least and the greatest number that it has seen, from
`NOTHING_SEEN` on, merges two such pairs by minimum and maximum, so that loops, branches and calls hand them
on, and returns them; `Check.judge` then says what the interpreter would have said.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field, replace
from types import MappingProxyType
from typing import TypeAlias

from mind_mlir.diagnostics import Diagnostic, Location
from mind_mlir.diagnostics.display import visible
from mind_mlir.support.lazy_dataclass import dataclass

#: A file's name, a line and a column.
Place: TypeAlias = tuple[str, int, int]
#: The least and the greatest of no numbers.
NOTHING_SEEN = (2**63 - 1, -(2**63))


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one operation.

    Attributes:
        opcode: The operation.
        label: What messages call its value, for example ``%3``.
        place: Where its statement begins, as far as compiled code knows; with the label it tells operations
            apart that are in one function only since one calls the other.
    """

    opcode: str
    label: str
    place: Place | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def allowed(self) -> tuple[int, int]:
        """Return the least and the greatest number that is allowed; nothing is where they are in disorder."""

    @property
    @abstractmethod
    def failure(self) -> str:
        """Return what is wrong where a number lies outside, for those who do not know the number."""

    @abstractmethod
    def finding(self, found: int, location: Location | None = None) -> Diagnostic:
        """Return what there is to say about ``found``, which lies outside."""

    def judge(self, smallest: int, largest: int, location: Location | None = None) -> Diagnostic | None:
        """Return what there is to say when these were the least and the greatest number seen, or None."""
        if (smallest, largest) == NOTHING_SEEN:
            return None
        low, high = self.allowed
        if smallest >= low and largest <= high:
            return None
        found = self.finding(smallest if smallest < low else largest, location)
        if location is not None or self.place is None:
            return found
        file, line, column = self.place  # whose text is not at hand, as where a bundle is run
        return replace(found, notes=(*found.notes, f"it is written in {visible(file)}:{line}:{column}"))


@dataclass(frozen=True, slots=True)
class IndexCheck(Check):
    """Indices of an axis of ``shape`` lie in ``[-extent, extent)``: E6001."""

    axis: int
    shape: tuple[int, ...]

    @property
    def allowed(self) -> tuple[int, int]:
        """Return the range of valid indices, which count from the end where they are negative."""
        extent = self.shape[self.axis]
        return -extent, extent - 1

    @property
    def failure(self) -> str:
        """Return what is wrong where an index lies outside."""
        return f"an index is out of bounds for axis {self.axis} with extent {self.shape[self.axis]}"

    def finding(self, found: int, location: Location | None = None) -> Diagnostic:
        """Return E6001 for the index ``found``."""
        low, high = self.allowed
        help_ = f"indices must lie in [{low}, {high}]; negative ones count from the end"
        help_ = help_ if self.shape[self.axis] else "the axis is empty, so no index is valid"
        return _out_of_bounds(self, f"index {found}", found, help_, location)


@dataclass(frozen=True, slots=True)
class PositionCheck(Check):
    """Positions on an axis of ``shape``, where windows of so many elements begin, count from 0: E6001."""

    axis: int
    shape: tuple[int, ...]
    window: int = 1

    @property
    def allowed(self) -> tuple[int, int]:
        """Return the range of positions at which a whole window lies on the axis."""
        return 0, self.shape[self.axis] - self.window

    @property
    def failure(self) -> str:
        """Return what is wrong where a position lies outside."""
        what = f"an index of a window of {self.window}" if self.window != 1 else "an index"
        return f"{what} is out of bounds for axis {self.axis} with extent {self.shape[self.axis]}"

    def finding(self, found: int, location: Location | None = None) -> Diagnostic:
        """Return E6001 for the position ``found``."""
        _, last = self.allowed
        help_ = f"indices must lie in [0, {last}]; they do not count from the end"
        help_ = help_ if last >= 0 else "the axis is too short, so no index is valid"
        what = f"index {found} of a window of {self.window}" if self.window != 1 else f"index {found}"
        return _out_of_bounds(self, what, found, help_, location)


def _out_of_bounds(
    check: IndexCheck | PositionCheck, what: str, index: int, help_: str, location: Location | None
) -> Diagnostic:
    extent, label = check.shape[check.axis], check.label
    message = f"{check.opcode} {label}: {what} is out of bounds for axis {check.axis} with extent {extent}"
    notes = (f"the operand has shape {list(check.shape)}",)
    facts = {"operation": check.opcode, "value": label, "index": index, "shape": check.shape}
    return Diagnostic("E6001", message, location, notes, help_, context=MappingProxyType(facts))


@dataclass(frozen=True, slots=True)
class DivisorCheck(Check):
    """No element of an integer divisor is 0: E6009. The numbers are 1 for those that are, else 0."""

    @property
    def allowed(self) -> tuple[int, int]:
        """Return the range that says that no element is 0."""
        return 0, 0

    @property
    def failure(self) -> str:
        """Return what is wrong where an element is 0."""
        return "division of an integer by zero"

    def finding(self, found: int, location: Location | None = None) -> Diagnostic:
        """Return E6009."""
        message = f"{self.opcode} {self.label}: {self.failure}"
        help_ = "choose another divisor where it is zero, with Compare and Select, or divide floats"
        facts = MappingProxyType({"operation": self.opcode, "value": self.label})
        return Diagnostic("E6009", message, location, help=help_, context=facts)


def window_check(
    opcode: str, label: str, axis: int, shape: tuple[int, ...], window: int, *, wraps: bool
) -> Check:
    """Return the check of where windows of ``window`` elements begin on an axis, from its end if it wraps."""
    if wraps:
        return IndexCheck(opcode, label, axis, shape)
    return PositionCheck(opcode, label, axis, shape, window)
