"""How processes of the server talk: pickles with their lengths before them."""

from __future__ import annotations

import pickle
import struct

#: The length of what follows.
HEAD = struct.Struct(">Q")


def packed(thing: object) -> bytes:
    """Return a request or an answer as bytes."""
    data = pickle.dumps(thing)
    return HEAD.pack(len(data)) + data
