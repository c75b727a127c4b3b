"""A small GPT over bytes, and its training on text that ships with the project."""
