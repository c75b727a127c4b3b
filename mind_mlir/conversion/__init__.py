"""Ways out of the compiler, and into it: other representations of programs."""
