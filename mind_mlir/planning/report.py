"""`ProgramPlan`: what a program sends, holds and takes on machines that are stated, and its forms."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.planning.network import Network
    from mind_mlir.profiling.limits import Limits


@dataclass(frozen=True, slots=True)
class PlannedCollective:
    """A collective of a program.

    Attributes:
        name: The operation, and how it joins elements if it does.
        axes: The axes along which the ranks of a group differ.
        operand: The type of the operand of each rank.
        place: File, line and column, as text; empty where that is not known.
        times: How often it runs in a call: so often for each of what ``given`` lists.
        given: What is known only when the program runs: turns of loops, branches.
        early: Whether it is started as soon as its operand is known, and waited for where its result is read.
        least: The bytes that the process sends that sends least, all times together.
        most: The same of the one that sends most.
        total: The same of all processes together.
        messages: How many messages a process sends at most, all times together.
        seconds: How long it takes, all times together.
    """

    name: str
    axes: str
    operand: str
    place: str
    times: int
    given: tuple[str, ...]
    early: bool
    least: int
    most: int
    total: int
    messages: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PlannedMemory:
    """The bytes of memory that a process needs for a call, at most.

    Attributes:
        inputs: The arguments, which all ranks of the process read.
        outputs: The results of all of them.
        scratch: The temporary values of all of them, as `mind_mlir.plan_buffers` places them.
        messages: What is sent and received in the collective that moves most, and in all that are started
            early, which may go on at the same time, with copies of their operands, and their results.
    """

    inputs: int
    outputs: int
    scratch: int
    messages: int

    @property
    def total(self) -> int:
        """Return all of it."""
        return self.inputs + self.outputs + self.scratch + self.messages


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """What a call of a program sends, holds and takes.

    Attributes:
        function: The function.
        mesh: Its mesh; empty where it has no collectives.
        processes: How many processes run it.
        ranks: How many ranks each of them runs, one after the other.
        threads: How many threads each of them computes with.
        network: What connects them; None where they share this machine.
        collectives: The collectives, in the order of the program.
        least: The bytes that the process sends that sends least.
        most: The same of the one that sends most.
        total: The same of all processes together.
        memory: The memory of each process.
        compute: The seconds that a process computes at least: as long as this machine takes to move and to do
            what the program implies.
        exchange: The seconds of the collectives.
        limits: What this machine does at most, as it was measured.
    """

    function: str
    mesh: str
    processes: int
    ranks: int
    threads: int
    network: Network | None
    collectives: tuple[PlannedCollective, ...]
    least: int
    most: int
    total: int
    memory: PlannedMemory
    compute: float
    exchange: float
    limits: Limits

    @property
    def seconds(self) -> float:
        """Return how long a call takes: computing and collectives, one after the other."""
        return self.compute + self.exchange

    @property
    def given(self) -> tuple[str, ...]:
        """Return the turns and branches that are counted once, since how often they run is not known."""
        return tuple(dict.fromkeys(each for row in self.collectives for each in row.given))

    def __str__(self) -> str:
        from mind_mlir.planning.tables import table  # noqa: PLC0415 -- few who plan print

        return table(self)

    def to_json(self) -> str:
        """Return the plan as JSON; sizes are in bytes, times in seconds."""
        found = asdict(self)
        found["memory"]["total"] = self.memory.total
        found |= {"seconds": self.seconds, "given": self.given}
        return json.dumps(found, indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class PlannedLayouts:
    """The plans of a program for the sizes that the axes of its mesh may have on so many processes.

    Attributes:
        plans: The plans, the best one first; those that do not fit into the memory come last.
        refused: Why others cannot be planned, by their meshes.
        memory: How many bytes of memory each process has, if that was said.
    """

    plans: tuple[ProgramPlan, ...]
    refused: Mapping[str, str]
    memory: int | None

    def fits(self, plan: ProgramPlan) -> bool:
        """Return whether a process has the memory for a plan."""
        return self.memory is None or plan.memory.total <= self.memory

    @property
    def best(self) -> ProgramPlan | None:
        """Return the plan that takes least, of those that fit into the memory; None where none does."""
        return self.plans[0] if self.fits(self.plans[0]) else None

    def __str__(self) -> str:
        from mind_mlir.planning.tables import layouts_table  # noqa: PLC0415 -- few who plan print

        return layouts_table(self)

    def to_json(self) -> str:
        """Return all plans as JSON, the best one first; those of `fits` say so."""
        plans = [{**json.loads(each.to_json()), "fits": self.fits(each)} for each in self.plans]
        found = {"plans": plans, "refused": dict(self.refused), "memory": self.memory}
        return json.dumps(found, indent=2) + "\n"
