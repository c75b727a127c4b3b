"""What jax made of some functions, as a file: texts, arguments and results (`jax_programs.py` writes it)."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PATH = Path(__file__).parent / "jax_programs.npy.gz"


@dataclass(frozen=True)
class Recorded:
    """A function as jax lowers it.

    Attributes:
        name: What the tests call it.
        text: Its StableHLO.
        arguments: The arrays that it was called with.
        results: What jax gave for them.
    """

    name: str
    text: str
    arguments: Sequence[Any]
    results: Sequence[Any]


def write(path: Path, programs: Iterable[Recorded]) -> None:
    """Write programs to a file, the same bytes whenever they are the same."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream:
        for program in programs:
            _put(stream, np.array([program.name, str(len(program.arguments)), str(len(program.results))]))
            _put(stream, np.frombuffer(program.text.encode(), np.uint8))
            for array in (*program.arguments, *program.results):
                _put(stream, np.asarray(array))


def read(path: Path = PATH) -> dict[str, Recorded]:
    """Return the programs of a file, by name."""
    programs = {}
    with gzip.open(path) as stream:
        while stream.peek(1):
            name, given, found = (str(each) for each in _get(stream))
            text = _get(stream).tobytes().decode()
            arrays = [_get(stream) for _ in range(int(given) + int(found))]
            programs[name] = Recorded(name, text, arrays[: int(given)], arrays[int(given) :])
    return programs


def _put(stream: gzip.GzipFile, array: Any) -> None:
    np.lib.format.write_array(stream, array, allow_pickle=False)


def _get(stream: gzip.GzipFile) -> Any:
    return np.lib.format.read_array(stream, allow_pickle=False)
