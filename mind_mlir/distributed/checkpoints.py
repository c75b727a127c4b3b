"""`save_checkpoint` and `load_checkpoint`: trees of arrays as directories that are whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.collectives.problems import failed
from mind_mlir.collectives.sharded_array import ShardedArray
from mind_mlir.collectives.world import current_world, ranks_here
from mind_mlir.diagnostics import ArtefactError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.distributed.checkpoint_folder import MOST_STEPS, facts_of, finish, hidden, place_of, steps_of
from mind_mlir.distributed.checkpoint_parts import PartsReader, Plan
from mind_mlir.distributed.checkpoint_problems import CheckpointProblem, together, unreadable
from mind_mlir.distributed.checkpoint_tree import (
    check_alike,
    check_names,
    leaves_of,
    number_of,
    rebuilt,
)
from mind_mlir.support import argument_checks, pytrees
from mind_mlir.tracing.places import here

if TYPE_CHECKING:
    import os

    from mind_mlir.collectives.world import World
    from mind_mlir.distributed.checkpoint_tree import Leaf


class Checkpoint(NamedTuple):
    """What `load_checkpoint` has read.

    Attributes:
        step: The step it was saved at.
        tree: What was saved.
    """

    step: int
    tree: Any


@public
def save_checkpoint(
    directory: str | os.PathLike[str], tree: Any, *, step: int, keep: int | None = None
) -> None:
    """Save a tree of arrays and numbers as the checkpoint of a step, whole or not at all.

    All processes call it. Each writes of a `ShardedArray` what it has of it; other arrays, which are equal in
    all processes, are spread over them. They return when the checkpoint is on the disk, where it replaces an
    earlier one of this step. Whatever ends meanwhile, checkpoints that were there before stay whole.

    Args:
        directory: Where checkpoints are, which all processes see. It is created where it is missing.
        tree: Arrays, `ShardedArray` and numbers, in dicts, lists, tuples, named tuples and dataclasses.
        step: The number of the step, from 0 on.
        keep: How many checkpoints stay, this one and those of the greatest steps; all unless given.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: A number is too small, or an array has elements that no dtype has.
        UnsupportedError: E7101, a process cannot write its part: all of them raise that.
        ExecutionError: E6202, the processes save different trees; E6203 and E6204, one does not come.
    """
    folder, number = Path(argument_checks.path(directory, "directory")), _step(step)
    most = None if keep is None else argument_checks.integer(keep, "keep")
    if most is not None and most < 1:
        argument_checks.refuse(f"keep must be at least 1, not {most}")
    world, what = current_world(), here(f"save_checkpoint of step {number}")
    leaves, form = leaves_of(tree)
    plan = Plan(leaves, world)
    described = plan.described()
    key = hashlib.sha256(json.dumps([str(folder), number, most, form, described]).encode()).hexdigest()
    with contextlib.ExitStack() as until_saved:

        def begin() -> tuple[str, str]:
            is_first = world.rank == 0
            return key, str(until_saved.enter_context(hidden(folder, number))) if is_first else ""

        begun = together(world, what, str(folder), begin)
        if any(theirs != key for theirs, _ in begun):
            raise failed(
                "E6202",
                "the processes save different checkpoints",
                "all processes must save the same step, in the same directory, of trees whose names, types "
                "and numbers of Python are equal",
            )
        temporary = Path(begun[0][1])
        digests = together(world, what, str(temporary), lambda: plan.write(temporary))

        def end() -> None:
            if world.rank == 0:
                facts = {"tree": form, "leaves": plan.described(digests)}
                finish(temporary, number, facts, most)

        together(world, what, str(folder), end)


@public
def load_checkpoint(
    directory: str | os.PathLike[str], like: Any = None, *, step: int | None = None
) -> Checkpoint:
    """Return a checkpoint. All processes call it, of which there may be more or fewer than have saved it.

    Args:
        directory: Where checkpoints are.
        like: A tree of the names, shapes and dtypes of what was saved. Where it has a `ShardedArray`, so has
            what is returned, of that mesh and sharding: each process reads the parts that overlap its own.
            Without it all arrays are whole, and named tuples and dataclasses are dicts.
        step: Which checkpoint; the one of the greatest step unless given.

    Returns:
        The step and the tree. Arrays are numpy's.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: ``step`` is negative.
        ArtefactError: E6507, there is no checkpoint, or it is damaged: digests are compared; E6508, it is of
            another tree than ``like``.
        ExecutionError: E6201, a mesh does not fit the processes; E6203 and E6204, one does not come.
    """
    folder, world = Path(argument_checks.path(directory, "directory")), current_world()
    what = here("load_checkpoint")
    wanted = None if step is None else _step(step)
    alike = None if like is None else leaves_of(like)[0]
    before = wanted
    while True:
        found = together(world, what, str(folder), lambda: max(steps_of(folder), default=None))[0]
        found = found if wanted is None else wanted
        if found is None:
            raise unreadable(str(folder), CheckpointProblem("there is none"))
        try:
            tree = _read_together(place_of(folder, found), alike, world, what)
        except ArtefactError:
            # Who saves may have removed it meanwhile; then there is another one.
            if found == before:
                raise
            before = found
        else:
            return Checkpoint(found, tree if like is None else pytrees.flatten(like)[1].unflatten(tree))


@public
def latest_step(directory: str | os.PathLike[str]) -> int | None:
    """Return the greatest step that a directory has a checkpoint of, or None.

    Raises:
        TypeError: The argument is not of the type above.
    """
    return max(steps_of(Path(argument_checks.path(directory, "directory"))), default=None)


def _step(value: object) -> int:
    number = argument_checks.integer(value, "step")
    if not 0 <= number < MOST_STEPS:
        argument_checks.refuse(f"step must be at least 0 and below 10^18, not {number}")
    return number


def _read_together(place: Path, like: Mapping[str, Leaf] | None, world: World, what: str) -> Any:
    """Return the tree of a checkpoint, or its leaves in the order of those of ``like``."""
    found: list[Any] = []
    together(world, what, str(place), lambda: found.append(_read(place, like, world)))
    return found[0]


def _read(place: Path, like: Mapping[str, Leaf] | None, world: World) -> Any:
    facts, reader = facts_of(place), PartsReader(place)
    try:
        saved, form = facts["leaves"], facts["tree"]
        if like is None:
            return rebuilt(form, [_leaf(reader, name, said, None, world) for name, said in saved.items()])
        check_names(list(like), list(saved))
        for name, leaf in like.items():
            check_alike(name, leaf, saved[name])
        return [_leaf(reader, name, saved[name], leaf, world) for name, leaf in like.items()]
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise CheckpointProblem(f"its manifest is not well-formed: {error!r}") from None


def _leaf(reader: PartsReader, name: str, said: Any, like: Leaf | None, world: World) -> Any:
    if "number" in said:
        return number_of(said)
    if not isinstance(like, ShardedArray):
        return reader.box(name, said, None)
    boxes: dict[str, Any] = {}
    parts: dict[int, Any] = {}
    for rank in ranks_here(like.mesh, world):
        box = like.sharding.part(like.mesh, rank, like.shape)
        if str(box) not in boxes:
            boxes[str(box)] = reader.box(name, said, box)
        parts[rank] = boxes[str(box)]
    return ShardedArray(like.mesh, like.sharding, like.shape, parts)
