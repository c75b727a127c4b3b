"""Choose the function of a module that is meant: by its name, or the default where nothing is said.

Whoever runs, compiles or differentiates a module asks here, so that all of them take the same function and
refuse with the same words.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.diagnostics.display import brief
from mind_mlir.support import argument_checks
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function, Module

#: The function that is meant where several are exported and none is named.
DEFAULT_ENTRY = "main"
#: How many functions a message lists.
_LISTED = 10


def exported(module: Module) -> tuple[Function, ...]:
    """Return the functions that can be called from outside, in order."""
    return tuple(function for function in module.functions if function.public)


def default_entry(module: Module) -> Function | None:
    """Return the only exported function, or the one called ``main``; None where there is neither."""
    functions = exported(module)
    if len(functions) == 1:
        return functions[0]
    return next((function for function in functions if function.name == DEFAULT_ENTRY), None)


def entry_function(module: Module, name: str | None = None) -> Function:
    """Return the exported function called ``name``, or the default one.

    Raises:
        VerificationError: E2002, there is no function of that name; E2101, it is not exported; E2102, no
            name is given, and there is no default.
        TypeError: ``name`` is neither a string nor None.
    """
    if name is None:
        function = default_entry(module)
        if function is None:
            raise VerificationError(_open(module))
        return function
    name = argument_checks.text(name, "function")
    for function in module.functions:
        if function.name == name:
            if not function.public:
                raise VerificationError(_internal(module, function))
            return function
    raise VerificationError(_unknown(module, name))


def _unknown(module: Module, name: str) -> Diagnostic:
    guess = did_you_mean(name, [function.name for function in exported(module)])
    return Diagnostic(
        "E2002",
        f"there is no function '{brief(name)}'{guess}",
        help=_listing(module),
        context=MappingProxyType({"name": name}),
    )


def _internal(module: Module, function: Function) -> Diagnostic:
    return Diagnostic(
        "E2101",
        f"function '{function.name}' is internal: only functions of its module can call it",
        function.location,
        help=f"export it (write 'func' for 'internal func'), or take another one; {_listing(module)}",
        context=MappingProxyType({"name": function.name}),
    )


def _open(module: Module) -> Diagnostic:
    names = [function.name for function in exported(module)]
    message = (
        f"the module exports {len(names)} functions, of which none is called '{DEFAULT_ENTRY}': "
        "say which one is meant"
        if names
        else "the module exports no function"
    )
    return Diagnostic(
        "E2102", message, help=_listing(module), context=MappingProxyType({"functions": tuple(names)})
    )


def _listing(module: Module) -> str:
    names = [function.name for function in exported(module)]
    if not names:
        return "export one: write 'func' for 'internal func'"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"the exported functions are: {', '.join(names[:_LISTED])}{more}"
