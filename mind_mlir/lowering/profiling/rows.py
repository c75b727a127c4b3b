"""The rows of a profile: what a nest of compiled code computes, and how much it has to move and to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics.checks import Place


@dataclass(frozen=True, slots=True)
class Work:
    """What has to be done whatever the schedule is.

    Attributes:
        bytes: What is read from tensors, and written to those that are read elsewhere.
        operations: Arithmetic of elements; a multiply-add counts as two.
        element: The type of the elements that most of it is with, as MLIR spells it.
        is_product: Whether it is of matrix products mostly, whose factors are read again and again.
    """

    bytes: int
    operations: int
    element: str = ""
    is_product: bool = False


@dataclass(frozen=True, slots=True)
class Computes:
    """One operation of the program that a nest computes.

    Attributes:
        label: What the program calls its value.
        opcode: What it calls the operation.
        place: File, line and column, where these are known.
    """

    label: str
    opcode: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class StampedRow:
    """A nest as `--emit=schedule` numbers them, or what is none: a copy, a call.

    Attributes:
        numbers: The numbers of the nests that are one loop; empty for what is none.
        kind: The kind of its schedule, or what it is.
        extents: The extents of its loops.
        computes: The operations.
        work: What it has to move and to do in one execution.
    """

    numbers: tuple[int, ...]
    kind: str
    extents: tuple[int, ...]
    computes: tuple[Computes, ...]
    work: Work = Work(0, 0)
