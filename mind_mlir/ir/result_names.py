"""What the results of a function are called where the program has them in containers.

`State.x` for a field of a record, `loss` for a value of a dict, `output_0` for what has no name of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

#: Returns what the leaves of a container of that name are called; of what is none, that name.
LeafNames = Callable[[str], Iterable[str]]


def result_names(items: Sequence[tuple[str, LeafNames]]) -> tuple[str, ...]:
    """Return what results are called, all of them different.

    Args:
        items: The results, each a leaf or a container: what the program calls it, which is the class of a
            record, or nothing, and what names its leaves. A dict that is the only result gives its keys.
    """
    counts = Counter(name for name, _ in items if name)
    found: list[str] = []
    for place, (name, leaves) in enumerate(items):
        own = name if counts[name] == 1 else ""
        names = list(leaves(own))
        if not own and (len(items) > 1 or names == [""]):
            names = list(leaves(f"output_{place}"))
        found += names
    return tuple(distinct(found))


def distinct(names: Iterable[str]) -> list[str]:
    """Return names of inputs or of results, all of them different and of whole characters."""
    found: dict[str, None] = {}
    for name in names:
        plain = name.encode("utf-8", "replace").decode() or "_"
        while plain in found:
            plain += "_"
        found[plain] = None
    return list(found)
