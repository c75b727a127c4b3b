"""GPT-2 in PTIR: forward pass, loss and a decode loop with a cache, beside the same in numpy."""
