"""The process of one model: says what becomes of it, a message at a time."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.models.outcome import Stage

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from benchmarks.models.entry import Entry


#: Whose calls can be timed beside ours.
PEERS = ("eager", "inductor", "onnxruntime", "jax")


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of a model.

    Attributes:
        entry: The model.
        threads: On how many threads it is called.
        real: Whether it is as large as it is used.
        narrow: Whether it is also run in bf16.
        gradients: Whether gradients and a step are compared, if it trains.
        peers: Who is timed beside us, of `PEERS`; where there is nobody, nothing is.
    """

    entry: Entry
    threads: int
    real: bool
    narrow: bool
    gradients: bool
    peers: frozenset[str]

    def stages(self) -> tuple[str, ...]:
        """Return the stages that it is to go through."""
        trained = ("gradients", "step") if self.gradients and self.entry.trains else ()
        return ("forward", *(("bf16",) if self.narrow else ()), *trained)


class Speaker:
    """Tells the parent."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __call__(self, **message: Any) -> None:
        """Tell facts of an `Outcome`; a stage is told by its name."""
        stages = {name: dataclasses.asdict(each) for name, each in message.items() if isinstance(each, Stage)}
        told = {name: value for name, value in message.items() if name not in stages}
        self._connection.send({**told, **({"stages": stages} if stages else {})})


def run(request: Request, connection: Connection, scratch: str) -> None:
    """Check a model in a process made for it; what is printed goes to a file ``log`` in ``scratch``."""
    os.setsid()  # so that what it starts ends with it
    log = os.open(Path(scratch) / "log", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = scratch
    warnings.simplefilter("ignore")  # of the frameworks, about one another
    if request.entry.family == "flax":
        from benchmarks.models.flax_check import check  # noqa: PLC0415 -- the other framework may be missing
    else:
        from benchmarks.models.torch_check import check  # noqa: PLC0415 -- the other framework may be missing
    check(request, Speaker(connection))
    connection.close()
    sys.stdout.flush()
    sys.stderr.flush()


def has_compiler() -> bool:
    """Return whether inductor finds the compiler that it needs."""
    return shutil.which("g++") is not None
