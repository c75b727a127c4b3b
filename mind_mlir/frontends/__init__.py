"""Readers: source text in, IR with locations out."""
