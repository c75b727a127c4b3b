"""Makes the arrays that `mind-mlir run` passes to a program, from its ``--input`` options.

An option is one of

    --input NAME=FILE.npy   one array             --input FILE.npz      all arrays, by name
    --input NAME=2.5        a number, or nested lists of numbers
    --input NAME=random     seeded: normal floats, small integers; also zeros, ones
    --input random          for every input that no other option names
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING

import click
import numpy as np

from mind_mlir.arguments.tensors import mismatches
from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.diagnostics.display import display_path
from mind_mlir.ir.elements import ElementProblem
from mind_mlir.languages.core.numbers import convert_elements
from mind_mlir.languages.ptir.seeding import is_seed
from mind_mlir.models.weights.array_files import Archive, ArrayFileError, Header, read_array
from mind_mlir.models.weights.loading import Weights, load_weights
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.tools.cli.fills import FILLS, filled
from mind_mlir.tools.cli.literals import LiteralError, Shape, looks_like_literal, parse_literal
from mind_mlir.tools.cli.value_uses import OperandUse, ValueUses

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.interface import Interface, Parameter
    from mind_mlir.ir.module import Module

#: How many names a message lists.
_SHOWN_NAMES = 10
_VALUE = "a value is a number, true, false, nan, inf, or nested lists of these, such as [[1, 2], [3, 4]]"


@dataclass(frozen=True, slots=True)
class InputSpecs:
    """The ``--input`` options, taken apart.

    Attributes:
        by_name: What is written for each named input.
        default: The fill of inputs that nothing names, or None.
        archives: Files of arrays by name.
        weights: A file of weights, for what nothing else names; None for none.
    """

    by_name: Mapping[str, str]
    default: str | None = None
    archives: tuple[str, ...] = ()
    weights: str | None = None

    @classmethod
    def parse(cls, specs: Iterable[str], weights: str | None = None) -> InputSpecs:
        """Take the options apart (UsageError: one is malformed, or two contradict each other)."""
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
                raise click.UsageError(_malformed(spec))
            elif name in by_name:
                raise click.UsageError(
                    f"--input {spec}: input '{name}' is already given as '{by_name[name]}'"
                )
            else:
                by_name[name] = value
        return cls(MappingProxyType(by_name), default, tuple(archives), weights)


def _malformed(spec: str) -> str:
    if spec.endswith(".npy"):
        return f"--input {spec}: say which input it is for: --input NAME={spec}"
    guess = did_you_mean(spec, FILLS)
    return (
        f"--input {spec}: write NAME=FILE.npy, NAME=VALUE, NAME={'|'.join(FILLS)}, "
        f"FILE.npz, or {'|'.join(FILLS)} for all inputs{guess}"
    )


@dataclass(slots=True)
class _Inputs:
    module: Module | None
    interface: Interface
    specs: InputSpecs
    seed: int
    findings: list[Diagnostic] = field(default_factory=list)
    unread: bool = False  # whether there is an archive that cannot be read
    uses: ValueUses | None = None

    def make(self) -> dict[str, Array]:
        parameters = {parameter.name: parameter for parameter in self.interface.parameters}
        given = self._of_files(parameters)
        for position, (name, parameter) in enumerate(parameters.items()):
            spec = self.specs.by_name.get(name) or (self.specs.default if name not in given else None)
            if name not in self.specs.by_name and name not in given and is_seed(name, parameter.type):
                given[name] = np.array(self.seed, np.uint64)
            elif spec in FILLS:
                seed = (self.seed, position)
                given[name] = filled(
                    self._uses_of(parameter) if spec == "random" else (), parameter, spec, seed
                )
            elif spec is not None:
                given[name] = self._value(spec, parameter)
            elif name not in given and not self.unread:
                self._missing(parameter)
        for name in self.specs.by_name:
            if name not in parameters:
                self._unexpected(f"there is no input '{name}'{did_you_mean(name, parameters)}")
        if self.findings:
            raise ArgumentError(self.findings)
        return {name: array for name, array in given.items() if array is not None}

    def _of_files(self, parameters: Mapping[str, Parameter]) -> dict[str, Array | None]:
        """Return what files of arrays by name give."""
        given: dict[str, Array | None] = {}
        for path in self.specs.archives:
            self._archive(path, parameters, given)
        if self.specs.weights is not None:
            self._weights(load_weights(self.specs.weights, dequantize=True), parameters, given)
        return given

    def _uses_of(self, parameter: Parameter) -> Sequence[OperandUse]:
        if self.module is None:
            return ()
        self.uses = self.uses or ValueUses(self.module)
        return tuple(self.uses.of(self.interface.name, parameter.value_id))

    def _missing(self, parameter: Parameter) -> None:
        name, type_ = parameter.name, str(parameter.type)
        self.findings.append(
            Diagnostic(
                "E6101",
                f"input '{name}' is missing",
                parameter.location,
                (f"input '{name}' is {type_}",),
                f"pass --input {name}=FILE.npy, --input {name}=random, or --input random for all inputs",
                context=MappingProxyType({"input": name, "expected": type_}),
            )
        )

    def _unexpected(self, message: str) -> None:
        names = ", ".join(parameter.name for parameter in self.interface.parameters)
        help_ = f"the inputs are: {names or 'none'}"
        self.findings.append(Diagnostic("E6102", message, help=help_))

    def _value(self, text: str, parameter: Parameter) -> Array | None:
        """Return the array that ``NAME=text`` gives, or None after saying why it gives none."""
        try:
            elements, shape = parse_literal(text)
        except LiteralError as error:
            malformed = error
        else:
            return self._from_literal(elements, shape, parameter)
        try:
            array = read_array(text, lambda header: self._fits(header, parameter))
            return _typed(array, parameter)
        except ArrayFileError as error:
            self.findings.append(unread_value(parameter.name, f"{parameter.type}", text, malformed, error))
            return None

    def _from_literal(self, elements: list[str], shape: Shape, parameter: Parameter) -> Array | None:
        """Convert a value by the rule of the Core text: what the dtype does not hold is an error."""
        dtype = parameter.type.dtype
        try:
            return convert_elements(elements, dtype).reshape(shape)
        except ElementProblem as problem:
            reason = f"is not {dtype.core_name} data: {problem.message}"
        self._refuse("E6103", parameter, f"the value given for input '{parameter.name}' {reason}")
        return None

    def _refuse(self, code: str, parameter: Parameter, message: str) -> None:
        self.findings.append(_refusal(code, parameter.name, f"{parameter.type}", message))

    def _archive(
        self, path: str, parameters: Mapping[str, Parameter], given: dict[str, Array | None]
    ) -> None:
        try:
            archive = Archive(path)
        except ArrayFileError as error:
            self.unread = True
            self.findings.append(unreadable(path, f"{error}"))
            return
        shown = display_path(path)
        with closing(archive):
            strange = [name for name in archive.members if name not in parameters]
            if strange:
                self._unexpected(f"'{shown}' holds arrays for which there is no input: {_listing(strange)}")
            if archive.twice:
                self._unexpected(f"'{shown}' holds several arrays of one name: {_listing(archive.twice)}")
            again = [name for name in archive.members if name in given]
            if again:
                self._unexpected(f"'{shown}' repeats what another archive gives: {_listing(again)}")
            for name, parameter in parameters.items():
                if name in archive.members and name not in self.specs.by_name:
                    given[name] = self._member(path, archive, parameter)

    def _weights(
        self, weights: Weights, parameters: Mapping[str, Parameter], given: dict[str, Array | None]
    ) -> None:
        """Take what a file of weights has of the inputs that nothing else names, without a copy."""
        taken = [name for name in parameters if name in weights]
        if not taken:
            shown = display_path(self.specs.weights or "")
            message = f"'{shown}' has weights for none of the inputs, but {_listing(list(weights))}"
            self._unexpected(message)
        for name in taken:
            array = weights[name]
            assert isinstance(array, np.ndarray), "quantised ones are dequantised"
            if name not in given and name not in self.specs.by_name:
                self.findings += mismatches(parameters[name], array.dtype, array.shape)
                given[name] = array

    def _member(self, path: str, archive: Archive, parameter: Parameter) -> Array | None:
        try:
            array = archive.read(parameter.name, lambda header: self._fits(header, parameter))
            return _typed(array, parameter)
        except ArrayFileError as error:
            self.findings.append(unreadable(path, f"'{parameter.name}': {error}"))
            return None

    def _fits(self, header: Header, parameter: Parameter) -> bool:
        found = mismatches(parameter, header.dtype_for(parameter.dtype), header.shape)
        self.findings += found
        return not found


def unread_value(
    name: str, type_: str, text: str, malformed: LiteralError, error: ArrayFileError
) -> Diagnostic:
    """Return what is wrong with ``NAME=text``, which is neither a value (E6103) nor a file of one (E6105)."""
    if looks_like_literal(text) and not text.endswith((".npy", ".npz")):
        return _refusal("E6103", name, type_, f"the value given for input '{name}': {malformed}")
    return unreadable(text, f"{error}", did_you_mean(text, FILLS))


def _refusal(code: str, name: str, type_: str, message: str) -> Diagnostic:
    context = MappingProxyType({"input": name, "expected": type_})
    return Diagnostic(code, message, notes=(f"input '{name}' is {type_}",), help=_VALUE, context=context)


def unreadable(path: str, reason: str, guess: str = "") -> Diagnostic:
    """Return E6105 about a file that holds no array, or cannot be read."""
    return Diagnostic(
        "E6105",
        f"cannot read an array from '{display_path(path)}': {reason}{guess}",
        help=f"give a file that numpy.save wrote, without Python objects; {_VALUE}",
        context=MappingProxyType({"path": path, "reason": reason}),
    )


def _typed(array: Array | None, parameter: Parameter) -> Array | None:
    """Return an array from a file, whose bytes may have no type there, as one of the input's elements."""
    return array.view(parameter.dtype) if array is not None and array.dtype.kind == "V" else array


def make_inputs(
    module: Module | None, interface: Interface, specs: InputSpecs, seed: int
) -> dict[str, Array]:
    """Return an array for each input of a function.

    The shapes of values from the command line are not checked: calling the program does that.

    Args:
        module: The program, verified; None for code whose program is not known, so that random integers are
            small, whatever they are for.
        interface: What the function takes.
        specs: The ``--input`` options.
        seed: Seed of random inputs; each input has its own stream, so that the order of options and the
            other inputs do not matter. And of the random operations of a PTIR program, unless an option
            gives another one.
    """
    return _Inputs(module, interface, specs, seed).make()


def _listing(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more
