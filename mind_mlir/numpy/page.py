"""The page that lists the functions: `docs/numpy.md`.

python -m mind_mlir.numpy.page > docs/numpy.md
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

mnp: Any = import_module("mind_mlir.numpy")

_HEAD = """\
# The functions of `mind_mlir.numpy`

<!-- Written by `python -m mind_mlir.numpy.page`; do not edit. -->

Functions of arrays for every operation, for use in functions that `mind_mlir.jit` is given, and outside of
them, where each runs at once, compiled. `help(mnp.dot_general)` says all about one; the
[op reference](../dialect/ops.md) has examples of the operations in Core IR. Operands of several
dtypes take [the one that they have together](python.md#dtypes), and floats that are made without a `dtype`
that of the arrays they meet. Branches and loops are `mind_mlir.cond`, `while_loop`, `fori_loop` and `scan`.

"""

_NUMPY = """\
## With numpy's arguments

| function | what it does |
| --- | --- |
"""

_OPERATIONS = """
## Operations as they are

Operands are given by place, attributes by name.

| function | operation | what it does |
| --- | --- | --- |
"""


def page() -> str:
    """Return the page, as Markdown."""
    by_hand, made = [], []
    for name in mnp.__all__:
        function: Any = getattr(mnp, name)
        if not inspect.isfunction(function):
            continue
        if name in mnp.BY_HAND:
            by_hand.append(_row(name, function))
        else:
            made.append(_row(name, function, *getattr(mnp, name).opcodes))
    for part in (name for name in mnp.__all__ if inspect.ismodule(getattr(mnp, name))):
        functions = vars(getattr(mnp, part)).items()
        by_hand += [_row(f"{part}.{name}", each) for name, each in functions if _is_public(name, each)]
    return _HEAD + _NUMPY + "".join(by_hand) + _OPERATIONS + "".join(made)


def _row(name: str, function: Any, *opcode: str) -> str:
    summary = (inspect.getdoc(function) or "").splitlines()[0].replace("|", "\\|").replace("``", "`")
    cells = [f"`{name}{_shown(inspect.signature(function))}`", *opcode, summary]
    return f"| {' | '.join(cells)} |\n"


def _is_public(name: str, each: Any) -> bool:
    """Return whether a part of the module has a function for its users."""
    return inspect.isfunction(each) and each.__module__ == "mind_mlir.numpy" and name[0] != "_"


def _shown(signature: inspect.Signature) -> str:
    """Return parameters and defaults, without the types."""
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r", /(?=[,)])", "", text)


if __name__ == "__main__":
    print(page(), end="")
