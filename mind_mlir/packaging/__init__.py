"""Compiled code as files for others: objects, shared libraries, headers of C, bundles."""
