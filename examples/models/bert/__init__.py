"""BERT: words that fit a gap, and sentences as vectors."""
