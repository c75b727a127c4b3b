"""Name lookup: scopes within scopes, of variables that may be given other values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.languages.mind.elaboration.values import SurfaceValue


@dataclass(slots=True, eq=False)
class Variable:
    """A name, and what it is worth at the moment; ``fixed`` is what a function reads around it."""

    name: str
    value: SurfaceValue
    fixed: bool = False


@dataclass(slots=True)
class Scopes:
    """The scopes around a place, the innermost last."""

    frames: list[dict[str, Variable]] = field(default_factory=lambda: [{}])

    def enter(self) -> None:
        """Begin a scope."""
        self.frames.append({})

    def leave(self) -> None:
        """End the innermost scope."""
        self.frames.pop()

    def declare(self, name: str, value: SurfaceValue, *, fixed: bool = False) -> None:
        """Declare ``name``, which hides what was called so before; ``_`` is no name."""
        if name != "_":
            self.frames[-1][name] = Variable(name, value, fixed)

    def declare_everywhere(self, name: str, value: SurfaceValue) -> None:
        """Declare ``name`` for the whole function: of one that is not declared, nothing is said again."""
        self.frames[0][name] = Variable("", value)

    def find(self, name: str) -> Variable | None:
        """Return the variable that ``name`` means, or None."""
        for frame in reversed(self.frames):
            if name in frame:
                return frame[name]
        return None

    def among(self, names: Iterable[str]) -> list[Variable]:
        """Return the variables that some of ``names`` mean, in that order."""
        return [found for name in names if (found := self.find(name))]

    def names(self) -> Iterator[str]:
        """Yield every name that has been declared, the innermost first."""
        for frame in reversed(self.frames):
            yield from (name for name, variable in frame.items() if variable.name)
