"""What the server will not do, with the reason for the person who asked."""

from __future__ import annotations


class RefusedError(Exception):
    """Ends a request with words that the editor shows."""
