"""Times of calls, by turns, and what else the machine was doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers.sampling import sample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ROUNDS, _SECONDS = 2, 0.1


def by_turns(calls: Mapping[str, Callable[[], Any]], threads: int) -> dict[str, Any]:
    """Return the times of all calls, each that of its quietest round, as what an `Outcome` takes.

    Args:
        calls: What is called, by name.
        threads: On how many threads each of them runs.
    """
    seconds: dict[str, float] = {}
    others = 0.0
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            found = sample(call, _SECONDS)
            seconds[name] = min(found.seconds, seconds.get(name, found.seconds))
            others = max(others, found.others)
    return {"call_seconds": {str(threads): seconds}, "others": {str(threads): others}}
