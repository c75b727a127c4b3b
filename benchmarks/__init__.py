"""Measurements on the machine at hand; ``python -m benchmarks`` runs all, each module also runs alone."""
