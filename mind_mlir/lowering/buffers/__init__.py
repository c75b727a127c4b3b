"""The parts of bufferization, each with one job; `lowering.bufferize` puts them together."""
