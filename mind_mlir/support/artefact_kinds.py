"""The kinds of artefacts, as data: the command line knows them before it loads anything."""

from __future__ import annotations

OBJECT, SHARED, HEADER, BUNDLE = "object", "shared", "header", "bundle"
#: Each with what it is.
ARTEFACTS = {
    OBJECT: "machine code to link, as C calls it",
    SHARED: "the same as a shared library",
    HEADER: "its header for C",
    BUNDLE: "a directory of these for Python, too",
}
#: Those that are files no terminal shows.
BINARY = (OBJECT, SHARED)
