"""What a framework has to say to be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.peers.draws import Array
    from benchmarks.peers.workloads import Workload


class NotWrittenError(Exception):
    """A framework has no implementation of a workload; the message says why."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workload that is ready to be called.

    Attributes:
        call: Computes it once and returns when its outputs are there, in memory that the framework allocates
            as it usually does.
        outputs: Turns what ``call`` returned into arrays, in the order of the reference's.
        compile_seconds: What compiling took; None where the first call compiles, or nothing is compiled.
        compiles_at_first_call: Whether the first call compiles.
        note: What a reader should know about this implementation.
    """

    call: Callable[[], Any]
    outputs: Callable[[Any], list[Array]]
    compile_seconds: float | None = None
    compiles_at_first_call: bool = False
    note: str = ""


class Peer(Protocol):
    """A framework, imported, warm, and set to a number of threads.

    Attributes:
        versions: Its version and those of what it computes with, by name.
    """

    versions: Mapping[str, str]

    def prepare(self, workload: Workload) -> Prepared:
        """Return ``workload`` with its inputs in the framework's own tensors.

        Raises:
            NotWrittenError: There is no implementation of it.
        """


def as_arrays(result: Any) -> list[Array]:
    """Return what a function of arrays returned as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]
