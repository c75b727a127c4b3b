"""Files of weights: safetensors, GGUF and numpy's, mapped rather than read."""
