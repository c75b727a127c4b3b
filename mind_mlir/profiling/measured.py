"""Measuring a profile: the code with stamps is compiled beside that without them, and both are called."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mind_mlir.collectives.world import current_world, ranks_here
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.mesh import mesh_of
from mind_mlir.lowering.profiling.stamps import Stamps
from mind_mlir.ops.printing import silently
from mind_mlir.profiling.limits import machine_limits
from mind_mlir.profiling.profile import profile_of
from mind_mlir.profiling.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.profiling.profile import TimeProfile
    from mind_mlir.runtime.executable import Executable

#: How long calls are measured, twice.
SECONDS = 0.3
#: How many calls are measured at least and at most.
_LEAST, _MOST = 3, 1_000
_RECORDS = 1 << 20
#: Where stamps make a call slower by more than this, loops are stamped as wholes.
_SLOWER = 1.03


@silently()
def measured(executable: Executable, call: Callable[[Executable], object]) -> TimeProfile:
    """Return the profile of calls of a function, which print nothing meanwhile.

    Args:
        executable: The function, compiled as it is without stamps.
        call: Calls what it is given, such an executable.
    """
    _refuse_several_ranks(executable)
    recording = Recording.of(_RECORDS)
    stamps = Stamps(recording.address)
    stamped = executable._stamped(stamps)
    call(executable)  # what it prints, it prints once
    with silently():
        return _of_calls(executable, stamped, recording, stamps, call)


def _refuse_several_ranks(executable: Executable) -> None:
    """Refuse what several ranks of this process run by turns: each time would be of them all."""
    text = mesh_text(executable.module)
    if text and len(ranks := ranks_here(mesh_of(text), current_world())) > 1:
        message = f"a profile is of one rank, and this process runs {len(ranks)} ranks of the mesh {text}"
        help_ = "start as many processes as the mesh has ranks, or profile the program without collectives"
        raise UnsupportedError(Diagnostic("E7001", message, help=help_))


def _of_calls(
    executable: Executable,
    stamped: Executable,
    recording: Recording,
    stamps: Stamps,
    call: Callable[[Executable], object],
) -> TimeProfile:
    call(stamped)
    plain, slower = _by_turns(lambda: call(executable), lambda: call(stamped))
    if slower > _SLOWER * plain:
        whole = Stamps(recording.address, whole=True)
        other = executable._stamped(whole)
        if len(whole.rows) != len(stamps.rows):
            stamped, stamps = other, whole
            call(stamped)
    calls = max(_LEAST, min(_MOST, int(SECONDS / max(plain, 1e-9))))
    spans, taken, is_whole = recording.run(lambda: call(stamped), calls)
    return profile_of(stamps.rows, stamps.pieces, spans, taken, plain, machine_limits(), is_whole=is_whole)


def _by_turns(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of calls of either: the means of the quicker halves."""
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + SECONDS
    while len(times[0]) < _LEAST or (time.perf_counter() < end and len(times[0]) < _MOST):
        for call, taken in zip((one, other), times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return _quicker(times[0]), _quicker(times[1])


def _quicker(times: list[float]) -> float:
    half = sorted(times)[: max(1, len(times) // 2)]
    return sum(half) / len(half)
