"""Makes the arrays that `mind-mlir run` passes to a program, from its ``--input`` options.

An option is one of

    --input NAME=FILE.npy   one array             --input FILE.npz      all arrays, by name
    --input NAME=2.5        a number, or nested lists of numbers
    --input NAME=random     seeded: normal floats, small integers; also zeros, ones
    --input random          for every input that no other option names
"""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import Domain
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation, Module

FILLS = ("random", "zeros", "ones")
#: What reading a file that is not what its name says can raise.
_LOAD_ERRORS = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class InputSpecs:
    """The ``--input`` options, taken apart.

    Attributes:
        by_name: What is written for each named input.
        default: The fill of inputs that nothing names, or None.
        archives: Files of arrays by name.
    """

    by_name: Mapping[str, str]
    default: str | None = None
    archives: tuple[str, ...] = ()

    @classmethod
    def parse(cls, specs: Iterable[str]) -> InputSpecs:
        """Take the options apart.

        Raises:
            click.UsageError: One is malformed, or two contradict each other.
        """
        by_name: dict[str, str] = {}
        default: str | None = None
        archives: list[str] = []
        for spec in specs:
            name, equals, value = spec.partition("=")
            if not equals and spec.endswith(".npz"):
                archives.append(spec)
            elif not equals and spec in FILLS:
                if default is not None:
                    raise click.UsageError(f"--input {spec}: the default is already {default}")
                default = spec
            elif not equals or not name or not value:
                raise click.UsageError(
                    f"--input {spec}: write NAME=FILE.npy, NAME=NUMBER, NAME={'|'.join(FILLS)}, "
                    f"FILE.npz, or {'|'.join(FILLS)} for all inputs"
                )
            elif name in by_name:
                raise click.UsageError(
                    f"--input {spec}: input '{name}' is already given as '{by_name[name]}'"
                )
            else:
                by_name[name] = value
        return cls(MappingProxyType(by_name), default, tuple(archives))


@dataclass(slots=True)
class _Inputs:
    module: Module
    specs: InputSpecs
    seed: int
    findings: list[Diagnostic] = field(default_factory=list)

    def make(self) -> dict[str, Array]:
        given: dict[str, Array] = {}
        for path in self.specs.archives:
            given.update(self._archive(path))
        inputs = self.module.inputs_by_name
        for position, (name, operation) in enumerate(inputs.items()):
            spec = self.specs.by_name.get(name)
            if spec is None and name not in given:
                spec = self.specs.default
            if spec is None and name not in given:
                self._missing(name, operation)
            elif spec is not None:
                given[name] = self._array(name, spec, operation, position)
        for name in self.specs.by_name:
            if name not in inputs:
                listing = ", ".join(inputs) or "none"
                self.findings.append(
                    Diagnostic("E6102", f"there is no input '{name}'", help=f"the inputs are: {listing}")
                )
        if self.findings:
            raise ArgumentError(self.findings)
        return given

    def _missing(self, name: str, operation: CoreOperation) -> None:
        self.findings.append(
            Diagnostic(
                "E6101",
                f"input '{name}' is missing",
                operation.location,
                (f"input '{name}' is {operation.result_type}",),
                f"pass --input {name}=FILE.npy, --input {name}=random, or --input random for all inputs",
                context=MappingProxyType({"input": name, "expected": str(operation.result_type)}),
            )
        )

    def _array(self, name: str, spec: str, operation: CoreOperation, position: int) -> Array:
        type_ = operation.result_type
        assert isinstance(type_, TensorType), "the profile has no tuples"
        if spec in FILLS:
            return _filled(self.module, operation, type_, spec, (self.seed, position))
        literal = _literal(spec)
        if literal is not None:
            return self._from_literal(name, literal, type_)
        loaded = self._load(spec)
        if isinstance(loaded, np.ndarray):
            return loaded
        if loaded is not None:
            self._unreadable(spec, f"it is an archive; pass it whole, with --input {spec}")
            loaded.close()
        return np.empty(0)

    def _from_literal(self, name: str, literal: Any, type_: TensorType) -> Array:
        try:
            array = np.array(literal)
        except ValueError:  # ragged lists
            array = np.array(None)
        integral = array.dtype.kind in "iu"
        fits = (
            integral
            if type_.dtype.is_integer
            else array.dtype.kind in ("b" if type_.dtype is DType.I1 else "iuf")
        )
        if fits and integral and type_.dtype.is_integer:
            limits = np.iinfo(type_.dtype.numpy)
            fits = bool(np.all((array >= limits.min) & (array <= limits.max)))
        if fits:
            return array.astype(type_.dtype.numpy)
        self.findings.append(
            Diagnostic(
                "E6103",
                f"the value given for input '{name}' is not {type_.dtype.core_name} data",
                notes=(f"input '{name}' is {type_}",),
                help="write a number, or nested lists of numbers of equal length",
            )
        )
        return np.empty(0)

    def _archive(self, path: str) -> dict[str, Array]:
        loaded = self._load(path)
        if loaded is None:
            return {}
        if isinstance(loaded, np.ndarray):
            self._unreadable(path, "it is a single array, not an archive")
            return {}
        with loaded:
            try:
                return {name: loaded[name] for name in loaded.files}
            except _LOAD_ERRORS as error:
                self._unreadable(path, _reason(error))
                return {}

    def _load(self, path: str) -> Any:
        try:
            return np.load(path, allow_pickle=False)
        except _LOAD_ERRORS as error:
            self._unreadable(path, _reason(error))
            return None

    def _unreadable(self, path: str, reason: str) -> None:
        self.findings.append(
            Diagnostic(
                "E6105",
                f"cannot read an array from '{path}': {reason}",
                help="save the array with numpy.save, as numbers rather than Python objects",
                context=MappingProxyType({"path": path, "reason": reason}),
            )
        )


