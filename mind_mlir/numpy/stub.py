"""Write `__init__.pyi`, the functions made from records as type checkers and editors see them.

python -m mind_mlir.numpy.stub > mind_mlir/numpy/__init__.pyi
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

#: The functions as they are, rather than as what this writes says.
mnp: Any = import_module("mind_mlir.numpy")

_WIDTH = 110
_HEAD = '''\
"""Functions for every operation. Written by `python -m mind_mlir.numpy.stub`; do not edit."""

from collections.abc import Sequence
from typing import Final, Literal

'''


def stub() -> str:
    """Return the text of `__init__.pyi`."""
    constants = [name for name in mnp.__all__ if isinstance(getattr(mnp, name), float)]
    dtypes: dict[str, list[str]] = {}
    for name in mnp.__all__:
        if isinstance(getattr(mnp, name), type):
            dtypes.setdefault(getattr(mnp, name).__module__, []).append(name)
    functions = {name: getattr(mnp, name) for name in mnp.__all__ if inspect.isfunction(getattr(mnp, name))}
    by_hand = {name: each.__wrapped__.__module__ for name, each in functions.items() if name in mnp.BY_HAND}
    shared: dict[str, list[str]] = {"mind_mlir.numpy.arrays": ["Array", "ArrayLike", "DTypeLike"]}
    for name, module in by_hand.items():
        shared.setdefault(module, []).append(name)
    imports = [_import(module, names) for module, names in sorted(dtypes.items())]
    imports += [_import(module, names) for module, names in sorted(shared.items())]
    parts = [name for name in mnp.__all__ if inspect.ismodule(getattr(mnp, name))]
    imports.append(_import("mind_mlir.numpy", parts))
    lines = [f"{name}: Final[float]" for name in constants]
    lines.append("newaxis: None")
    made = [_function(name, each) for name, each in functions.items() if name not in by_hand]
    return _HEAD + "\n".join([*imports, "", *lines, "", "\n".join(made)])


def _import(module: str, names: list[str]) -> str:
    """Return an import that gives the names on."""
    listed = [f"    {name} as {name},\n" for name in sorted(names)]
    return f"from {module} import (\n{''.join(listed)})"


def _function(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    summary = (inspect.getdoc(function) or "").splitlines()[0]
    returned = f") -> {signature.return_annotation}:"
    head = f"def {name}("
    return f'{head}{_listed(head, _parameters(signature), returned)}{returned}\n    """{summary}"""\n'


def _parameters(signature: inspect.Signature) -> list[str]:
    """Return parameters as Python writes them: operands by place, attributes as keywords."""
    found: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not any(each.startswith("*") for each in found):
            found += [*(["/"] if found else []), "*"]
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        if stars and found:
            found.append("/")
        default = "" if parameter.default is parameter.empty else f" = {_quoted(parameter.default)}"
        found.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    has_end = any(each.startswith(("/", "*")) for each in found)
    return found if has_end or not found else [*found, "/"]


def _listed(head: str, parameters: list[str], returned: str) -> str:
    """Return parameters in one line where they fit, else in lines of their own."""
    line = ", ".join(parameters)
    if len(head) + len(line) + len(returned) <= _WIDTH:
        return line
    if len(line) + 4 <= _WIDTH:
        return f"\n    {line}\n"
    return "\n" + "".join(f"    {parameter},\n" for parameter in parameters)


def _quoted(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)


if __name__ == "__main__":
    print(stub(), end="")
