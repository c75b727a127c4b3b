"""What became of a model: a result for each stage that it went through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: How a stage ends. `right` and `wrong` are differences from the framework, `refused` is an error of ours
#: with a code, `failed` all else that is not to happen, and `absent` what the framework itself cannot do, or
#: computes with results that are far from those in f64.
RIGHT, WRONG, REFUSED, FAILED, ABSENT = STATES = ("right", "wrong", "refused", "failed", "absent")
#: The stages that are judged, in their order.
STAGES = ("forward", "bf16", "gradients", "step")

#: Our call of a program whose weights are constants.
FROZEN = "frozen"
#: Others that take weights for constants, and lay them out when they compile.
_FREEZING = ("onnxruntime",)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage.

    Attributes:
        state: One of `STATES`.
        difference: The largest one of any result, relative to the largest element of that result.
        code: Of the error, where it is one of ours.
        reason: In words, where it is not right.
    """

    state: str
    difference: float | None = None
    code: str = ""
    reason: str = ""


@dataclass(slots=True)
class Outcome:
    """What became of a model.

    Attributes:
        name: Of the entry.
        family: Of the entry.
        parameters: How many numbers it has learnt, or would.
        stages: By name, those that were reached.
        compile_seconds: By what compiled: `ours`, and others.
        call_seconds: By number of threads, by what was called: `ours`, `eager`, and others.
        others: By number of threads, how many cores other processes used while calls were timed.
    """

    name: str
    family: str
    parameters: int | None = None
    stages: dict[str, Stage] = field(default_factory=dict)
    compile_seconds: dict[str, float] = field(default_factory=dict)
    call_seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)

    def take(self, message: Mapping[str, Any]) -> None:
        """Add what the process of the model says."""
        for key, value in message.items():
            if key == "stages":
                self.stages |= {name: Stage(**stage) for name, stage in value.items()}
            elif isinstance(value, dict):
                getattr(self, key).update(value)
            else:
                setattr(self, key, value)

    def ratio(self, threads: str) -> float | None:
        """Return the time of the quickest other call over ours; like is compared with like (`FROZEN`).

        Args:
            threads: The number of threads, as a key of ``call_seconds``; None is returned where it is none.
        """
        times = self.call_seconds.get(threads, {})
        ratios = [
            seconds / times[ours]
            for name, seconds in times.items()
            if name not in ("ours", FROZEN) and (ours := FROZEN if name in _FREEZING else "ours") in times
        ]
        return min(ratios, default=None)
