"""`mind-mlir lsp`: a language server, which shows editors what the compiler knows of a program.

What needs the text alone (names, where they are declared and used, completion) is answered at once by the
server's own process (`text_index.py` and the modules that fill it). What checks, compiles or runs a program
is done by others (`workers.py`), which may crash, hang or be ended for a newer version of the text.
"""
