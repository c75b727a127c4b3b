"""What was found, as a page of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.models.outcome import ABSENT, STAGES, STATES
from benchmarks.models.tables import ENTRIES
from benchmarks.peers.page import geometric_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.models.outcome import Outcome, Stage

_WRITTEN = """\
Written by `python -m benchmarks.models --threads 1 2`, or in parts with `--only` and `--update`; do not
edit."""
_READING = """\
Models are built from their configurations, small ones, with random weights; biases, scales and statistics
of norms are moved from where they start, so that all of them count. `forward` compares all results with the
framework's in f32, `bf16` those of weights and arguments in bf16; `gradients` those of a loss over all
results by all weights, in training mode without dropout; `step` the weights and buffers after one step of
an optimiser (of jax inside of the compiled function, of torch outside). A difference is the largest one of
any result, relative to the largest element of that result. Up to 1e-4 is right; above, what is at most four
times as far from results in f64 as the framework is itself.

`calls` is the time of a call of the quickest of the others (torch eager, inductor and ONNX Runtime; jax)
over ours, by the number of threads: above 1, we are quicker. ONNX Runtime, which lays weights out when a
session is made, is compared with our program of frozen weights. `compile` is the seconds from the module to
the first result, ours (with `torch.export` or jax's tracing) and, behind the stroke, those of inductor or
jax; beside jax, both have compiled another program before."""
#: A ratio of calls below which a model is slow.
_LEVEL = 0.9
#: The compilers whose seconds stand beside ours.
_COMPILERS = ("inductor", "jax")
#: The cores that others may use before times are no longer compared.
_QUIET = 0.3


def page(found: Sequence[Outcome], machine: Sequence[str]) -> str:
    """Return the page.

    Args:
        found: What became of the models, sorted by name.
        machine: Facts about machine and frameworks, a line each.
    """
    return "\n".join(_lines(found, machine)) + "\n"


def _lines(found: Sequence[Outcome], machine: Sequence[str]) -> Iterator[str]:
    yield from ("# Models", "", _WRITTEN, "", _READING, "")
    yield from (f"- {fact}" for fact in machine)
    yield from ("", *_summary(found), "")
    counts = _counts(found)
    columns = ("model", "parameters", *STAGES, *(f"calls, {each}" for each in counts), "compile")
    head = f"| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}"
    for family in sorted({each.family for each in found}):
        yield from (f"## {family}", "", head)
        yield from (_row(each, counts) for each in found if each.family == family)
        yield ""
    yield from _reasons(found)


def _summary(found: Sequence[Outcome]) -> Iterator[str]:
    yield f"{len(found)} of the {len(ENTRIES)} models of the corpus:"
    yield ""
    yield f"| stage | {' | '.join(STATES)} | models |"
    yield f"|---|{'---:|' * (len(STATES) + 1)}"
    for stage in STAGES:
        states = [each.stages[stage].state for each in found if stage in each.stages]
        counts = [str(states.count(state)) for state in STATES]
        yield f"| {stage} | {' | '.join(counts)} | {len(states)} |"
    yield ""
    for count in _counts(found):
        ratios = [ratio for each in found if (ratio := each.ratio(count)) is not None]
        slow = sum(ratio < _LEVEL for ratio in ratios)
        yield (
            f"Geometric mean of calls on {_threads(count)}: {geometric_mean(ratios):.2f}, "
            f"of {len(ratios)} models; {slow} of them are below {_LEVEL}."
        )
        yield ""
    for name in _COMPILERS:
        seconds = [each.compile_seconds for each in found if name in each.compile_seconds]
        if seconds:
            mean = geometric_mean([each[name] / each["ours"] for each in seconds])
            yield f"Seconds of compilation, {name}'s over ours: {mean:.1f}, of {len(seconds)} models."
    for count in _counts(found):
        loud = sum(each.others.get(count, 0.0) > _QUIET for each in found)
        if loud:
            yield ""
            yield f"Of {loud} models the times on {_threads(count)} are rough: other processes ran meanwhile."


def _counts(found: Sequence[Outcome]) -> list[str]:
    """Return the numbers of threads on which calls were compared."""
    counts = {count for each in found for count in each.call_seconds if each.ratio(count) is not None}
    return sorted(counts, key=int)


def _threads(count: str) -> str:
    return f"{count} thread{'s' if count != '1' else ''}"


def _row(outcome: Outcome, counts: Sequence[str]) -> str:
    seconds, ratios = outcome.compile_seconds, [outcome.ratio(count) for count in counts]
    cells = [
        outcome.name,
        "" if outcome.parameters is None else f"{outcome.parameters:,}",
        *(_stage(outcome.stages.get(name)) for name in STAGES),
        *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
        " / ".join(f"{seconds[name]:.1f}" for name in ("ours", *_COMPILERS) if name in seconds),
    ]
    return f"| {' | '.join(cells)} |"


def _stage(stage: Stage | None) -> str:
    if stage is None:
        return ""
    if stage.state == "right" and stage.difference is not None:
        return f"{stage.difference:.0e}"
    return f"**{stage.state}**" + (f" {stage.code}" if stage.code else "")


def _reasons(found: Sequence[Outcome]) -> Iterator[str]:
    rows = [
        f"- {outcome.name}, {name}: {stage.state}{f' ({stage.code})' if stage.code else ''}, {_words(stage)}"
        for outcome in found
        for name, stage in outcome.stages.items()
        if stage.state != "right"
    ]
    if rows:
        yield from (
            "## Not right, and why",
            "",
            f"`{ABSENT}` is what the framework itself cannot do here.",
            "",
        )
        yield from rows


def _words(stage: Stage) -> str:
    """Return a reason in one line, without what a page would take for markup."""
    reason = " ".join(stage.reason.split())
    told = f"{stage.difference:.1e}; " if stage.difference is not None else ""
    return told + (reason if len(reason) <= 300 else f"{reason[:300]}...").replace("|", "/").replace(
        "<", "&lt;"
    )
