"""Measurements on the machine at hand; ``python -m benchmarks`` runs all, each module also runs alone."""

from __future__ import annotations

import os

# What is measured compiles, but where it is about the cache.
os.environ.setdefault("MIND_MLIR_CACHE", "off")
