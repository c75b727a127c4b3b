"""Groups: which operations run over the same loops, and what they may be written over."""
