"""Directories of checkpoints: those that are there, one that is being written, and what each says of itself.

    DIRECTORY/step-100/manifest.json            what is in it, with digests; its last line is its own
                       process-0.safetensors    what each process has written

A checkpoint is written under another name, and gets its own once all of it is on the disk: so whatever ends
which process when, a name that a reader finds is that of a whole checkpoint.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mind_mlir.distributed.checkpoint_problems import CheckpointProblem
from mind_mlir.image.errors import CodeError
from mind_mlir.outputs.files import make_directory
from mind_mlir.packaging.bundle import take_name
from mind_mlir.packaging.manifest import MANIFEST, sealed, unsealed

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT, _VERSION = "mind_mlir checkpoint", 1
#: No step has a greater number.
MOST_STEPS = 10**18
_STEP = re.compile(r"step-(0|[1-9]\d{0,17})", re.ASCII)
#: What directories are called that are being written or removed.
_HIDDEN = re.compile(r"\.step-\d+\.[0-9a-f]{8}\.tmp", re.ASCII)


def place_of(folder: Path, step: int) -> Path:
    """Return where the checkpoint of a step is."""
    return folder / f"step-{step}"


def _aside(folder: Path, step: int) -> Path:
    return folder / f".step-{step}.{secrets.token_hex(4)}.tmp"


def steps_of(folder: Path) -> list[int]:
    """Return the steps that there are checkpoints of, in order."""
    try:
        names = [each.name for each in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(match[1]) for name in names if (match := _STEP.fullmatch(name)))


@contextmanager
def hidden(folder: Path, step: int) -> Iterator[Path]:
    """Make a directory to write into, which is gone in the end; no other run saves there meanwhile."""
    make_directory(folder)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # which ends with the process, too
        for left in folder.iterdir():
            if _HIDDEN.fullmatch(left.name):
                shutil.rmtree(left, ignore_errors=True)
        temporary = _aside(folder, step)
        temporary.mkdir()
        try:
            yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    finally:
        os.close(lock)


def finish(temporary: Path, step: int, facts: dict[str, Any], keep: int | None) -> None:
    """Write the manifest beside what has been written, give all of it its name, and remove others.

    Args:
        temporary: Where it has been written; what is there in the end is to be removed.
        step: Its step.
        facts: What the manifest says.
        keep: How many checkpoints stay, this one among them.
    """
    folder = temporary.parent
    with (temporary / MANIFEST).open("xb") as file:
        file.write(sealed({"format": _FORMAT, "version": _VERSION, "step": step, **facts}))
        file.flush()
        os.fsync(file.fileno())
    _synchronise(temporary)
    take_name(temporary, place_of(folder, step))
    _synchronise(folder)
    others = [each for each in steps_of(folder) if each != step]
    for each in others[: max(0, len(others) + 1 - keep)] if keep is not None else []:
        gone = _aside(folder, each)  # its name goes at once, so that nobody finds half of it
        place_of(folder, each).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _synchronise(folder: Path) -> None:
    """Wait until the names of a directory are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def facts_of(place: Path) -> dict[str, Any]:
    """Return what the manifest of a checkpoint says.

    Raises:
        CheckpointProblem: There is none, or it is damaged.
    """
    try:
        fields = unsealed((place / MANIFEST).read_bytes())
    except OSError as error:
        reason = f"{MANIFEST}: {error.strerror or error}" if place.exists() else "there is none"
        raise CheckpointProblem(reason) from None
    except CodeError as error:
        raise CheckpointProblem(str(error)) from None
    if fields.get("format") != _FORMAT or fields.get("version") != _VERSION:
        raise CheckpointProblem(f"{MANIFEST} describes no checkpoint of version {_VERSION}")
    return fields
