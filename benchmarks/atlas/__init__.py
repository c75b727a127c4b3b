"""An atlas of the compiler: how far every operation, in every size, is from what the machine can do."""
