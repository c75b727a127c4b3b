"""Training on several processes: the digits, and GPT-2."""
