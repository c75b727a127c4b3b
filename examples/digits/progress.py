"""Shows how training goes: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINES = 10  # how many plain lines a training prints


class Report(Protocol):
    """Told about each epoch as it ends."""

    def __call__(self, epoch: int, loss: float, accuracy: float, /) -> None:
        """Show one epoch; ``accuracy`` lies between 0 and 1."""


@contextmanager
def progress(epochs: int) -> Iterator[Report]:
    """Return what to call after each of ``epochs`` epochs."""
    if not sys.stdout.isatty() or find_spec("rich") is None:
        yield lambda epoch, loss, accuracy: _plain_line(epoch, epochs, loss, accuracy)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - optional

    columns = (
        TextColumn("epoch {task.completed:>2.0f}/{task.total:.0f}"),
        BarColumn(),
        TextColumn("{task.fields[result]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("training", total=epochs, result="")
        yield lambda epoch, loss, accuracy: bar.update(task, completed=epoch, result=_result(loss, accuracy))


def _result(loss: float, accuracy: float) -> str:
    return f"loss {loss:.4f}  accuracy {accuracy:.2%}"


def _plain_line(epoch: int, epochs: int, loss: float, accuracy: float) -> None:
    if epoch == 1 or epoch % max(epochs // _LINES, 1) == 0:
        print(f"epoch {epoch:>3}/{epochs}  {_result(loss, accuracy)}", flush=True)
