"""Programs of several operations for what is none: Fourier transforms, factors, complex functions."""
