"""The regions of a program: which there are, that none holds itself, what each gives, what functions need.

A module has a region where it is run. So a region that several instructions name is copied, with what it
holds, and its size counts as often as it is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.builders.type_rules import finding
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.regions import MAX_NESTING
from mind_mlir.ir.types import TupleType, ValueType
from mind_mlir.languages.ptir.fields import record_of
from mind_mlir.languages.ptir.program import Function, Instruction, Program, Region, TupleElement, ValueRef
from mind_mlir.ops.contract import FieldKind
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.diagnostics.findings import Findings

#: Instructions of a program with its regions copied to where they are run.
MAX_INSTRUCTIONS = 4_000_000
#: Regions of a cycle that a message names.
_NAMED = 8


@dataclass(slots=True)
class PtirRegions:
    """The regions of one program.

    Attributes:
        by_id: Those that can be used: the first of each id, which neither holds itself nor nests too deep.
        unusable: The ids of the others, which are reported here.
    """

    by_id: dict[int, Region] = field(default_factory=dict)
    unusable: set[int] = field(default_factory=set)
    #: How deep regions nest in each, itself included, and how many instructions there are in it.
    _depth: dict[int, int] = field(default_factory=dict)
    _size: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program, findings: Findings) -> PtirRegions:
        """Look at the regions of ``program``; what is wrong with them goes to ``findings``."""
        regions = cls()
        for region in program.regions:
            if regions.by_id.setdefault(region.id, region) is not region:
                _defined_twice(region, findings)
        regions._walk(findings)
        regions._check_size(program, findings)
        return regions

    def get(self, number: int) -> Region | None:
        """Return the region of that id, or None where it is not there or cannot be used."""
        return None if number in self.unusable else self.by_id.get(number)

    def _walk(self, findings: Findings) -> None:
        """Find what each region holds, inner ones first, without a call for each level."""
        open_: dict[int, None] = {}  # the regions from the outermost to the one that is looked at
        for start in self.by_id:
            pending = [(start, False)]
            while pending:
                number, left = pending.pop()
                if left:
                    del open_[number]
                    self._close(number, findings)
                elif number in open_:
                    self._cycle([*open_], number, findings)
                elif number not in self._size:
                    open_[number] = None
                    pending.append((number, True))
                    held = (n for n in regions_named(self.by_id[number].body) if n in self.by_id)
                    pending.extend((n, False) for n in held)

    def _close(self, number: int, findings: Findings) -> None:
        region = self.by_id[number]
        held = [n for n in regions_named(region.body) if n in self._size]
        self._size[number] = len(region.body) + sum(self._size[n] for n in held)
        self._depth[number] = 1 + max((self._depth[n] for n in held), default=0)
        if self._depth[number] == MAX_NESTING + 1:
            message = f"regions are nested deeper than {MAX_NESTING} levels in region {number}"
            hint = "keep what is nested in tensors of a carried state, or write it flat"
            findings.add(finding("E4125", message, region.location, (), hint, limit=MAX_NESTING))
        if self._depth[number] > MAX_NESTING:
            self.unusable.add(number)

    def _cycle(self, path: list[int], number: int, findings: Findings) -> None:
        cycle = path[path.index(number) :]
        if not self.unusable.isdisjoint(cycle):
            return
        self.unusable.update(cycle)
        named = [f"region {n}" for n in (*cycle[1:_NAMED], number)]
        way = ", which runs ".join(named)
        message = f"recursion: region {number} runs {'itself' if len(cycle) == 1 else way}"
        hint = "write a While or a Scan: a region holds what it runs, and cannot hold itself"
        where = self.by_id[number].location
        names = tuple(f"region {n}" for n in cycle)
        findings.add(finding("E4118", message, where, (), hint, cycle=names))

    def _check_size(self, program: Program, findings: Findings) -> None:
        size = sum(
            len(function.body) + sum(self._size.get(n, 0) for n in regions_named(function.body))
            for function in program.functions
        )
        if size > MAX_INSTRUCTIONS:
            message = f"the program has {size:,} instructions where each region stands where it is run"
            note = f"at most {MAX_INSTRUCTIONS:,} are compiled; regions that run one another twice double"
            hint = "give what differs to one loop as data, instead of one region for each case"
            findings.add(finding("E4304", message, None, (note,), hint, size=size, limit=MAX_INSTRUCTIONS))
            self.unusable.update(self.by_id)


def regions_named(body: Iterable[Instruction]) -> list[int]:
    """Return the ids of the regions that instructions name, as often as they do."""
    found: list[int] = []
    for instruction in body:
        operation = instruction.operation
        record = record_of(operation)
        if record is None or not record.regions or record.contract is None:
            continue
        numbers = (
            operation.fields.get(each.name)
            for each in record.contract.fields
            if each.kind is FieldKind.REGION
        )
        found += [number for number in numbers if isinstance(number, int)]
    return found


def _defined_twice(region: Region, findings: Findings) -> None:
    message = f"two regions have the id {region.id}"
    hint = "give every region an id of its own"
    findings.add(finding("E4302", message, region.location, (), hint, region=region.id))


def region_results(
    body: Sequence[Instruction], results: Sequence[ValueType]
) -> list[ValueRef | TupleElement] | None:
    """Return the values that a region gives, or None where it has too few instructions for its results."""
    last = body[-1] if body else None
    of_last = last.output.elements if last and isinstance(last.output, TupleType) else ()
    if last and results and len(of_last) == len(results) and last.output != results[-1]:
        return [TupleElement(last.id, index) for index in range(len(results))]
    if len(results) > len(body):
        return None
    return [ValueRef(instruction.id) for instruction in body[len(body) - len(results) :]]


def chosen_function(program: Program, name: str | None = None) -> Function:
    """Return the function called ``name``, by default the program's entry.

    Raises:
        VerificationError: E2002, there is none.
        TypeError: ``name`` is neither a string nor None.
    """
    wanted = program.entry if name is None else argument_checks.text(name, "function")
    for function in program.functions:
        if function.name == wanted:
            return function
    names = [function.name for function in program.functions]
    message = f"there is no function '{wanted}'{did_you_mean(wanted, names)}"
    help_, facts = f"the functions are: {', '.join(names[:10]) or 'none'}", MappingProxyType({"name": wanted})
    raise VerificationError(Diagnostic("E2002", message, help=help_, context=facts))


def restricted(program: Program, *names: str | None) -> Program:
    """Return what functions need of ``program``, by default its entry; the first of them is the entry then.

    Raises:
        VerificationError: As `chosen_function`.
        TypeError: As `chosen_function`.
    """
    functions = [chosen_function(program, name) for name in dict.fromkeys(names or (None,))]
    by_id = {region.id: region for region in reversed(program.regions)}
    pending = [region for function in functions for region in regions_named(function.body)]
    needed: set[int] = set()
    while pending:
        number = pending.pop()
        if number not in needed and number in by_id:
            needed.add(number)
            pending += regions_named(by_id[number].body)
    regions = tuple(region for region in program.regions if region.id in needed)
    return replace(program, functions=tuple(functions), regions=regions, entry=functions[0].name)
