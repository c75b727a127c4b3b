"""Models that others wrote, built with random weights, and what becomes of them here."""