def make_inputs(module: Module, specs: InputSpecs, seed: int) -> dict[str, Array]:
    """Return an array for each input of a verified ``module``.

    Dtypes and shapes of arrays that were read are not checked: calling the program does that.

    Args:
        module: The program.
        specs: The ``--input`` options.
        seed: Seed of random inputs; each input has its own stream, so that the order of options and the
            other inputs do not matter.

    Raises:
        ArgumentError: E6101 an input is missing, E6102 there is no such input, E6103 a number does not fit,
            E6105 a file holds no array.
    """
    return _Inputs(module, specs, seed).make()


def _reason(error: Exception) -> str:
    """Return why a file could not be loaded, without numpy's advice to load it unsafely."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if "pickle" in str(error):
        return "it is no numpy file, or holds Python objects"
    return str(error).split("\n", 1)[0] or type(error).__name__


def _literal(spec: str) -> Any:
    """Return what ``spec`` says as JSON when that is a number, a truth value or a list, else None."""
    try:
        value = json.loads(spec)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (int, float, list)) else None


def _filled(
    module: Module, operation: CoreOperation, type_: TensorType, fill: str, seed: tuple[int, int]
) -> Array:
    shape, dtype = type_.extents, type_.dtype.numpy
    if fill != "random":
        return np.full(shape, 0 if fill == "zeros" else 1, dtype)
    random = np.random.default_rng(seed)
    if type_.dtype.is_float:
        array = random.standard_normal(shape).astype(dtype)
        return np.asarray(np.abs(array) + dtype.type(0.5) if _must_be_positive(module, operation) else array)
    if type_.dtype is DType.I1:
        return random.integers(0, 2, shape).astype(dtype)
    extent = _index_bound(module, operation)
    return random.integers(-8 if extent is None else 0, 9 if extent is None else extent, shape).astype(dtype)


def _must_be_positive(module: Module, value: CoreOperation) -> bool:
    """Return whether an operation takes ``value`` where only positive numbers mean something (Log)."""
    return any(domain is Domain.POSITIVE for _, domain in _uses(module, value))


def _index_bound(module: Module, value: CoreOperation) -> int | None:
    """Return the least extent that ``value``, taken as indices, indexes into; None where it is no index."""
    types = {op.value_id: op.result_type for op in module.operations}
    extents = []
    for user, domain in _uses(module, value):
        indexed = types[user.operands[0]]
        if domain is Domain.INDEX and isinstance(indexed, TensorType):
            extents.append(indexed.extents[0])
    return min(extents, default=None)


def _uses(module: Module, value: CoreOperation) -> Iterable[tuple[CoreOperation, Domain]]:
    records = by_opcode()
    for operation in module.operations:
        schema = records[operation.opcode].operands
        for operand, definition in zip(operation.operands, schema, strict=True):
            if operand == value.value_id:
                yield operation, definition.domain
