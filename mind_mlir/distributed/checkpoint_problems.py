"""Errors about checkpoints (E6507, E6508, E7101), and how all processes come to raise the same one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import ArtefactError, Diagnostic
from mind_mlir.diagnostics.display import clipped, display_path
from mind_mlir.outputs.errors import OutputError
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.collectives.world import World
    from mind_mlir.diagnostics import MindError

DAMAGED, UNLIKE = "E6507", "E6508"
_HELP = {
    DAMAGED: "load another step, with step=; latest_step(directory) says which is the last one",
    UNLIKE: "give a tree of the same names, shapes and dtypes, or none: then all comes as it was saved",
}


class CheckpointProblem(Exception):  # noqa: N818 -- it becomes a diagnostic
    """A checkpoint cannot be read; the message says why.

    Attributes:
        code: The code of the diagnostic.
    """

    def __init__(self, reason: str, code: str = DAMAGED) -> None:
        super().__init__(reason)
        self.code = code


def unreadable(path: str, problem: CheckpointProblem) -> ArtefactError:
    """Return the error about a checkpoint that cannot be read."""
    shown = display_path(path)
    message = f"cannot read the checkpoint '{shown}': {clipped(str(problem))}"
    facts = FrozenDict({"path": shown, "reason": str(problem)})
    return ArtefactError(Diagnostic(problem.code, message, help=_HELP[problem.code], context=facts))


def together(world: World, what: str, path: str, action: Callable[[], Any]) -> list[Any]:
    """Return what ``action``, which makes a value of JSON, has made in each process.

    Args:
        world: The processes.
        what: What they do together, for messages.
        path: What it is about.
        action: What each does.

    Raises:
        MindError: It failed in one of them: then all of them raise what the first of these met.
    """
    said: dict[str, Any] = {}
    try:
        said["made"] = action()
    except OSError as error:
        said |= {
            "path": str(error.filename or path),
            "errno": error.errno,
            "why": error.strerror or str(error),
        }
    except CheckpointProblem as problem:
        said |= {"path": path, "code": problem.code, "why": str(problem)}
    found = [json.loads(each) for each in world.gathered(json.dumps(said).encode(), what)]
    for process, each in enumerate(found):
        if "why" in each:
            raise _told(each, "" if process == world.rank else f" (in process {process})")
    return [each["made"] for each in found]


def _told(said: dict[str, Any], where: str) -> MindError:
    if "code" in said:
        return unreadable(said["path"], CheckpointProblem(said["why"] + where, said["code"]))
    return OutputError(said["path"], OSError(said["errno"], said["why"] + where))
