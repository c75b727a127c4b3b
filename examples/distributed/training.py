"""What both trainings share: their command lines, where they begin, and what they save and print."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from mind_mlir import distributed
from mind_mlir.support import pytrees

if TYPE_CHECKING:
    from collections.abc import Callable


def parser(program: str, description: str | None, steps: int) -> argparse.ArgumentParser:
    """Return a parser of the options that both have."""
    found = argparse.ArgumentParser(prog=f"python -m examples.distributed.{program}", description=description)
    found.add_argument("--data", type=int, default=1, help="ranks that share the batch")
    found.add_argument(
        "--steps", type=int, default=steps, help="steps to make, those of a checkpoint included"
    )
    found.add_argument("--checkpoint", type=Path, help="folder to save to, and to go on from")
    found.add_argument("--every", type=int, default=100, help="steps from one checkpoint to the next")
    found.add_argument("--keep", type=int, default=2, help="checkpoints that stay")
    return found


def say(text: str) -> None:
    """Print a line, in one of the processes."""
    if distributed.process_index() == 0:
        print(text, flush=True)


def train(options: argparse.Namespace, state: Any, step: Callable[[int, Any], tuple[Any, Any]]) -> Any:
    """Make all steps, and return the state after them.

    Args:
        options: The command line.
        state: What training begins with, unless there is a checkpoint.
        step: From the number of a step, from 0 on, and the state before it to the loss and the state after.
    """
    folder, first = options.checkpoint, 0
    if folder is not None and distributed.latest_step(folder) is not None:
        first, state = distributed.load_checkpoint(folder, state)
        say(f"goes on after step {first}, which {folder} has")
    shown = max(options.steps // 10, 1)
    for number in range(first, options.steps):
        loss, state = step(number, state)
        done = number + 1
        if done % shown == 0 or done == options.steps:
            say(f"step {done:>5}/{options.steps}  loss {float(loss):.4f}")
        if folder is not None and (done % options.every == 0 or done == options.steps):
            distributed.save_checkpoint(folder, state, step=done, keep=options.keep)
    return state


def digest(tree: Any) -> str:
    """Return a digest of all bits of a tree of arrays: all processes have to ask for it."""
    found = hashlib.sha256()
    for leaf in pytrees.flatten(tree)[0]:
        whole = leaf.gather() if isinstance(leaf, mind_mlir.ShardedArray) else leaf
        found.update(np.ascontiguousarray(whole).tobytes())
    return found.hexdigest()[:16]
