"""Write the dependencies of a compilation as a rule of make, by which make, Ninja and CMake recompile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PACKAGE = Path(__file__).parents[2]


def depfile_text(outputs: Iterable[str], program: str, others: Iterable[str] = ()) -> str:
    """Return the rule that says what ``outputs`` are made of: what was read, and the compiler itself.

    Each of these is also the target of a rule of its own with nothing to do, as of ``gcc -MP``: where
    one is gone, because the next version of the compiler has no such file, make makes the outputs anew.

    Args:
        outputs: The files that are written.
        program: The program; ``-`` for standard input, which no rule can name.
        others: What is read besides: the arrays of constants.
    """
    read = [path for path in (program, *others) if path != "-"]
    needed = [_escaped(path) for path in (*read, *_compiler())]
    rule = " \\\n  ".join([f"{' '.join(_escaped(path) for path in outputs)}:", *needed])
    return "\n".join([rule, "", *(f"{path}:" for path in dict.fromkeys(needed))]) + "\n"


def _compiler() -> list[str]:
    """Return all sources of this package: one of them names the one release of MLIR that it works with."""
    sources = (path for path in _PACKAGE.rglob("*") if path.suffix in (".py", ".lark", ".mlir"))
    return sorted(str(path) for path in sources if path.is_file())


def _escaped(path: str) -> str:
    """Return ``path`` as make reads it."""
    escaped = "".join(f"\\{character}" if character in " #:" else character for character in path)
    return escaped.replace("$", "$$")
