"""The C interface of a library of compiled code: names, types and numbers that its header promises.

The header and the code of the entry points are both made of what stands here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.conversion.names import RESERVED
from mind_mlir.languages.mind.elaboration.wording import SUFFIX, reworded
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics.checks import Check
    from mind_mlir.image.entry import Entry
    from mind_mlir.ir.types import TensorType


#: What an entry point returns: statuses that every library has, and the first of those of its checks.
OK, NULL_POINTER, MISALIGNED_POINTER, UNSUPPORTED_PROCESSOR = range(4)
FIRST_CHECK = 16
#: What the names of the macros of every library end in.
STATUS_MACROS = {
    OK: "OK",
    NULL_POINTER: "NULL_POINTER",
    MISALIGNED_POINTER: "MISALIGNED_POINTER",
    UNSUPPORTED_PROCESSOR: "UNSUPPORTED_PROCESSOR",
    FIRST_CHECK: "CHECK_FAILED",
}
MACROS = (*STATUS_MACROS.values(), "SCRATCH_ALIGNMENT", "H")
#: C99 promises that a function may have so many parameters; one of more buffers takes a table of them.
MOST_PARAMETERS = 127

#: What no parameter is called: keywords and types of the header, and macros of what programs often include.
_NAMES = """
I NULL NAN INFINITY EOF complex imaginary assert errno stdin stdout stderr linux unix i386 major minor makedev
min max near far small buffers scratch status threads
"""
_TAKEN = RESERVED.union(
    _NAMES.split(), (f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))
)
_FOREIGN = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class CParameter:
    """A buffer that an entry point takes.

    Attributes:
        name: What C calls it.
        label: What the program calls it.
        type: Its type.
        written: Whether it is an output.
    """

    name: str
    label: str
    type: TensorType
    written: bool

    @property
    def c_type(self) -> str:
        """Return the type in C of what the buffer is an array of."""
        return self.type.dtype.c_type

    @property
    def length(self) -> int:
        """Return how many of these there are: two for a complex element."""
        return self.type.element_count * (2 if self.type.dtype.is_complex else 1)

    @property
    def alignment(self) -> int:
        """Return what its address is a multiple of, in bytes."""
        return self.type.dtype.numpy.alignment

    @property
    def declaration(self) -> str:
        """Return the parameter as a prototype has it."""
        return f"{'' if self.written else 'const '}{self.c_type} *{self.name}"


@dataclass(frozen=True, slots=True)
class CFunction:
    """An entry point.

    Attributes:
        name: What C calls it.
        macro: What the names of its macros begin with.
        entry: What it calls.
        buffers: What it takes, inputs first.
        first_status: The status of its first check; those of the others follow.
    """

    name: str
    macro: str
    entry: Entry
    buffers: tuple[CParameter, ...]
    first_status: int

    @property
    def takes_table(self) -> bool:
        """Return whether it takes a table of its buffers instead of each."""
        return len(self.buffers) + 1 > MOST_PARAMETERS

    @property
    def statuses(self) -> Iterator[tuple[int, Check]]:
        """Return the statuses of its checks."""
        return enumerate(self.entry.checks, self.first_status)


@dataclass(frozen=True, slots=True)
class CLibrary:
    """A library.

    Attributes:
        name: What its names begin with.
        macro: What its macros begin with.
        functions: Its entry points.
        message: The function that says what a status means.
        set_threads: The function that sets the number of threads; None where no loop is shared by threads.
    """

    name: str
    macro: str
    functions: tuple[CFunction, ...]
    message: str
    set_threads: str | None

    @property
    def statuses(self) -> Iterator[tuple[int, Check]]:
        """Return the statuses of all checks, in order."""
        return (each for function in self.functions for each in function.statuses)

    @property
    def names(self) -> tuple[str, ...]:
        """Return all that it defines."""
        threads = () if self.set_threads is None else (self.set_threads,)
        return (*(function.name for function in self.functions), self.message, *threads)


def library_name(name: str) -> str:
    """Return what a library is called in C: an identifier as like ``name`` as can be.

    Raises:
        TypeError: ``name`` is no string.
    """
    found = _FOREIGN.sub("_", argument_checks.text(name, "name")).strip("_")
    return found if found[:1].isalpha() else f"lib{found}"


def c_library(
    entries: Sequence[Entry], library: str, *, threads: bool, avoiding: Iterable[str] = ()
) -> CLibrary:
    """Return how C sees ``entries``, as a pure function of all arguments.

    Args:
        entries: The functions.
        library: The name of the library, as `library_name` returns it.
        threads: Whether loops are shared by threads.
        avoiding: Names of other functions that the code calls.
    """
    message, set_threads = f"{library}_message", f"{library}_set_num_threads"
    macro = library.upper()
    names = _TakenNames((message, set_threads, *(f"{macro}_{each}" for each in MACROS), *avoiding))
    macros = _TakenNames(())
    functions = []
    status = FIRST_CHECK
    for entry in entries:
        name = names.free(f"{library}_{_FOREIGN.sub('_', entry.name)}")
        functions.append(CFunction(name, macros.free(name.upper()), entry, _buffers(entry), status))
        status += len(entry.checks)
    return CLibrary(library, macro, tuple(functions), message, set_threads if threads else None)


def _buffers(entry: Entry) -> tuple[CParameter, ...]:
    names = _TakenNames(_TAKEN)
    inputs = [
        CParameter(names.free(_spelled(each.name, "input", number)), each.name, each.type, written=False)
        for number, each in enumerate(entry.parameters)
    ]
    outputs = [
        CParameter(names.free(_spelled(each.label, "output", number)), each.label, each.type, written=True)
        for number, each in enumerate(entry.outputs)
    ]
    return (*inputs, *outputs)


def _spelled(label: str, kind: str, number: int) -> str:
    """Return a name for a buffer: the program's own, unless that begins with no letter, as ``%3`` does."""
    name = _FOREIGN.sub("_", label).strip("_")
    return name if name[:1].isalpha() else f"{kind}_{number}"


class _TakenNames:
    """Names that have been given: nothing else gets one of them."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def free(self, wanted: str) -> str:
        """Return a name that is not taken yet, as like ``wanted`` as can be."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


#: What is said of a number that no entry point returns.
UNKNOWN = "this is no status of this library"


def status_messages(library: CLibrary, needs: str) -> Mapping[int, str]:
    """Return what there is to say about each status of ``library``, in order of their numbers.

    Args:
        library: The library.
        needs: What the processor has to have, in words; nothing where any has it.
    """
    needed = f": {needs}" if needs else ""
    found = {
        OK: "success",
        NULL_POINTER: "a pointer is null",
        MISALIGNED_POINTER: "a pointer is not a multiple of the alignment that the header says",
        UNSUPPORTED_PROCESSOR: f"this processor or operating system lacks what the code needs{needed}",
    }
    for function in library.functions:
        found |= {status: f"{function.name}: {check_message(check)}" for status, check in function.statuses}
    return found


def check_message(check: Check) -> str:
    """Return what there is to say where ``check`` fails: its code, where it stands, the operation, and why.

    That is in the words of the surface language where a program of that has the check.
    """
    example = check.finding(check.allowed[1] + 1)
    finding = replace(example, message=f"{check.opcode} {check.label}: {check.failure}")
    place = ""
    if check.place is not None:
        file, line, column = check.place
        place = f"{file}:{line}:{column}: "
        if file.endswith(SUFFIX):
            (finding,) = reworded([finding])
    advice = f"; {finding.help}" if finding.help else ""
    return f"{finding.code}: {place}{finding.message}{advice}".replace("\n", " ").replace("\0", " ")
