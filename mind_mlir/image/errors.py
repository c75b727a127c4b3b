"""The errors of compiled code, for those who made it or keep it; users see diagnostics instead."""

from __future__ import annotations


class CodeError(ValueError):
    """Bytes are not what compiled code looks like."""


class LinkingError(CodeError):
    """Objects cannot become an image: they are damaged, or have what no code of ours has."""


class LoadingError(CodeError):
    """An image cannot be loaded: it is for another machine, or refers to what this process lacks."""
