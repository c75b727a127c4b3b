"""Whether results are stored past the caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import STREAMED_CACHES, STREAMED_SHARE

if TYPE_CHECKING:
    from mind_mlir.target import Target


def past_caches(stored: int, moved: int, target: Target) -> bool:
    """Return whether ``stored`` bytes of results are, of so many that are ``moved`` in all, if they can be.

    No cache holds them, they would push out of the last one what is read, and such stores are no slower.
    """
    is_large = stored >= STREAMED_CACHES * target.l2_bytes and moved * STREAMED_SHARE >= target.l3_bytes
    return is_large and target.rates.streaming_gain >= 1
