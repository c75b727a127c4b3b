"""Training and products on two processes, beside torch's and jax's."""
