"""Modules of torch as programs, by way of its FX graphs; torch is imported where a caller has it."""
