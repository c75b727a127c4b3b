"""A decoder of Llama's kind: RMS norms, rotary positions, grouped queries, gated layers."""
