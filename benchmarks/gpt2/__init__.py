"""GPT-2 small beside torch and jax."""
