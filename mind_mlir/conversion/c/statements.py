"""The statements of one function of C while they are written, with the names that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mind_mlir.conversion.c.nodes import AffineIndex, CompoundStatement, Expr, Set, Statement, Text

_LOOPS = "ijklmn"
_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long main register restrict return short signed sizeof static struct switch "
    "typedef union unsigned void volatile while"
)
#: Names of the headers that are included, and of what is written around every function.
_TAKEN = (
    "bool true false status scratch i j k l m n y0 y1 j0 j1 jn yn gamma exp log sin cos tan pow "
    "sqrt floor ceil round erf NAN INFINITY"
)


class Statements:
    """The statements of one function, which are added at the current place.

    Attributes:
        body: All statements.
        used: The helpers that they call.
    """

    def __init__(self, used: set[str]) -> None:
        self.body: list[Statement] = []
        self.used = used
        self._out = self.body
        self._depth = 0
        self._names = set(f"{_KEYWORDS} {_TAKEN}".split())

    def name(self, wanted: str) -> str:
        """Return a name like ``wanted`` that nothing has yet."""
        plain = re.sub(r"\W", "_", wanted.removeprefix("%"))
        plain = f"v{plain}" if not plain or plain[0].isdigit() else plain
        number, found = 2, plain
        while found in self._names or found in self.used:
            found, number = f"{plain}_{number}", number + 1
        self._names.add(found)
        return found

    def add(self, *statements: Statement) -> None:
        """Add statements at the current place."""
        self._out.extend(statements)

    def variable(self, wanted: str, value: Expr, type_: str) -> Text:
        """Declare a variable of C type ``type_`` with a name like ``wanted``."""
        variable = Text(self.name(wanted))
        self.add(Set(variable, value, type_))
        return variable

    @contextmanager
    def inside(self, block: CompoundStatement, statements: list[Statement] | None = None) -> Iterator[None]:
        """Add to the body of ``block``, which stands at the current place, or to ``statements`` of it."""
        out, self._out = self._out, block.body if statements is None else statements
        self._depth += 1
        yield
        self._depth -= 1
        self._out = out

    @contextmanager
    def loops(self, extents: Sequence[int]) -> Iterator[list[AffineIndex]]:
        """Add to the innermost of loops over ``extents``; an extent of 1 takes none."""
        out, depth = self._out, self._depth
        indices: list[AffineIndex] = []
        for extent in extents:
            if extent == 1:
                indices.append(AffineIndex())
                continue
            variable = _LOOPS[self._depth] if self._depth < len(_LOOPS) else f"i{self._depth}"
            block = CompoundStatement(f"for (int64_t {variable} = 0; {variable} < {extent}; ++{variable})")
            self.add(block)
            self._out = block.body
            self._depth += 1
            indices.append(AffineIndex(((variable, 1),)))
        yield indices
        self._out, self._depth = out, depth
