"""Models whose weights become numbers of few bits, and how far results are off by it."""
