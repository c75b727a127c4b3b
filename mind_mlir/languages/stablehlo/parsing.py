"""StableHLO text and bytecode as MLIR modules, whatever the text holds."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from mind_mlir.diagnostics import Diagnostic, ParseError, SourceText
from mind_mlir.mlir.bindings import Context, MLIRError, Module, PassManager, ir, stablehlo

_HELP = "the program is to be StableHLO, as text or as a portable artifact"
#: What bytecode of MLIR begins with.
BYTECODE = b"ML\xefR"
#: Where MLIR says that something is wrong.
_PLACE = re.compile(r'error: (?:"[^"]*":|loc\("[^"]*":)(\d+):(\d+)\)?: (.*)')
#: Loads the dialect CHLO, which the bindings register only as what this pass depends on.
_LOADS_CHLO = "builtin.module(func.func(stablehlo-complex-math-expander))"
#: Makes operations with shapes that are constants operations without.
_STATIC = (
    "builtin.module(func.func("
    "stablehlo-legalize-deprecated-ops{fail-on-unused=false},stablehlo-canonicalize-dynamism))"
)

#: Data beside operations, and the bytes before it that say how it is aligned.
_RESOURCE = re.compile(
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[\w.$-]+))\s*:\s*"0x(?P<digits>[0-9A-Fa-f]*)"'
)
_ALIGNMENT = 4
#: How Shardy names devices, and how it says where a value is to be.
_MESH = re.compile(r"^[ \t]*sdy\.mesh @.*$", re.MULTILINE)
_CONSTRAINT = re.compile(
    r"\bsdy\.sharding_constraint (%[\w#.$-]+) <[^\n]*> : (tensor<[^\s()]*>)(?=\s)",
)
#: Infers shapes from those of arguments and constants, where types say less.
_REFINED = "builtin.module(stablehlo-refine-shapes)"
_UNKNOWN = re.compile(r"tensor<[^>]*\?")

#: Brackets that may be open at once: more than twice of what 64 nested regions, the most we take, need.
_MOST_OPEN = 256
#: What may hold brackets that are none, and brackets.
_TOKEN = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*+|->|[](){}<>[]')


@cache
def _library() -> Any:
    """Return the bindings of StableHLO with its passes registered, which can be done once in a process."""
    library = stablehlo()
    library.register_stablehlo_passes()
    return library


def new_context() -> Context:
    """Return a context that knows StableHLO and CHLO, and takes attributes of unknown dialects."""
    library = _library()
    context = ir.Context()
    context.enable_multithreading(False)
    library.register_dialect(context)
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        PassManager.parse(_LOADS_CHLO).run(ir.Module.create().operation)
    return context


def read(program: str | bytes, source: SourceText, context: Context) -> Module:
    """Return a program as a module of ``context``, in which shapes that are known are part of the types.

    Args:
        program: The text, or a portable artifact as bytes.
        source: The text again, as diagnostics show it; an empty one for bytes.
        context: One of `new_context`.

    Raises:
        ParseError: E1101, it is not well-formed, as MLIR says.
    """
    _check_nesting(source)
    with context:
        try:
            module = _refined(_parsed(program, context), program, context)
            PassManager.parse(_STATIC).run(module.operation)
        except (MLIRError, ValueError, RuntimeError) as error:
            raise ParseError(_wrong(str(error), source)) from None
    return module


def resources_of(text: str) -> dict[str, bytes]:
    """Return the data that a text of MLIR has behind its operations, by name.

    MLIR writes hexadecimal digits: four bytes that say how data is to be aligned, and the data.
    """
    _, found, behind = text.rpartition("{-#")
    return {
        each["quoted"] or each["plain"]: bytes.fromhex(each["digits"])[_ALIGNMENT:]
        for each in (_RESOURCE.finditer(behind) if found else ())
        if len(each["digits"]) % 2 == 0
    }


def _parsed(program: str | bytes, context: Context) -> Module:
    if isinstance(program, str):
        return ir.Module.parse(_on_one_device(program))
    if not program.startswith(BYTECODE):
        raise ValueError("it does not begin as MLIR's bytecode does")
    try:
        return stablehlo().deserialize_portable_artifact(context, program)
    except (MLIRError, ValueError, RuntimeError):
        return ir.Module.parse(program)  # bytecode of StableHLO itself, of this version


def _on_one_device(program: str) -> str:
    """Return a text without operations of Shardy, a dialect that is not in the bindings; lines stay lines.

    They say how values are to be spread over devices, which changes no value.
    """
    if "sdy." not in program:
        return program
    return _CONSTRAINT.sub(r"stablehlo.custom_call @Sharding(\1) : (\2) -> \2", _MESH.sub("", program))


def _refined(module: Module, program: str | bytes, context: Context) -> Module:
    """Return ``module`` with the shapes that follow from those of arguments, where types leave some open."""
    text = program if isinstance(program, str) else module.operation.get_asm(large_elements_limit=1)
    if not _UNKNOWN.search(text):
        return module
    try:
        PassManager.parse(_REFINED).run(module.operation)
    except (MLIRError, ValueError, RuntimeError):
        return _parsed(program, context)  # as it was: what stays open is a finding of its own
    return module


def _wrong(message: str, source: SourceText) -> Diagnostic:
    found = _PLACE.search(message)
    location = None
    if found and source.text:
        line, column = int(found[1]), int(found[2])
        if 0 < line <= source.index.count:
            start, end = source.index.span(line)
            offset = min(start + column - 1, end)
            location = source.locate(offset, min(offset + 1, end))
    said = found[3] if found else message.strip().partition("\n")[0]
    return Diagnostic(
        "E1101",
        f"syntax error: {said}",
        location,
        help=_HELP,
    )


def _check_nesting(source: SourceText) -> None:
    """Refuse a text that nests so deeply that reading it could take more stack than there is.

    MLIR's parser recurses without a limit of its own.

    Raises:
        ParseError: E1101, at the bracket that is too many.
    """
    depth = 0
    for token in _TOKEN.finditer(source.text):
        character = token[0]
        if character in ")}>]":
            depth -= depth > 0
        elif len(character) == 1:
            depth += 1
        if depth > _MOST_OPEN:
            raise ParseError(
                Diagnostic(
                    "E1101",
                    f"syntax error: more than {_MOST_OPEN} brackets are open",
                    source.locate(token.start(), token.end()),
                    help=_HELP,
                )
            )
