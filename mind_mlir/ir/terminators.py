"""Terminators of blocks: return, yield, or branch to other blocks (core-ir-page.md, "IR structure")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias, cast

from mind_mlir.diagnostics.source import Location
from mind_mlir.ir.names import NO_NAMES, Names
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

ValueId: TypeAlias = int

#: Ids that need no second look.
PLAIN = 2**63


@dataclass(frozen=True, slots=True)
class _Exit:
    """Values leave: the operands of `Return` and `Yield`."""

    operands: tuple[ValueId, ...]
    locations: Sequence[Location | None] = field(default=(), compare=False, repr=False)
    names: Mapping[ValueId, str] = field(default_factory=lambda: NO_NAMES, compare=False, repr=False)
    #: Where the statement stands.
    location: Location | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", ids(self.operands, "operands"))
        _check_places(self)

    def location_of(self, index: int) -> Location | None:
        """Return where operand ``index`` is named in the source."""
        index = argument_checks.integer(index, "index")
        return self.locations[index] if 0 <= index < len(self.locations) else None

    def spell(self, value: ValueId) -> str:
        """Return ``value`` as the text writes it: ``%x``, or ``%3`` without a name."""
        return f"%{self.names.get(value := argument_checks.integer(value, 'value'), value)}"

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return the blocks that may follow: none."""
        return ()


@dataclass(frozen=True, slots=True)
class Return(_Exit):
    """Ends a function: its operands are the function's results."""

    def __str__(self) -> str:
        return _printed(self)


@dataclass(frozen=True, slots=True)
class Yield(_Exit):
    """Ends a region of an operation, which says what its operands mean."""

    def __str__(self) -> str:
        return _printed(self)


@dataclass(frozen=True, slots=True)
class Target:
    """A block by its label, and the arguments for its parameters."""

    label: str
    arguments: tuple[ValueId, ...] = ()
    #: Where the label, and then each argument, stands in the source.
    location: Location | None = field(default=None, compare=False, repr=False)
    locations: Sequence[Location | None] = field(default=(), compare=False, repr=False)
    names: Mapping[ValueId, str] = field(default_factory=lambda: NO_NAMES, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", argument_checks.text(self.label, "label"))
        object.__setattr__(self, "arguments", ids(self.arguments, "arguments"))
        _check_places(self)

    def location_of(self, index: int) -> Location | None:
        """Return where argument ``index`` is named in the source, or else the label."""
        index = argument_checks.integer(index, "index")
        return self.locations[index] if 0 <= index < len(self.locations) else self.location

    def spell(self, value: ValueId) -> str:
        """Return ``value`` as the text writes it."""
        return f"%{self.names.get(value := argument_checks.integer(value, 'value'), value)}"

    def __str__(self) -> str:
        return _printed(Branch(self)).removeprefix("br ")


@dataclass(frozen=True, slots=True)
class Branch:
    """Continues with another block."""

    target: Target
    location: Location | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        argument_checks.expect(self.target, Target, "target", "a Target")
        check_location(self.location)

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return the block that follows."""
        return (self.target,)

    @property
    def operands(self) -> tuple[ValueId, ...]:
        """Return the values it reads."""
        return self.target.arguments

    def __str__(self) -> str:
        return _printed(self)


@dataclass(frozen=True, slots=True)
class CondBranch:
    """Continues with ``then`` where the scalar ``condition`` (`tensor<i1[]>`) is true, else ``otherwise``."""

    condition: ValueId
    then: Target
    otherwise: Target
    location: Location | None = field(default=None, compare=False, repr=False)
    #: Where the condition stands in the source.
    condition_location: Location | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "condition", argument_checks.integer(self.condition, "condition"))
        argument_checks.expect(self.then, Target, "then", "a Target")
        argument_checks.expect(self.otherwise, Target, "otherwise", "a Target")
        check_location(self.location)
        check_location(self.condition_location, "condition_location")

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return the blocks that may follow: where the condition is true, and where it is not."""
        return (self.then, self.otherwise)

    @property
    def operands(self) -> tuple[ValueId, ...]:
        """Return the values it reads: the condition, then the arguments."""
        return (self.condition, *self.then.arguments, *self.otherwise.arguments)

    def __str__(self) -> str:
        return _printed(self)


Terminator: TypeAlias = Return | Yield | Branch | CondBranch
TERMINATORS = (Return, Yield, Branch, CondBranch)


def _printed(terminator: Terminator) -> str:
    from mind_mlir.languages.core.printer import print_terminator  # noqa: PLC0415 -- the printer stands above the data

    return print_terminator(terminator)


def check_names(names: object) -> None:
    """Raise a TypeError unless ``names`` says what a text calls its values."""
    if type(names) is not Names:
        argument_checks.mapping(names, "names", "a mapping from value ids to names")


def check_location(location: object, parameter: str = "location") -> None:
    """Raise a TypeError unless ``location`` is one, or None."""
    if location is not None:
        argument_checks.expect(location, Location, parameter, "a Location or None")


def _check_places(listed: _Exit | Target) -> None:
    check_names(listed.names)
    check_location(listed.location)
    if not isinstance(listed.locations, Sequence):
        argument_checks.reject("locations", "a sequence of Locations", listed.locations)


def ids(values: object, parameter: str) -> tuple[ValueId, ...]:
    """Return value ids as plain integers.

    Raises:
        TypeError: They are none.
    """
    found = argument_checks.items(values, parameter, "a sequence of value ids")
    for value in found:
        if type(value) is not int or not -PLAIN < value < PLAIN:
            return tuple(argument_checks.integer(item, f"each value id in {parameter}") for item in found)
    return cast("tuple[ValueId, ...]", found)
