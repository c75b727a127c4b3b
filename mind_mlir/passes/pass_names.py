"""Names of the optimiser's passes, as callers give them."""

from __future__ import annotations

from mind_mlir.support import argument_checks
from mind_mlir.support.suggestions import nearest

#: The name that stands for every pass where passes are switched off.
ALL = "all"


def checked_names(names: object, parameter: str) -> frozenset[str]:
    """Return names of passes as a set; `ALL` among them stands for every name.

    Raises:
        TypeError: ``names`` is no sequence or set of strings.
        ValueError: No pass is called so.
    """
    given = sorted(names, key=str) if isinstance(names, (set, frozenset)) else names
    found = argument_checks.items(given, parameter, "a sequence or set of names of passes")
    if not found:
        return frozenset()
    from mind_mlir.passes.optimize.table import ALL_PASSES  # noqa: PLC0415 -- kept code needs none of them

    known = [each.name for each in ALL_PASSES]
    for name in found:
        word = argument_checks.text(name, f"each of {parameter}")
        if word not in known and word != ALL:
            near = nearest(word, known)
            hint = f"did you mean {near!r}?" if near else f"the passes are {', '.join(known)}"
            raise ValueError(
                f"{parameter} must be names of passes, and {argument_checks.describe(word)} is none; {hint}"
            )
    return frozenset(known if ALL in found else map(str, found))
