"""Names that C code is not to have for its own values."""

from __future__ import annotations

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long main register restrict return short signed sizeof static struct switch "
    "typedef union unsigned void volatile while"
)
#: Of the headers that are included, and of what is written around every function.
_TAKEN = (
    "bool true false status scratch i j k l m n y0 y1 j0 j1 jn yn gamma exp log sin cos tan pow "
    "sqrt floor ceil round erf NAN INFINITY"
)
RESERVED = frozenset(f"{_KEYWORDS} {_TAKEN}".split())
