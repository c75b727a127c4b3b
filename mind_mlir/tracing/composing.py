"""Programs that a `Composer` appends, of traced arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions.composer import Composer
from mind_mlir.tracing.places import user_source
from mind_mlir.tracing.trace import current_trace

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.array import TracedArray


def composed(append: Callable[..., Sequence[Value]], *arrays: TracedArray) -> list[TracedArray]:
    """Return arrays for what ``append`` returns, which is given a composer and the values of ``arrays``."""
    trace = current_trace()
    to = Composer(trace.builder, trace.source or user_source())
    return [trace.wrap(found) for found in append(to, *[trace.value(array) for array in arrays])]
