"""`mind` dialect -> linalg on tensors: each operation by the linalg rule of its record.

Before: a module of `func.func`s over `mind` operations, integers with signedness; control flow in `scf.if`,
`scf.while` and `func.call`. After: a new module over linalg, tensor, arith, math and the same control flow,
and vectors where rows go through lists; integers signless, everything in destination-passing style; where
there is control flow, tensors of rank 0 are computed as scalars. A public function with run-time checks
returns one more result, its status (rank 1, i64): for each check the least and the greatest number that it
looks at, in the order of the returned `Outcome`s.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.ir.types import DType
from mind_mlir.lowering.control import CONTROL, functions_of, is_private
from mind_mlir.lowering.dialect import PREFIX, decode_attributes
from mind_mlir.lowering.loops import hoisted
from mind_mlir.lowering.run_time_checks import CheckedRegion, merged, pair_type, with_outcomes
from mind_mlir.mlir.bindings import arith, func, ir, tensor
from mind_mlir.mlir.context import LoweringContext, Outcome
from mind_mlir.mlir.locations import label_of, place_of
from mind_mlir.mlir.scalars import element_of, is_element_tensor, tensor_of
from mind_mlir.mlir.types import from_mlir_tensor, tensor_type
from mind_mlir.mlir.values import terminator_of
from mind_mlir.ops.registry import by_mnemonic
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir.ir.types import TensorType
    from mind_mlir.lowering.control import Callee
    from mind_mlir.mlir.bindings import Block, Module, Operation, Type, Value


@dataclass(frozen=True, slots=True)
class LinalgModule:
    """The lowered module, and the run-time checks of its public functions by name."""

    module: Module
    checks_of: Mapping[str, tuple[Outcome, ...]]

    @property
    def checks(self) -> tuple[Outcome, ...]:
        """The checks of all public functions, one after the other."""
        return tuple(check for checks in self.checks_of.values() for check in checks)


def to_linalg(source: Module, *, vectors: bool = True) -> LinalgModule:
    """Return the linalg form of a `mind` module, with vectors or without; the source is left as it is.

    Raises:
        UnsupportedError: E7002, the module holds something other than functions over `mind` operations and
            structured control flow, or functions that call themselves.
    """
    checks: dict[str, tuple[Outcome, ...]] = {}
    with source.context, ir.Location.unknown():
        for op in source.body.operations:
            if op.operation.name != "func.func" or len(op.regions[0].blocks) != 1:
                raise _unsupported(op.operation)
        functions = functions_of(source)
        if functions is None:
            raise _unsupported(source.body.operations[0].operation)
        result = ir.Module.create()
        types: dict[Any, TensorType] = {}
        for op in functions.order:
            name = op.name.value
            callee = functions.callees.get(name)
            with ir.InsertionPoint(result.body):
                lowering = FunctionLowering(
                    op, functions.callees, types, scalars=functions.has_control_flow, vectors=vectors
                )
                if callee is not None:
                    callee.checks = lowering.lower_callee(callee)
                if not is_private(op):
                    checks[name] = lowering.lower_public() if callee is None else lowering.wrap(callee)
        given = [op.name.value for op in source.body.operations]
        return LinalgModule(result, {name: checks[name] for name in given if name in checks})


class FunctionLowering:
    """Lowers one function.

    Attributes:
        callees: The functions that are called, by name; those that this one calls have been lowered.
        region: The region that is being lowered.
        function: The lowered function, which is incomplete.
    """

    def __init__(
        self,
        source: Any,
        callees: Mapping[str, Callee],
        types: dict[Any, TensorType],
        *,
        scalars: bool,
        vectors: bool,
    ) -> None:
        self.callees = callees
        self.region = CheckedRegion(source.operation)
        self._source = source
        self._name: str = source.name.value
        self._scalars, self._vectors = scalars, vectors
        self._values: dict[Value, Value] = {}
        self._types = types
        self._levels: dict[Value, int] = {}
        self._regions = [self.region]
        self.function: Operation | None = None
        self._names = 0

    def lower_public(self) -> tuple[Outcome, ...]:
        """Append the function as callers from outside see it; return its checks."""
        function, body = self._public_function()
        with ir.InsertionPoint(body):
            values = self._given(body)
            if self._scalars:
                values = [element_of(value) for value in values]
            results = self.operations(self._source.body.blocks[0], values)
            checks = self.region.checks
            if self._scalars:
                checks = list(merged(checks).values())
            self._return(function, results, checks)
        return tuple(checks)

    def lower_callee(self, callee: Callee) -> tuple[Outcome, ...]:
        """Append the function as other functions of the module call it; return its checks."""
        arguments = [self.carried_type(argument) for argument in self._arguments]
        flag = [ir.IntegerType.get_signless(1)] if callee.has_loops else []
        function, body = self._function(callee.symbol, [*arguments, *flag], private=True)
        self.region.start = body.arguments[len(arguments)] if callee.has_loops else None
        with ir.InsertionPoint(body):
            results = self.operations(self._source.body.blocks[0], list(body.arguments)[: len(arguments)])
            checks = list(merged(self.region.checks).values())
            ends = [end for check in checks for end in (check.smallest, check.largest)]
            with self._terminator.location:
                func.ReturnOp([*results, *ends])
        self._complete(function, [*results, *ends])
        return tuple(checks)

    def wrap(self, callee: Callee) -> tuple[Outcome, ...]:
        """Append the public function that calls ``callee``, as functions of the module do, too."""
        function, body = self._public_function()
        types = [self.carried_type(result) for result in self._terminator.operands]
        ends = [pair_type()] * (2 * len(callee.checks))
        with ir.InsertionPoint(body):
            operands = [element_of(argument) for argument in self._given(body)]
            if callee.has_loops:
                boolean = ir.IntegerType.get_signless(1)
                operands.append(arith.ConstantOp(boolean, ir.BoolAttr.get(True)).result)
            call = func.CallOp([*types, *ends], ir.FlatSymbolRefAttr.get(callee.symbol), operands)
            results = list(call.results)
            checks = with_outcomes(callee.checks, results[len(types) :])
            self._return(function, results[: len(types)], checks)
        return tuple(checks)

    def _public_function(self) -> tuple[Any, Block]:
        """Append the function as callers from outside see it, and return it with its empty block."""
        arguments = [tensor_type(self._type(argument)) for argument in self._arguments]
        function, body = self._function(self._name, arguments)
        if "arg_attrs" in self._source.attributes:
            function.attributes["arg_attrs"] = self._source.attributes["arg_attrs"]
        return function, body

    def _given(self, body: Block) -> list[Value]:
        """Return the arguments of a public function, where ``body`` begins.

        Of an integer of 4 bits callers give a byte, whose upper half is for the compiled code to fill.
        """
        given = []
        for argument, taken in zip(self._arguments, body.arguments, strict=True):
            type_, value = self._type(argument), taken
            if type_.dtype.bits == 4:
                context = LoweringContext("", "", (taken,), (type_,), {}, type_)
                value = context.elementwise(context.arithmetic(type_.dtype).rounded)
            given.append(value)
        return given

    def _taken(self, returned: Value, value: Value) -> Value:
        """Return a result of a public function as callers take it.

        The upper half of a byte that holds an integer of 4 bits is zero, as in numpy arrays.
        """
        type_, value = self._type(returned), _as_tensor(value)
        if type_.dtype is not DType.SI4:
            return value
        context = LoweringContext("", "", (value,), (type_,), {}, type_)
        lower = context.arithmetic(DType.SI8).constant(15)
        return context.elementwise(lambda x: arith.AndIOp(x, lower).result)

    @property
    def _arguments(self) -> list[Value]:
        return list(self._source.body.blocks[0].arguments)

    @property
    def _terminator(self) -> Operation:
        return terminator_of(self._source.body.blocks[0])

    def _function(self, name: str, arguments: Sequence[Type], *, private: bool = False) -> tuple[Any, Block]:
        """Append a function; its type is completed when it is known what there is to return."""
        visibility = "private" if private else None
        function = func.FuncOp(name, (list(arguments), []), visibility=visibility)
        locations = [argument.location for argument in self._arguments]
        locations += [ir.Location.unknown()] * (len(arguments) - len(locations))
        self.function = function.operation
        return function, ir.Block.create_at_start(function.body, list(arguments), locations)

    def _return(self, function: Any, results: Sequence[Value], checks: Sequence[Outcome]) -> None:
        """End a public function: return ``results`` as tensors, and the outcome of ``checks``."""
        with self._terminator.location:
            values = [self._taken(*pair) for pair in zip(self._terminator.operands, results, strict=True)]
            if checks:
                ends = [end for check in checks for end in (check.smallest, check.largest)]
                status = ir.RankedTensorType.get([len(ends)], pair_type())
                values.append(tensor.FromElementsOp(status, ends).result)
            func.ReturnOp(values)
        self._complete(function, values)

    def _complete(self, function: Any, results: Sequence[Value]) -> None:
        arguments = [argument.type for argument in function.body.blocks[0].arguments]
        type_ = ir.FunctionType.get(arguments, [value.type for value in results])
        function.attributes["function_type"] = ir.TypeAttr.get(type_)

    # Regions.

    @property
    def loops(self) -> int:
        """The number of loops around what is being lowered."""
        return sum(region.is_loop for region in self._regions)

    def fresh_name(self, what: str) -> str:
        """Return a name for a function that is a part of this one."""
        self._names += 1
        return f"{self._name}.{what}{self._names}"

    @contextmanager
    def inside(self, operation: Operation, *, is_loop: bool = False) -> Iterator[CheckedRegion]:
        """Lower a region of ``operation``, which is at hand without it."""
        self.region = CheckedRegion(operation, is_loop=is_loop, parent=self.region)
        self._regions.append(self.region)
        yield self.region
        self._regions.pop()
        self.region = self._regions[-1]

    def operations(self, block: Block, arguments: Sequence[Value]) -> list[Value]:
        """Lower a ``block`` of the source, given its arguments; return the operands of its terminator."""
        inside = len(self._regions) - 1
        self._values.update(zip(block.arguments, arguments, strict=True))
        self._levels.update(dict.fromkeys(block.arguments, inside))
        *operations, terminator = [view.operation for view in block.operations]
        places = hoisted(operations, self._levels, inside, self._outermost()) if self.region.is_loop else {}
        for number, operation in enumerate(operations):
            deliver()
            level = places.get(number, inside)
            if level == inside:
                results = self._operation(operation)
            else:
                with ir.InsertionPoint(self._regions[level + 1].operation):
                    results = self._operation(operation)
            self._values.update(zip(operation.results, results, strict=True))
            if self._scalars:  # else there are no loops
                self._levels.update(dict.fromkeys(operation.results, level))
        return [self._values[operand] for operand in terminator.operands]

    def _outermost(self) -> int:
        """Return the level of the outermost region with only loops between it and the one at hand."""
        level = len(self._regions) - 1
        while level and self._regions[level].is_loop:
            level -= 1
        return level

    # Operations.

    def value(self, value: Value) -> Value:
        """Return what ``value`` of the source is now."""
        return self._values[value]

    def carried_type(self, value: Value) -> Type:
        """Return the type in which control flow carries ``value``: tensors of rank 0 as scalars."""
        type_ = tensor_type(self._type(value))
        return type_ if type_.rank else type_.element_type

    def _operation(self, operation: Operation) -> Sequence[Value]:
        name = operation.name
        rule = CONTROL.get(name)
        if rule is not None:
            if any(len(region.blocks) > 1 for region in operation.regions):
                raise _unsupported(operation)
            with operation.location:
                return rule(self, operation)
        record = by_mnemonic().get(name.removeprefix(PREFIX))
        if record is None or record.lower is None or not name.startswith(PREFIX):
            raise _unsupported(operation)
        with operation.location:
            operands = [self._values[operand] for operand in operation.operands]
            if self._scalars:
                operands = [_as_tensor(value) for value in operands]
            context = LoweringContext(
                opcode=record.opcode,
                label=label_of(operation.location) or f"%{len(self._values)}",
                operands=tuple(operands),
                operand_types=tuple(self._type(operand) for operand in operation.operands),
                attributes=decode_attributes(record, operation),
                result_type=self._type(operation.results[0]),
                checks=self.region.checks,
                place=lambda: place_of(operation.location),
                function=self._name,
                scalars=self._scalars,
                vectors=self._vectors,
                result_types=tuple(self._type(result) for result in operation.results),
            )
            lowered = record.lower(context)
            results = list(lowered) if isinstance(lowered, (list, tuple)) else [lowered]
            if not self._scalars:
                return results
            elements = [element_of(result) for result in results]
        for wrapped in dict.fromkeys((*operands, *results)):
            _erase_if_unused(wrapped)
        return elements

    def _type(self, value: Value) -> TensorType:
        type_ = value.type
        if type_ not in self._types:
            ours = from_mlir_tensor(type_)
            if ours is None:
                raise _unsupported(value.owner)
            self._types[type_] = ours
        return self._types[type_]


def _as_tensor(value: Value) -> Value:
    return value if isinstance(value.type, ir.RankedTensorType) else tensor_of(value)


def _erase_if_unused(value: Value) -> None:
    """Erase the tensor that was put around an element for a rule that did not need it."""
    if not is_element_tensor(value) or isinstance(value, ir.BlockArgument):
        return
    owner = value.owner.operation
    if owner.name in ("tensor.from_elements", "tensor.extract_slice") and not any(True for _ in value.uses):
        owner.erase()


def _unsupported(operation: Any) -> UnsupportedError:
    return UnsupportedError(
        Diagnostic(
            "E7002",
            f"cannot lower '{getattr(operation, 'name', operation)}' to linalg",
            help="the module must hold functions of one block over `mind` operations on static tensors",
        )
    )
