"""The regions of a program: which there are, that none holds itself, how large it is with what it holds.

A module has a region where it is run. So a region that several instructions name is copied, with what it
holds, and its size counts as often as it is run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mind_mlir.builders.type_rules import finding
from mind_mlir.ir.regions import MAX_NESTING
from mind_mlir.languages.ptir.fields import records
from mind_mlir.ops.contract import FieldKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.languages.ptir.program import Instruction, Program, Region

#: Instructions of a program with its regions copied to where they are run.
MAX_INSTRUCTIONS = 4_000_000
#: Regions of a cycle that a message names.
_NAMED = 8


@dataclass(slots=True)
class Regions:
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
    def of(cls, program: Program, findings: Findings) -> Regions:
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
        record = records().get((operation.name, operation.variant))
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
