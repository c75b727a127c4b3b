"""Plans as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.conversion.buffers.plan import counted_bytes
from mind_mlir.planning.exchanges import OVERHEAD
from mind_mlir.profiling.tables import aligned, limits_text, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.planning.report import PlannedCollective, PlannedLayouts, ProgramPlan

#: The columns, and whether they are aligned to the right.
_COLUMNS = {
    "collective": False,
    "along": False,
    "operand": False,
    "runs": True,
    "a process sends": True,
    "all send": True,
    "messages": True,
    "time": True,
    "place": False,
}


def table(plan: ProgramPlan) -> str:
    """Return the collectives of a plan in columns, and below them the sums."""
    lines = [*_head(plan)]
    if plan.collectives:
        rows = [list(_COLUMNS), *map(_cells, plan.collectives)]
        lines += ["", *aligned(rows, _COLUMNS)]
    lines += ["", *_summary(plan), "", *_grounds(plan)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


#: The same of layouts.
_LAYOUT_COLUMNS = {
    "mesh": False,
    "time": True,
    "compute": True,
    "collectives": True,
    "a process sends": True,
    "memory of a process": True,
    "": False,
}


def layouts_table(layouts: PlannedLayouts) -> str:
    """Return the plans of several meshes in columns, and below them the best one."""
    rows = [list(_LAYOUT_COLUMNS)]
    rows += [[*_layout_cells(plan), "" if layouts.fits(plan) else "too much"] for plan in layouts.plans]
    lines = aligned(rows, _LAYOUT_COLUMNS)
    lines += [f"{mesh} cannot be: {why}" for mesh, why in layouts.refused.items()]
    best = layouts.best
    if best is None:
        return "\n".join([*lines, "", f"none fits into {counted_bytes(layouts.memory or 0)} bytes", ""])
    return "\n".join([*(line.rstrip() for line in lines), "", "the best of them:", "", table(best)])


def _layout_cells(plan: ProgramPlan) -> list[str]:
    times = [time_text(each) for each in (plan.seconds, plan.compute, plan.exchange)]
    return [plan.mesh, *times, _between(plan.least, plan.most), counted_bytes(plan.memory.total)]


def _head(plan: ProgramPlan) -> Iterator[str]:
    threads = f"{plan.threads} thread{'s' * (plan.threads > 1)}"
    if not plan.mesh:
        yield f"@{plan.function}: no collectives, so 1 process, of {threads}"
        return
    processes = f"{plan.processes} process{'es' * (plan.processes > 1)} of {threads}"
    ranks = f"{plan.ranks} rank{'s' * (plan.ranks > 1)} each"
    hosts = "" if plan.network is None else f", {plan.network.per_host} on a host"
    yield f"@{plan.function}: mesh {plan.mesh} on {processes}, {ranks}{hosts}"


def _cells(row: PlannedCollective) -> list[str]:
    return [
        f"{row.name}, early" if row.early else row.name,
        row.axes,
        row.operand,
        f"{row.times:,}{'*' * bool(row.given)}",
        _between(row.least, row.most),
        counted_bytes(row.total),
        f"{row.messages:,}",
        time_text(row.seconds),
        row.place,
    ]


def _between(least: int, most: int) -> str:
    shown = counted_bytes(most)
    return shown if least == most else f"{counted_bytes(least)} to {shown}"


def _summary(plan: ProgramPlan) -> Iterator[str]:
    if plan.collectives:
        own = _between(plan.least, plan.most)
        yield f"sent in a call: {own} bytes by a process, {counted_bytes(plan.total)} by all"
    for each in plan.given:
        yield f"  * counted once: a {each}"
    memory = plan.memory
    parts = ["inputs", "outputs", "scratch", *(["messages"] if plan.collectives else [])]
    shown = ", ".join(f"{name} {counted_bytes(getattr(memory, name))}" for name in parts)
    yield f"memory of a process: {counted_bytes(memory.total)} bytes: {shown}"
    together = f"compute {time_text(plan.compute)} at least"
    if plan.collectives:
        together += f", collectives {time_text(plan.exchange)}"
    yield f"time of a call: {time_text(plan.seconds)}: {together}"


def _grounds(plan: ProgramPlan) -> Iterator[str]:
    yield f"measured: {limits_text(plan.limits)}"
    network, local = plan.network, "a quarter of what memory moves"
    if plan.collectives and network is not None:
        stated = f"{_rate(network.bandwidth)} between hosts, {time_text(network.latency)} a message"
        if network.local_bandwidth is not None:
            local = ""
            stated += f"; {_rate(network.local_bandwidth)} within one"
        if network.local_latency:
            stated += f"; {time_text(network.local_latency)} a message within one"
        yield f"stated: {stated}"
    yield "assumed: each process computes as this machine does at most"
    if plan.collectives:
        if local:
            yield f"assumed: processes of one host send one another {local}"
        yield f"assumed: a collective takes the runtime {time_text(OVERHEAD)} besides what it sends"
        yield "assumed: nobody computes while a collective is under way"


def _rate(rate: float) -> str:
    return f"{rate / 1e9:.4g} GB/s"
