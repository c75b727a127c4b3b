"""Foundations of every part of the compiler: checks of arguments, cores, memory, options, stages."""
