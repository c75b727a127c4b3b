"""Makes the tests the same everywhere.

The settings of the surroundings are dropped before anything reads them: OpenBLAS chooses its kernels when
numpy is loaded, widths and colours follow the terminal. Hypothesis draws the same examples in every run;
MIND_MLIR_FUZZ=<factor> makes it search at random.
"""

from __future__ import annotations

import gc
import os
import sys

import surroundings
from hypothesis import HealthCheck, settings

assert "numpy" not in sys.modules, "numpy has read its settings before they are dropped"
surroundings.drop()
# Code is compiled anew, but where a test is about the cache.
os.environ["MIND_MLIR_CACHE"] = "off"
# It is the same on all machines with the same instructions, but where a test is about measuring.
os.environ["MIND_MLIR_RATES"] = "stated"

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "fixed", deadline=None, derandomize=True, database=None, suppress_health_check=_QUIET
)
# A search at random is also one for programs that take long: none is to need half a minute (30,000 ms).
settings.register_profile("fuzz", deadline=30_000, suppress_health_check=_QUIET, print_blob=True)
if "MIND_MLIR_FUZZ" in os.environ:
    from mind_mlir.mlir import passes

    settings.load_profile("fuzz")
    passes.always_verified = True
else:
    settings.load_profile("fixed")


def pytest_collection_finish() -> None:
    """Leave what stays until the end, above all the tests, out of what the garbage collector goes through."""
    gc.collect()
    gc.freeze()
