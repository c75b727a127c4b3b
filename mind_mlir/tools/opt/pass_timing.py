"""Times what `mind-opt` does, and reports it in the form of mlir-opt's ``--mlir-timing``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Literal

from mind_mlir.support.lazy_dataclass import dataclass

Display = Literal["list", "tree"]
DISPLAYS: tuple[Display, ...] = ("list", "tree")

_RULE = f"==={'-' * 73}==="


@dataclass(slots=True)
class _Node:
    seconds: float = 0.0
    children: dict[str, _Node] = field(default_factory=dict)


@dataclass(slots=True)
class Timing:
    """The time since this was made, and what it went into."""

    _start: float = field(default_factory=time.perf_counter)
    _open: list[_Node] = field(default_factory=lambda: [_Node()])

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time something that is part of what is being timed; equal names of one parent are one entry."""
        node = self._open[-1].children.setdefault(name, _Node())
        self._open.append(node)
        start = time.perf_counter()
        try:
            yield
        finally:
            node.seconds += time.perf_counter() - start
            self._open.pop()

    def report(self, display: Display) -> str:
        """Return the table: nested as things ran, or a list with what took longest first."""
        total = time.perf_counter() - self._start
        root = self._open[0]
        rows = list(_nested(root, 0)) if display == "tree" else _merged(root)
        rest = total - sum(child.seconds for child in root.children.values())
        lines = [
            _RULE,
            f"{'... Execution time report ...':^{len(_RULE)}}".rstrip(),
            _RULE,
            f"  Total Execution Time: {total:.4f} seconds",
            "",
            "  ----Wall Time----  ----Name----",
        ]
        for name, seconds in [*rows, ("Rest", rest), ("Total", total)]:
            lines.append(f"  {seconds:8.4f} ({100 * seconds / total:5.1f}%)  {name}")
        return "\n".join(lines) + "\n"


def _nested(node: _Node, depth: int) -> Iterator[tuple[str, float]]:
    for name, child in node.children.items():
        yield f"{'  ' * depth}{name}", child.seconds
        yield from _nested(child, depth + 1)


def _merged(root: _Node) -> list[tuple[str, float]]:
    seconds: dict[str, float] = {}
    for name, spent in _nested(root, 0):
        bare = name.lstrip()
        seconds[bare] = seconds.get(bare, 0.0) + spent
    return sorted(seconds.items(), key=lambda row: -row[1])
