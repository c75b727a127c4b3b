"""The commands that an editor may ask the server to execute."""

from __future__ import annotations

#: Run a function on random inputs; differentiate one; explain a code. Arguments: the file and the function,
#: or the code.
RUN, GRADIENT, EXPLAIN = "mind-mlir.run", "mind-mlir.gradient", "mind-mlir.explain"
