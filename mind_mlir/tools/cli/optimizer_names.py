"""The passes of the optimiser, in order, for completion; the records themselves load numpy."""

from __future__ import annotations

OPTIMIZER_PASSES = (
    "taps",
    "scales",
    "prepare",
    "algebra",
    "chains",
    "dots",
    "cse",
    "planes",
    "stacks",
    "layouts",
    "hoist",
    "dce",
    "rematerialise",
    "layers",
    "overlap",
)
