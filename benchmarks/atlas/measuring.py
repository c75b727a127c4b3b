"""One point of the atlas measured: its time against the machine's limit, compilation, and scratch memory."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import mind_mlir
from mind_mlir import MindError
from mind_mlir.ir.interface import interface_of
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.lowering.profiling.tags import Tags
from mind_mlir.ops.gather_scatter import SCATTER_ATTRIBUTE
from mind_mlir.ops.row_loops import ROWS_ATTRIBUTE
from mind_mlir.profiling.limits import machine_limits
from mind_mlir.target import named_target
from mind_mlir.tools.cli.inputs import InputSpecs, make_inputs

if TYPE_CHECKING:
    from benchmarks.atlas.points import Point
    from mind_mlir import Executable
    from mind_mlir.lowering.profiling.rows import Work

_LEAST, _MOST = 3, 2_000
_MOST_OPERATIONS = 10**11


@dataclass(frozen=True, slots=True)
class Found:
    """What was found at a point.

    Attributes:
        name: The operation, or the pair.
        dtype: The dtype of its numbers.
        size: The class of its size.
        shapes: Its operands.
        is_pair: Whether it is of two operations.
        microseconds: How long a call takes, at best.
        limit: The least microseconds that the machine would take for what has to be moved and done.
        bound: What limits it then.
        compile_ms: How long it took to compile.
        scratch: Bytes of scratch memory over those of arguments and results.
        by_value: Whether values say where elements lie: of sorts and indices only the bytes are counted.
        refused: Why there is no code, where there is none.
    """

    name: str
    dtype: str
    size: str
    shapes: str
    is_pair: bool
    microseconds: float = 0.0
    limit: float = 0.0
    bound: str = ""
    compile_ms: float = 0.0
    scratch: float = 0.0
    by_value: bool = False
    refused: str = ""

    @property
    def fraction(self) -> float:
        """Return how much of the limit is reached, but for what a call takes by itself."""
        return self.limit / max(self.microseconds - CALL, self.limit * 1e-3, 1e-3)


#: Microseconds that a call takes whatever is called.
CALL = 0.5


def measured(point: Point, seconds: float) -> Found:
    """Return what is found at ``point``, calling it for so many seconds."""
    head = (point.name, point.dtype, point.size, point.shapes, point.is_pair)
    try:
        work, by_value = work_of(point)
        if work.operations > _MOST_OPERATIONS:
            return Found(*head, refused=f"{work.operations:.0e} operations take too long for this")
        compiled, compile_ms = _compiled(point)
        (function,) = (each for each in point.module.functions)
        arguments = make_inputs(point.module, interface_of(function), InputSpecs.parse(("random",), None), 1)
        bound = compiled.bind(**arguments)
        best, calls, end = math.inf, 0, time.perf_counter() + seconds
        while calls < _LEAST or (time.perf_counter() < end and calls < _MOST):
            before = time.perf_counter()
            bound()
            best, calls = min(best, time.perf_counter() - before), calls + 1
    except MindError as error:
        return Found(*head, refused=str(error).partition("\n")[0])
    limits = machine_limits()
    held = sum(each.nbytes for each in (*arguments.values(), *compiled(**arguments)))
    work = work if point.reads_part else replace(work, bytes=held)
    scratch = int(re.findall(r"mind.scratch_bytes = (\d+)", compiled.as_text("bufferized"))[0])
    return Found(
        *head,
        microseconds=best * 1e6,
        limit=limits.seconds(work, limits.threads) * 1e6,
        bound=limits.binds(work),
        compile_ms=compile_ms,
        scratch=scratch / max(held, 1),
        by_value=by_value,
    )


def _compiled(point: Point) -> tuple[Executable, float]:
    """Return the executable, and the milliseconds of a compilation in a process that has made such a one."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        compiled = mind_mlir.compile(point.module, cache=False)
        times.append(time.perf_counter() - start)
    return compiled, min(times) * 1e3


def work_of(point: Point) -> tuple[Work, bool]:
    """Return what the program of a point has to move and to do, and whether values say where elements lie."""
    lowering, tags = Lowering(named_target()), Tags()
    lowering.run(point.module, "linalg")
    module = lowering.mlir
    assert module is not None, "there is a module behind that stage"
    with module.context:
        tags.tag(module)
        work, text = tags.work(tags.all), str(module)
    by_value = any(mark in text for mark in ("tensor.extract ", ROWS_ATTRIBUTE, SCATTER_ATTRIBUTE))
    return work, by_value
