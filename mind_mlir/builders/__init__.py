"""Builds and prints modules: what needs the data of `ir` and the records of `ops` both."""
