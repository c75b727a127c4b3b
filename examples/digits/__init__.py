"""The demo: trains a classifier of handwritten digits."""
