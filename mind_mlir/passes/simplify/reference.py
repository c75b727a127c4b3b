"""The page of all patterns, made of their records: `python -m mind_mlir.passes.simplify.reference`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mind_mlir.passes.simplify.tables import ALGEBRA, CHAINS, DOTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mind_mlir.passes.simplify.pattern import Pattern

_INTRODUCTION = """\
# What the optimiser simplifies

Made of the records in `mind_mlir/passes/simplify` by `make docs`. Tests hold that each pattern fires, that
what is close to it does not, and that no bit of a result changes, for all dtypes where they differ.

`x`, `y` and `z` are any values, `p` and `q` truth values; `c` and `d`, and numbers, are constants whose
elements are all that number, seen through reshapes, transposes and broadcasts. Where an operand stretches to
the shape of the result, what takes its place is broadcast. What is NaN stays NaN; sign and payload of a NaN
that is computed are not promised, as everywhere. An operation that nothing reads any more is not computed,
nor is its run-time check made. Values without elements are left alone.
"""


def page() -> str:
    """Return the page as Markdown."""
    parts = [_INTRODUCTION]
    for name, about, table in _PASSES:
        parts.append(f"\n## {name}: {about}\n")
        for heading, patterns in table.items():
            parts.append(f"\n### {heading}\n\n")
            parts += _rows(patterns)
    return "".join(parts)


def _rows(patterns: tuple[Pattern, ...]) -> Iterator[str]:
    yield "| what is written | becomes | why | what is close, and stays |\n| --- | --- | --- | --- |\n"
    for pattern in patterns:
        yield f"| `{pattern.before}` | `{pattern.after}` | {pattern.why} | {pattern.unlike} |\n"


_PASSES: tuple[tuple[str, str, Mapping[str, tuple[Pattern, ...]]], ...] = (
    ("algebra", "identities that hold of IEEE 754", ALGEBRA),
    ("chains", "shorter ways to move elements", CHAINS),
    ("dots", "products that read less", DOTS),
)

if __name__ == "__main__":
    sys.stdout.write(page())
