"""Products with weights of few bits, which are read as they lie."""
