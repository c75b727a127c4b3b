"""Debug information for debuggers and profilers: source lines of instructions, and names of functions.

Operations of MLIR say where they come from, for people and messages: by name, and all places of what was
fused. A line table has one line for each instruction. So each operation is given one place here:

- that of the value it computes, where it is of one;
- of what loops over several values do for all of them, that of the value which it is done for: a load that of
  its user, a store that of what is stored, and what counts, branches and calls the first of the function's;
- that of the operation before it, where it has none: of its function's first in the beginning.

Functions are described as `DISubprogram`, each with the line of its first operation. Micro-kernels, which are
the same for whoever calls them, are copied for each place that they are called from, and have its line. Other
code that no program has written has no description: debuggers show its symbol, and the line of its caller.
A function that was made of a part of another one is renamed, so that its symbol says what it computes:
``softmax.main_chunk_0_kernel_1.Sub_Exp_Sum``.
"""

from __future__ import annotations

import os
import re
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from mind_mlir.lowering.described import Described
from mind_mlir.lowering.kernels.library import LIBRARY_ATTRIBUTE
from mind_mlir.lowering.math.expansion import INLINE_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.values import name_of
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.mlir.bindings import Attribute, Module, Operation

_PRODUCER = "mind-mlir"
#: What the text of a description calls the function.
_NAME = re.compile(r'\bname = ("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class Sources:
    """The paths of a program's files, as debug information gives them.

    Attributes:
        directory: What names of files are relative to.
        prefixes: Beginnings of paths, with what is said in their place; the last that fits counts.
    """

    directory: str = field(default_factory=os.getcwd)
    prefixes: tuple[tuple[str, str], ...] = ()

    def file(self, name: str) -> str:
        """Return the file ``name`` as an attribute."""
        return f"#llvm.di_file<{_quoted(self._mapped(name))} in {_quoted(self._mapped(self.directory))}>"

    def _mapped(self, path: str) -> str:
        for old, new in reversed(self.prefixes):
            if path.startswith(old):
                return new + path.removeprefix(old)
        return path


def settle_bodies(module: Module) -> None:
    """Let what stands in operations of linalg be where these are: MLIR puts it where their operands are."""

    def settle(op: Operation) -> object:
        if not op.name.startswith("linalg."):
            return ir.WalkResult.ADVANCE
        location = op.location
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    inner.operation.location = location
        return ir.WalkResult.SKIP

    module.operation.walk(settle, ir.WalkOrder.PRE_ORDER)
    deliver()


def add_debug_info(
    module: Module, sources: Sources | None = None, opcodes: Mapping[Place, str] | None = None
) -> None:
    """Describe the functions of a module, and give each of their operations one place, in place.

    Functions that are described already stay as they are.

    Args:
        module: A module of the LLVM dialect.
        sources: Where its files are.
        opcodes: What the operations of the program at places are called, for names of functions.
    """
    with module.context, ir.Location.unknown():
        functions = [Described(op) for op in module.body.operations if _is_of_program(op)]
        found = [each for each in functions if each.start is not None]
        if not found:
            return
        kernels = _kernels(module, found)
        functions += kernels
        found += kernels
        for each in functions:
            each.name = each.readable({} if each.is_public else opcodes or {}, found[0].program)
        scopes = scopes_of(found, sources or Sources())
        for each in found:
            deliver()
            each.locate(scopes)
        _rename(module, {each.symbol: each.name for each in functions if not each.is_public})


def describe_entry(entry: Operation, function: Operation) -> None:
    """Describe ``entry``, which only calls ``function``, as code at its place, if that is described.

    The function, which nobody outside calls any more, gets the name that its description has: debuggers take
    what is called ``main`` for where the program that it is linked to begins.
    """
    if not _is_described(function):
        return
    scope = str(function.location.metadata)
    name = _NAME.search(scope)
    assert name is not None, "what is described has a name"
    symbol = _quoted(name_of(entry))
    (place,) = function.location.locations
    own = ir.Attribute.parse(f"{scope[: name.start(1)]}{symbol}{scope[name.end(1) :]}")
    entry.location = ir.Location.fused([place], own)
    entry.attributes["section"] = function.attributes["section"]
    for block in entry.regions[0].blocks:
        for op in block.operations:
            op.operation.location = place
    _rename(function.parent, {name_of(function): str(ir.Attribute.parse(name[1]).value)})


def _kernels(module: Module, callers: Iterable[Described]) -> list[Described]:
    """Return the micro-kernels that are called, a copy for each place from which they are."""
    defined = {
        name_of(op): op
        for op in module.body.operations
        if _is_plain(op) and LIBRARY_ATTRIBUTE in op.attributes
    }
    calls: dict[str, dict[Place, list[Operation]]] = {name: {} for name in defined}
    for caller in callers:
        for name, call, place in caller.calls():
            if name in calls:
                calls[name].setdefault(place, []).append(call)
    found = []
    for name, op in defined.items():
        for number, (place, there) in enumerate(calls[name].items()):
            found.append(Described(_copied(op, f"{name}_{number}", there) if number else op, place))
    return found


def _copied(function: Operation, name: str, calls: Iterable[Operation]) -> Operation:
    """Return a copy of ``function`` that ``calls`` call."""
    copy = function.operation.clone()
    ir.InsertionPoint(function).insert(copy)
    copy.attributes["sym_name"] = ir.StringAttr.get(name)
    for call in calls:
        call.attributes["callee"] = ir.FlatSymbolRefAttr.get(name)
    return copy.opview


def _is_plain(op: Operation) -> bool:
    """Return whether ``op`` is a function with a body that has not been described."""
    return op.operation.name == "llvm.func" and bool(op.regions[0].blocks) and not _is_described(op)


def _is_described(op: Operation) -> bool:
    return isinstance(op.location, ir.FusedLoc) and op.location.metadata is not None


def _is_of_program(op: Operation) -> bool:
    attributes = op.attributes
    return _is_plain(op) and INLINE_ATTRIBUTE not in attributes and LIBRARY_ATTRIBUTE not in attributes


class Scoped(Protocol):
    """What is known of a function that is described (see `Described`)."""

    symbol: str
    name: str
    start: Place | None

    @property
    def files(self) -> list[str]:
        """Its files, its own first."""


def scopes_of(functions: Sequence[Scoped], sources: Sources) -> dict[tuple[str, str], Attribute]:
    """Return the scopes of ``functions`` in each of their files."""
    # All are read at once: attributes that are to be one and the same have numbers only within a text.
    unit = (
        f"#llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, "
        f"file = {sources.file(functions[0].files[0])}, producer = {_quoted(_PRODUCER)}, "
        "isOptimized = true, emissionKind = Full>"
    )
    keys: list[tuple[str, str]] = []
    texts: list[str] = []
    for number, function in enumerate(functions, 1):
        assert function.start is not None
        file, *others = map(sources.file, function.files)
        line = function.start[1]
        scope = (
            f"#llvm.di_subprogram<id = distinct[{number}]<>, compileUnit = {unit}, scope = {file}, "
            f"name = {_quoted(function.name)}, file = {file}, line = {line}, scopeLine = {line}, "
            'subprogramFlags = "Definition|Optimized", type = #llvm.di_subroutine_type<>>'
        )
        keys += [(function.symbol, name) for name in function.files]
        texts.append(scope)
        texts += [
            f"#llvm.di_lexical_block_file<scope = {scope}, file = {other}, discriminator = 0>"
            for other in others
        ]
    made = ir.ArrayAttr(ir.Attribute.parse(f"[{', '.join(texts)}]"))
    return dict(zip(keys, made, strict=True))


def _rename(module: Operation, names: Mapping[str, str]) -> None:
    """Give functions other symbols, there and wherever they are referred to."""

    def rename(op: Operation) -> object:
        for attribute in _REFERENCES.get(op.name, ()):
            if attribute in op.attributes:
                name = names.get(op.attributes[attribute].value)
                if name is not None:
                    kind = ir.StringAttr if attribute == "sym_name" else ir.FlatSymbolRefAttr
                    op.attributes[attribute] = kind.get(name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(rename)


#: The attributes of operations that hold names of functions.
_REFERENCES = {
    "llvm.func": ("sym_name",),
    "llvm.call": ("callee",),
    "llvm.mlir.addressof": ("global_name",),
}


def _quoted(text: str) -> str:
    """Return ``text`` as MLIR spells it."""
    return str(ir.StringAttr.get(text))
