"""Property tests run the same examples everywhere; MIND_MLIR_FUZZ=<factor> makes them search at random."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "fixed", deadline=None, derandomize=True, database=None, suppress_health_check=_QUIET
)
settings.register_profile("fuzz", deadline=None, suppress_health_check=_QUIET, print_blob=True)
settings.load_profile("fuzz" if "MIND_MLIR_FUZZ" in os.environ else "fixed")
