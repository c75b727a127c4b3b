"""Quantisation of a program: products with known weights become products with weights of few bits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.arguments.tensors import bind
from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.attributes import Array, Attributes, TensorLiteral
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.module import CoreOperation, Functions, Module, Parameter, Return
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.ir.regions import blocks_within
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import numbers
from mind_mlir.ops.constants import constant_form
from mind_mlir.ops.quantized_formats import BLOCK, FORMATS
from mind_mlir.passes.forms import structured_form, verified
from mind_mlir.passes.verify import verify
from mind_mlir.quantization.encoding import GROUP, decode_weights, encode_weights
from mind_mlir.quantization.errors import ErrorSums
from mind_mlir.quantization.products import Finder, Product, Weight, walk, weights_of
from mind_mlir.quantization.report import LeftLayer, QuantizedLayer, QuantizedModel
from mind_mlir.runtime.executable import Executable
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.module import Block, Function, ValueId

_ACTIVATIONS = ("float", "int8")
#: What tensors behind the numbers of a weight are called, after its name.
_BEHIND = ("", ".scale", ".zero_point")


@public
def quantize(
    module: Module,
    *,
    format: str = "q8_0",  # noqa: A002 -- as QuantizedDot calls it
    group: int = GROUP,
    activations: str | None = None,
    weights: Mapping[str, object] | None = None,
    examples: Mapping[str, object] | None = None,
    function: str | None = None,
) -> QuantizedModel:
    """Return a program whose products with known weights multiply numbers of few bits.

    Known are constants, and parameters whose arrays are given. They are the right factors, or transposed
    ones, of MatMul, Dot and DotGeneral with rows of whole blocks of 32 elements, in loops and branches, too,
    which read activations of f32, bf16 or f16. Parameters are replaced by others: ``w`` holds its numbers,
    ``w.scale`` and ``w.zero_point`` what comes with them, if anything does.

    Args:
        module: The program.
        format: The format of the weights: ``q8_0``, ``q4_0``, ``int8``, ``int4`` or ``fp8``.
        group: Elements that share a scale in the last three of these.
        activations: ``int8`` to round activations to 8 bits, too, which is quickest; ``float`` to leave them.
            Unless given, ``int8`` where the format allows it.
        weights: Arrays of parameters, by name.
        examples: Arrays of all other parameters, by name: with them, the errors of results are measured.
        function: Which function, if the module has several; the others are not part of the result.

    Raises:
        VerificationError: The module breaks a rule; E2002, E2101, E2102, as `compile`.
        ArgumentError: E6102, ``weights`` names no parameter; E6103, E6104, E6105, an array does not fit its
            parameter; E6101, with ``examples`` an argument is missing.
        TypeError: An argument is not of the type above.
        ValueError: ``format`` or ``activations`` is none of those, or ``group`` is no multiple of 32.
    """
    argument_checks.choice(format, tuple(FORMATS), "format")
    if activations is None:
        activations = "float" if FORMATS[format].is_float else "int8"
    argument_checks.choice(activations, _ACTIVATIONS, "activations")
    if FORMATS[format].is_float and activations == "int8":
        raise ValueError("activations must be float for weights of format fp8, which are no integers")
    size = argument_checks.integer(group, "group")
    if size < BLOCK or size % BLOCK:
        raise ValueError(f"group must be a multiple of {BLOCK}, not {size}")
    argument_checks.expect(module, Module, "module", "a Module")
    structured = structured_form(verified(module))
    chosen = entry_function(structured, function)
    given = _arrays(chosen, weights or {})
    change = _Change(chosen, given, format, BLOCK if FORMATS[format].block_bytes else size, activations)
    others = [each for each in structured.functions if each is not chosen and not each.public]
    quantized = _module(change.function(), others)
    if examples is None:
        return change.report(quantized)
    named = argument_checks.mapping(examples, "examples", "a mapping from names to arrays")
    arguments: dict[str, object] = {str(name): array for name, array in named.items()} | given
    sums = (
        _run(_module(change.beside(), others), {**arguments, **change.renamed_arrays()})
        if change.products
        else ()
    )
    errors = [_relative(float(off), float(size)) for size, off in zip(sums[::2], sums[1::2], strict=True)]
    before = _run(_module(chosen, others), arguments)
    kept = {name: array for name, array in arguments.items() if name not in change.gone}
    after = _run(quantized, {**kept, **change.arrays})
    ends = tuple(_error(two, one) for one, two in zip(before, after, strict=True))
    return replace(change.report(quantized, errors), output_errors=ends)


def _module(function: Function, others: Sequence[Function]) -> Module:
    return verify(Module(Functions((function, *others)), EXTENDED_FUNCTIONS.name))


def _arrays(function: Function, weights: Mapping[str, object]) -> dict[str, Array]:
    """Return the arrays of the parameters that are given, checked."""
    given = argument_checks.mapping(weights, "weights", "a mapping from names to arrays")
    named = {argument_checks.text(name, "each name in weights"): value for name, value in given.items()}
    parameters = interface_of(function).parameters
    known = [str(each.name) for each in parameters]
    unknown = [name for name in named if name not in known]
    if unknown:
        raise ArgumentError(
            [
                Diagnostic(
                    "E6102",
                    f"weights: the function {function.name} has no parameter {name!r}"
                    f"{did_you_mean(name, known)}",
                    help=f"its parameters are: {', '.join(known) or 'none'}",
                )
                for name in unknown
            ]
        )
    wanted = [each for each in parameters if each.name in named]
    bound = bind(wanted, (), {str(each.name): named[str(each.name)] for each in wanted})
    return {str(each.name): array for each, array in zip(wanted, bound, strict=True)}


def _run(module: Module, arguments: Mapping[str, object]) -> tuple[Array, ...]:
    found = Executable(module, CompileOptions())(**arguments)
    return found if isinstance(found, tuple) else (found,)


def _error(found: Array, expected: Array) -> float:
    """Return the difference relative to what is expected, by their norms."""
    wide = [numbers.widened(each).astype(np.float64) for each in (found, expected)]
    return _relative(*(float(np.square(each).sum()) for each in (wide[0] - wide[1], wide[1])))


def _relative(off: float, size: float) -> float:
    """Return the root of a sum of squared differences over that of the squares of what is expected."""
    return math.sqrt(off / size) if size else math.sqrt(off)


@dataclass(frozen=True, slots=True, eq=False)
class _Encoded:
    """A weight in its format: the values that stand for its tensors, and these."""

    values: tuple[ValueId, ...]
    arrays: tuple[Array, ...]
    error: float


class _Change:
    """The change of one function in structured form."""

    def __init__(
        self, function: Function, given: Mapping[str, Array], format_name: str, group: int, activations: str
    ) -> None:
        self._function, self._block = function, function.entry
        self._format, self._group, self._activations = format_name, group, activations
        self._weights = weights_of(self._block, given)
        self._next = 1 + max(_ids(self._block), default=0)
        self._encoded: dict[tuple[ValueId, bool], _Encoded] = {}
        self.left: list[LeftLayer] = []
        finder = Finder(self._block, self._weights)
        products = [finder.product(operation) for operation in walk(self._block)]
        self.products = [each for each in products if each is not None and self._accepts(each)]
        for product in self.products:
            self._encode(product)
        kept = self._read()
        weights = {each.weight.value: each.weight for each in self.products if each.weight.is_parameter}
        #: The parameters that nothing reads any more.
        self.gone = {weight.name for value, weight in weights.items() if value not in kept}
        self._unread = {op.value_id for op in walk(self._block) if op.opcode == "Transpose"} - kept

    @property
    def arrays(self) -> dict[str, Array]:
        """Return what callers give in the place of weights."""
        found: dict[str, Array] = {}
        for (value, by_rows), encoded in self._encoded.items():
            weight = self._weights[value]
            if weight.is_parameter:
                found |= zip(self._names(weight, by_rows=by_rows), encoded.arrays, strict=False)
        return found

    def _names(self, weight: Weight, *, by_rows: bool) -> list[str]:
        """Return what the tensors of a weight are called: as it was, where that name is free."""
        free = weight.name in self.gone and (weight.value, not by_rows) not in self._encoded
        stem = weight.name if free else f"{weight.name}.{'rows' if by_rows else 'columns'}"
        return [stem + suffix for suffix in _BEHIND]

    def renamed_arrays(self) -> dict[str, Array]:
        """Return the arrays as `beside` calls them, which keeps the weights, too."""
        return {f"quantized.{name}": array for name, array in self.arrays.items()}

    def function(self) -> Function:
        """Return the function with products of few bits."""
        changed = {
            each.operation.value_id: self._product(each, each.operation.value_id) for each in self.products
        }

        def operations(block: Block) -> tuple[CoreOperation, ...]:
            read = [each for each in block.operations if each.value_id not in self._unread]
            return tuple(changed.get(each.value_id) or inside(each) for each in read)

        def inside(operation: CoreOperation) -> CoreOperation:
            regions = tuple(replace(each, operations=operations(each)) for each in operation.regions)
            return replace(operation, regions=regions) if regions else operation

        parameters = [each for each in self._block.parameters if each.name not in self.gone]
        block = replace(
            self._block,
            parameters=(*parameters, *self._parameters("")),
            operations=(*self._constants(), *operations(self._block)),
        )
        return replace(self._function, blocks=(block,))

    def beside(self) -> Function:
        """Return a function of two sums for each product: of its squares, and of those of its errors."""
        by_value = {each.operation.value_id: each for each in self.products}

        def quantized(operation: CoreOperation, value: ValueId) -> CoreOperation | None:
            product = by_value.get(operation.value_id)
            return None if product is None else self._product(product, value)

        operations, sums = ErrorSums(quantized, self._next).block(self._block)
        ends = [value for each in self.products for value in sums[each.operation.value_id]]
        block = replace(
            self._block,
            parameters=(*self._block.parameters, *self._parameters("quantized.")),
            operations=(*self._constants(), *operations),
            terminator=Return(tuple(ends)),
        )
        types = (TensorType(DType.F64, ()),) * len(ends)
        return replace(self._function, blocks=(block,), result_types=types)

    def report(self, module: Module, errors: Sequence[float] = ()) -> QuantizedModel:
        """Return what was done."""
        layers = []
        for number, product in enumerate(self.products):
            encoded = self._encoded[product.weight.value, product.by_rows]
            rows = product.rows()
            layers.append(
                QuantizedLayer(
                    product.operation.label,
                    product.weight.name,
                    (rows.shape[0], rows.shape[1]),
                    (rows.nbytes, sum(each.nbytes for each in encoded.arrays)),
                    encoded.error,
                    errors[number] if errors else None,
                )
            )
        return QuantizedModel(module, self.arrays, self._format, tuple(layers), tuple(self.left))

    def _accepts(self, product: Product) -> bool:
        depth = product.x_type.extents[-1]
        if depth % self._group == 0:
            return True
        reason = f"its rows of {depth} elements are no multiple of {self._group}"
        self.left.append(LeftLayer(product.operation.label, product.weight.name, reason))
        return False

    def _encode(self, product: Product) -> None:
        key = product.weight.value, product.by_rows
        if key in self._encoded:
            return
        rows = product.rows()
        arrays = encode_weights(rows, format=self._format, group=self._group)
        values = tuple(range(self._next, self._next + len(arrays)))
        self._next += len(arrays)
        self._encoded[key] = _Encoded(
            values, arrays, _error(decode_weights(arrays, format=self._format), rows)
        )

    def _read(self) -> set[ValueId]:
        """Return what is read once products have changed: not transposes of which there is no other use."""
        changed = {each.operation.value_id: each for each in self.products}
        kept = {value for each in _blocks(self._block) for value in each.terminator.operands}
        for operation in reversed([*walk(self._block)]):
            product = changed.get(operation.value_id)
            if product is not None:
                kept.add(product.x)
            elif operation.opcode != "Transpose" or operation.value_id in kept:
                kept |= set(operation.operands)
        return kept

    def _product(self, product: Product, value: ValueId) -> CoreOperation:
        operands = (product.x, *self._encoded[product.weight.value, product.by_rows].values)
        attributes = Attributes.of({"format": self._format, "activations": self._activations})
        return replace(
            product.operation,
            value_id=value,
            opcode="QuantizedDot",
            operands=operands,
            attributes=attributes,
            source=None,
        )

    def _parameters(self, prefix: str) -> list[Parameter]:
        found = []
        for (value, by_rows), encoded in self._encoded.items():
            weight = self._weights[value]
            if not weight.is_parameter:
                continue
            names = self._names(weight, by_rows=by_rows)
            for number, array, name in zip(encoded.values, encoded.arrays, names, strict=False):
                found.append(Parameter(number, _type(array), name=prefix + name))
        return found

    def _constants(self) -> list[CoreOperation]:
        found = []
        for (value, _), encoded in self._encoded.items():
            if self._weights[value].is_parameter:
                continue
            for number, array in zip(encoded.values, encoded.arrays, strict=True):
                literal = TensorLiteral.from_array(array)
                opcode, attributes = constant_form(literal)
                found.append(CoreOperation(number, opcode, (), Attributes.of(attributes), literal.type))
        return found


def _type(array: Array) -> TensorType:
    dtype = DType.from_numpy(array.dtype)
    assert dtype is not None, array.dtype
    return TensorType(dtype, array.shape)


def _ids(block: Block) -> list[ValueId]:
    """Return all values of a block and of the regions in it."""
    found = [parameter.value_id for each in _blocks(block) for parameter in each.parameters]
    return found + [value for operation in walk(block) for value in operation.result_ids]


def _blocks(block: Block) -> list[Block]:
    """Return a block and those of the regions in it."""
    return [block, *(inner for each in block.operations for inner in blocks_within(each))]
