"""The contexts that type rules, numpy rules, and rules of expansion are given."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from mind_mlir.diagnostics import Diagnostic, ExecutionError, Location
from mind_mlir.diagnostics.checks import Check, IndexCheck
from mind_mlir.ir.profiles import CORE_V1, Profile
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.source_info import SourceInfo
    from mind_mlir.ir.types import DType, TensorType


#: What a numpy rule has run next, and with which values of its parameters: a region of its operation by its
#: place, or a function of the module by its name.
RunRequest: TypeAlias = "tuple[int | str, Sequence[Array]]"
#: The rule of an operation that runs regions or functions: it yields what to run and is sent what that yields
#: or returns. So no rule calls the interpreter, and nesting of any depth takes no stack.
Running: TypeAlias = "Generator[RunRequest, tuple[Array, ...], tuple[Array, ...]]"


def _place(locations: Sequence[Location | None], index: int) -> Location | None:
    return locations[index] if index < len(locations) else None


class RuleViolation(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Ends a type rule after a finding without which it cannot go on; the verifier catches it."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The types that a function takes and returns."""

    parameters: tuple[TensorType, ...]
    results: tuple[TensorType, ...]


@dataclass(frozen=True, slots=True)
class RegionTypes:
    """The types that a region of an operation takes and yields, and their places in the source, if known."""

    parameters: tuple[TensorType, ...]
    yields: tuple[TensorType, ...]
    #: The label of its block; an empty one is not compared with the record's.
    name: str = ""
    parameter_locations: tuple[Location | None, ...] = ()
    yield_locations: tuple[Location | None, ...] = ()
    location: Location | None = None

    def parameter_location(self, index: int) -> Location | None:
        """Return where parameter ``index`` is written, or else the region."""
        return _place(self.parameter_locations, index) or self.location

    def yield_location(self, index: int) -> Location | None:
        """Return where operand ``index`` of its yield is written, or else the region."""
        return _place(self.yield_locations, index) or self.location


@dataclass(slots=True)
class TypeContext:
    """One operation as its type rule sees it.

    The operand count, the operand dtypes and the kind of every attribute have been checked against the
    record, and defaults filled in, before the rule runs.

    Attributes:
        opcode: Spelling of the operation.
        value_id: The value it defines.
        operands: Operand types.
        attributes: Complete attributes.
        declared: The result type the text declares, or None where it is to be inferred.
        source: Source spans, when known.
        diagnostics: Findings so far.
        declared_results: The types that the text declares of all results, where there are several.
        regions: What its regions take and yield.
        functions: The functions of the module by name; None where a signature is not well-formed, which is
            reported elsewhere.
        profile: The rules that the module chose.
    """

    opcode: str
    value_id: int
    operands: tuple[TensorType, ...]
    attributes: Mapping[str, Any]
    declared: TensorType | None = None
    source: SourceInfo | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    declared_results: tuple[TensorType, ...] | None = None
    regions: tuple[RegionTypes, ...] = ()
    functions: Mapping[str, Signature | None] = field(default_factory=FrozenDict)
    profile: Profile = CORE_V1

    def report(
        self,
        code: str,
        message: str,
        *,
        operand: int | None = None,
        attribute: str | None = None,
        result: bool = False,
        location: Location | None = None,
        notes: tuple[str, ...] = (),
        help: str | None = None,
        **context: Any,
    ) -> None:
        """Record a finding and go on.

        It is located at ``location``, at the operand or attribute that is named or at the declared type, else
        at the opcode.
        """
        self.diagnostics.append(
            Diagnostic(
                code,
                message,
                location or self._location(operand, attribute, result=result),
                notes,
                help,
                context=MappingProxyType({"operation": self.opcode, "value": self.value_id, **context}),
            )
        )

    def allows_dtype(
        self,
        attribute: str,
        dtypes: Iterable[DType],
        lack: str = "does not give",
        notes: tuple[str, ...] = (),
    ) -> bool:
        """Return whether ``attribute`` names one of ``dtypes`` that the profile has; else record E2005."""
        dtype: DType = self.attributes[attribute]
        allowed = [each for each in dtypes if each in self.profile.dtypes]
        if dtype in allowed:
            return True
        listing = ", ".join(each.core_name for each in allowed)
        self.report(
            "E2005",
            f"{self.opcode} {lack} {dtype.core_name}",
            attribute=attribute,
            notes=notes,
            help=f"allowed: {listing}",
            found=dtype.core_name,
            allowed=listing,
            dtype=dtype.core_name,
        )
        return False

    def fail(self, code: str, message: str, **details: Any) -> NoReturn:
        """Record a finding and end the rule; takes the same arguments as `report`."""
        self.report(code, message, **details)
        raise RuleViolation

    def stop_if_reported(self) -> None:
        """End the rule when a finding has been recorded."""
        if self.diagnostics:
            raise RuleViolation

    def _location(self, operand: int | None, attribute: str | None, *, result: bool) -> Location | None:
        if self.source is None:
            return None
        if operand is not None and operand < len(self.source.operands):
            return self.source.operands[operand]
        if attribute is not None and attribute in self.source.attributes:
            return self.source.attributes[attribute]
        if result and self.source.result_type is not None:
            return self.source.result_type
        return self.source.opcode or self.source.statement


@dataclass(slots=True)
class EvalContext:
    """One operation as its numpy rule sees it: arrays in, one array of ``result_type`` out.

    The rule must return an array of exactly the result's dtype and shape, and must not write to an operand;
    an operation of several results returns a tuple of such arrays, of ``result_types``. The rule of an
    operation that runs regions or functions is a generator (see `Running`). numpy's floating-point and
    overflow warnings are off while a rule runs. ``label`` is what messages call the (first) result, for
    example ``%3``. An operation that runs again is given the same context with other operands.
    """

    opcode: str
    label: str
    operands: tuple[Array, ...]
    attributes: Mapping[str, Any]
    result_type: TensorType
    source: SourceInfo | None = None
    result_types: tuple[TensorType, ...] = ()

    def out_of_bounds(self, index: int, shape: tuple[int, ...], axis: int = 0) -> NoReturn:
        """Raise E6001 for ``index`` on ``axis`` of an operand of ``shape``."""
        self.fail(IndexCheck(self.opcode, self.label, axis, shape), index)

    def fail(self, check: Check, found: int) -> NoReturn:
        """Raise what ``check`` says about ``found``."""
        raise ExecutionError(check.finding(found, self.source.statement if self.source else None))
