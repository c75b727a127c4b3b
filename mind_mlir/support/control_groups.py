"""The control groups of Linux that this process is in: containers limit time and memory by them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The root of the file system at hand.
SYSTEM = Path("/")


def groups_of(system: Path, controller: str) -> Iterator[tuple[int, Path]]:
    """Yield the groups that this process is in, and those around them, as versions and folders.

    Args:
        system: The root of a file system.
        controller: What the groups limit, such as ``cpu``. A folder need not be there: a container may see
            the outermost one alone.
    """
    mounted = system / "sys/fs/cgroup"
    # Where nothing says which groups those are, a container still shows its own as the outermost.
    named = text_of(system / "proc/self/cgroup") or f"0::/\n1:{controller}:/"
    for line in named.splitlines():
        _, controllers, path = line.split(":", 2) if line.count(":") > 1 else ("", None, "")
        if controllers == "":
            for folder in _around(mounted, path):
                yield 2, folder
        elif controllers is not None and controller in controllers.split(","):
            for name in dict.fromkeys((controllers, controller)):
                for folder in _around(mounted / name, path):
                    yield 1, folder


def text_of(path: Path) -> str:
    """Return what a file holds; nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _around(mounted: Path, path: str) -> Iterator[Path]:
    group = PurePosixPath(path.lstrip("/"))
    for each in (group, *group.parents):
        yield mounted / each
