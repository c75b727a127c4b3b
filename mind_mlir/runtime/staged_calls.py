"""Calls of a `StagedFunction` whose arguments are again of the last form: little of it in Python.

Where arguments and results are arrays alone, the function itself gets the native record of its program. With
containers, Python code is written for their form: it takes the arguments apart, calls the program and puts
its results together. Whatever does not fit is a `Mismatch`, and the function looks with care.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics.tracebacks import WRITTEN
from mind_mlir.runtime.call import Called
from mind_mlir.runtime.staged_method import StagedMethod
from mind_mlir.runtime.staged_reads import Mismatch, Reads
from mind_mlir.runtime.staged_values import NUMBERS, WeakType
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.runtime.executable import Executable
    from mind_mlir.support.pytrees import Form

#: Beyond so many leaves, code for a form is not worth its memory.
MAX_LEAVES = 2_000

_PYTHON = {weak.dtype: kind for kind, weak in NUMBERS.items() if kind in (bool, int, float, complex)}


class NativeProgram(Called):
    """A program that is called natively with arrays, or not at all."""

    def __init__(self, words: Array) -> None:
        """Hold the native record of the program."""
        super().__init__()
        self._words = words

    def __call__(self, /, *args: object) -> Any:
        """Refuse what the native call leaves to Python."""
        raise Mismatch

    _call_python = __call__


@dataclass(slots=True, eq=False)
class StagedProgram:
    """The program of a function for one signature.

    Attributes:
        executable: What runs it.
        arguments: The form of its arguments, as ``(args, kwargs)``.
        types: The types of their leaves.
        returned: The form of its result.
        reads: What it reads of objects.
        signature: Arguments, types and returned form as pickles hold them, once that has been written.
    """

    executable: Executable
    arguments: Form
    types: tuple[TensorType, ...]
    returned: Form
    reads: Reads | None = None
    signature: Any = None
    _words: Array | None = None
    _call: Callable[[Sequence[Any]], Any] | None = None

    @property
    def words(self) -> Array:
        """Return the native record of its calls."""
        if self._words is None:
            self._words = self.executable.staged_words(single=self.returned.count == 1)
        return self._words

    def is_native(self) -> bool:
        """Return whether arguments and results are arrays alone, which need no Python."""
        if (
            self.reads
            or any(isinstance(type_, WeakType) for type_ in self.types)
            or not _is_flat(self.arguments.parts[0])
        ):
            return False
        return self.returned.container is None or (_is_flat(self.returned) and self.returned.count > 1)

    def call(self, static: Sequence[bool]) -> Callable[[Sequence[Any]], Any] | None:
        """Return a function that calls it with arguments of the form, or raises `Mismatch`."""
        if self._call is None and max(self.arguments.count, self.returned.count) <= MAX_LEAVES:
            self._call = _written(self, static)
        return self._call


def _is_flat(form: Form) -> bool:
    """Return whether a form is a leaf, or a plain tuple of leaves."""
    if form.container is None:
        return True
    return form.container.cls is tuple and all(part.container is None for part in form.parts)


def _written(program: StagedProgram, static: Sequence[bool]) -> Callable[[Sequence[Any]], Any]:
    arguments, result = program.arguments.parts[0], program.returned
    writer = _Writer()
    names = [writer.fresh() for _ in arguments.parts]
    writer.lines += ["def call(args):", " try:", f"  [{', '.join(names)}] = args"]
    subject = "None"
    for name, form, is_static in zip(names, arguments.parts, static, strict=True):
        if form.container is not None and form.container.cls is StagedMethod:
            method, cls, subject = (
                writer.known(StagedMethod),
                writer.known(form.fixed[0][1].cls),
                writer.fresh(),
            )
            writer.lines.append(f"  if type({name}) is not {method}: raise Mismatch")
            writer.lines += [
                f"  {subject} = {name}.__self__",
                f"  if type({subject}) is not {cls}: raise Mismatch",
            ]
            continue
        if not is_static:
            writer.take(name, form)
            continue
        (_, value), (_, kind) = form.fixed
        what, cls = writer.known(value), writer.known(kind)
        writer.lines.append(f"  if type({name}) is not {cls} or {name} != {what}: raise Mismatch")
    for place, (leaf, type_) in enumerate(zip(writer.leaves, program.types, strict=False)):
        if isinstance(type_, WeakType):
            kind, made = writer.known(_PYTHON[type_.dtype]), writer.known(type_.dtype.numpy)
            writer.lines.append(f"  if type({leaf}) is not {kind}: raise Mismatch")
            writer.leaves[place] = f"array({leaf}, {made})"
    if program.reads:
        writer.leaves.append(f"*{writer.known(program.reads.fetch)}({subject})")
    writer.lines += [" except (AttributeError, KeyError, ValueError):", "  raise Mismatch from None"]
    results = [f"r{number}" for number in range(result.count)]
    target = results[0] if result.count == 1 else f"({', '.join(results)},)"
    writer.lines += [" try:", f"  {target} = program({', '.join(writer.leaves)})"]
    writer.lines += [" except OverflowError:", "  raise Mismatch from None"]
    writer.lines.append(f" return {writer.make(result, iter(results))}")
    space: dict[str, Any] = {"Mismatch": Mismatch, "program": NativeProgram(program.words), "array": np.array}
    space.update(writer.names)
    exec(compile("\n".join(writer.lines), WRITTEN, "exec"), space)  # noqa: S102 -- written above; of a caller's, only quoted keys
    found: Callable[[Sequence[Any]], Any] = space["call"]
    return found


class _Writer:
    """Python code that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.names: dict[str, Any] = {}
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def known(self, value: Any) -> str:
        """Return a name for an object."""
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def take(self, name: str, form: Form) -> None:
        """Take the value called ``name`` apart."""
        container = form.container
        if container is None:
            self.leaves.append(name)
            return
        cls = container.cls
        check = f"type({name}) is not {self.known(cls)}"
        by_key, listed = issubclass(cls, dict), issubclass(cls, (list, tuple))
        if by_key:
            check += f" or len({name}) != {len(form.parts)}"
        self.lines.append(f"  if {check}: raise Mismatch")
        if form.fixed:
            taken, fixed = self.known(container.take), self.known(form.fixed)
            self.lines.append(f"  if {taken}({name}, '')[2] != {fixed}: raise Mismatch")
        found = [self.fresh() for _ in form.parts]
        if listed:  # which also says whether they are as many
            self.lines.append(f"  [{', '.join(found)}] = {name}")
        for place, (each, part) in enumerate(zip(found, form.parts, strict=True)):
            if by_key:
                self.lines.append(f"  {each} = {name}[{form.keys[place]!r}]")
            elif not listed:
                self.lines.append(f"  {each} = {name}.{form.keys[place]}")
            self.take(each, part)

    def make(self, form: Form, leaves: Any) -> str:
        """Return an expression for the value of a form."""
        container = form.container
        if container is None:
            return str(next(leaves))
        parts = [self.make(part, leaves) for part in form.parts]
        if container.cls is list:
            return f"[{', '.join(parts)}]"
        if container.cls is tuple:
            return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
        if container.cls is dict:
            found = dict(zip(form.keys, parts, strict=True))
            return "{" + ", ".join(f"{key!r}: {found[key]}" for key in form.order) + "}"
        return f"{self.known(container.make)}({self.known(form)}, [{', '.join(parts)}])"
