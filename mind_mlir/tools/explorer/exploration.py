"""What the page of a program shows: its texts at each stage, and which operation each line belongs to."""

from __future__ import annotations

from mind_mlir.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SourceOperation:
    """An operation of the program as it was written, which lines of all texts are traced to.

    Attributes:
        opcode: Its name in the records.
        name: What it computes, as the source's text calls it (`%3`, `hidden`).
        type: The types of its results, as our texts write them.
        file: The file that it stands in, as the user named it; empty where it is in none.
        line: Its line there, from 1; 0 where it has none.
        inputs: The numbers of the operations whose results it reads, in order.
    """

    opcode: str
    name: str
    type: str
    file: str
    line: int
    inputs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pane:
    """The program at one stage.

    Attributes:
        stage: The stage's name, as `--emit` has it; `source` for what the user wrote.
        title: What the pane is called.
        language: What the text is written in: `mind`, `core`, `ptir`, `python`, `mlir`, `asm` or `text`.
        lines: Its text.
        marks: For each line, the numbers of the operations that it is for, ascending.
        explanation: A sentence that says what the stage does.
        changes: What passes did on the way here, a sentence each, with the identity that they used.
        seconds: The time that making it took; None where that is unknown.
        first: The number of its first line, in its file.
    """

    stage: str
    title: str
    language: str
    lines: tuple[str, ...]
    marks: tuple[tuple[int, ...], ...]
    explanation: str = ""
    changes: tuple[str, ...] = ()
    seconds: float | None = None
    first: int = 1


@dataclass(frozen=True, slots=True)
class ArenaBuffer:
    """A tensor's place in the arena, and when it is alive.

    Attributes:
        name: What lies there.
        offset: Its first byte in the arena.
        size: Its bytes.
        first: The step of the plan that writes it first.
        last: The last step that reads it.
        operations: The numbers of the operations that it belongs to.
    """

    name: str
    offset: int
    size: int
    first: int
    last: int
    operations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """A stretch of a profile's timeline.

    Attributes:
        thread: The number of the thread, from 0.
        start: Its beginning in microseconds from the call's.
        end: Its end, likewise.
        name: What ran.
        operations: The numbers of the operations that it computed.
    """

    thread: int
    start: float
    end: float
    name: str
    operations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Exploration:
    """All that the page of one program and one target shows.

    Attributes:
        title: The program's name.
        target: The processor that the code is for, in words.
        operations: The operations of the program as written; their numbers are their places here.
        panes: Its stages, in the order of the compiler.
        memory: The plan of memory, with the arena's size as its second part.
        timeline: A profile's stretches; empty where none was taken.
        traced: How many machine instructions are traced to operations, of how many.
    """

    title: str
    target: str
    operations: tuple[SourceOperation, ...]
    panes: tuple[Pane, ...]
    memory: tuple[tuple[ArenaBuffer, ...], int] = ((), 0)
    timeline: tuple[TimelineSpan, ...] = ()
    traced: tuple[int, int] = (0, 0)
