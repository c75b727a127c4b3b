"""Derivatives of functions that are called: one function for each callee and what is wanted of it.

    func @f_vjp(parameters of @f, cotangents of results) -> (cotangents of parameters)

It computes what `f` does once more, as far as it is needed, and goes back through it.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.builders.builder import Builder
from mind_mlir.ir.regions import live_operations
from mind_mlir.ops.contexts import Signature
from mind_mlir.passes.backward import Backward, full
from mind_mlir.passes.unselected import Unselected
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.ir.module import Function
    from mind_mlir.ir.value import Value
    from mind_mlir.passes.activity import Flow, Summaries

#: Calls may ask for the cotangents of some parameters, and have those of some results; from this many such
#: choices for one function on, a call is given one that fits all. So gradient modules grow linearly.
_VARIANTS = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """A derivative: of which function, with respect to which parameters, from which results' cotangents."""

    callee: str
    parameters: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(slots=True)
class FunctionDerivatives:
    """Makes the derivatives that calls ask for.

    Attributes:
        functions: The functions of the module by name, in structured form.
        flows: Their graphs.
        summaries: Which of their parameters reach which of their results.
        signatures: Of these functions and of the derivatives.
        extensions: Whether rules outside Core v1 may be used.
        profile: The name of the module's profile.
        made: The derivatives.
        findings: What went wrong in them.
    """

    functions: Mapping[str, Function]
    flows: Mapping[str, Flow]
    summaries: Summaries
    signatures: dict[str, Signature | None]
    extensions: bool
    profile: str
    made: list[Function] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    _names: dict[Wanted, str] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _pending: deque[Wanted] = field(default_factory=deque)
    _unselected: dict[str, Unselected] = field(default_factory=dict)

    def new_builder(self) -> Builder:
        """Return a builder of a function of the gradient module."""
        return Builder(functions=self.signatures, profile=self.profile)

    def backward(self, builder: Builder, name: str, chosen: Sequence[int], seeded: Sequence[int]) -> Backward:
        """Return what goes back through function ``name``, for these parameters and results.

        The builder has the function's parameters, and appends its operations.
        """
        block = self.functions[name].entry
        given = builder.values
        values = {parameter.value_id: given[place] for place, parameter in enumerate(block.parameters)}
        flow = self.flows[name]
        varying = flow.reached_from([block.parameters[place].value_id for place in chosen])
        active = varying & flow.reaching([block.terminator.operands[place] for place in seeded])
        call = _Calls(self, builder)
        backward = Backward(
            builder, values, active, FrozenDict({}), self._unselected_of(name), self.extensions, call
        )
        backward.forward(block.operations)
        return backward

    def _unselected_of(self, name: str) -> Unselected:
        if name not in self._unselected:
            self._unselected[name] = Unselected.of(self.functions[name])
        return self._unselected[name]

    def finish(self) -> None:
        """Make all derivatives that have been asked for, and those that these ask for."""
        while self._pending:
            self.made.append(self._make(self._pending.popleft()))

    def name_of(self, wanted: Wanted) -> tuple[str, Wanted]:
        """Return the name of a derivative, and what exactly it is."""
        if wanted not in self._names and self._counts[wanted.callee] >= _VARIANTS:
            pairs = self.summaries[wanted.callee]
            parameters = tuple(sorted({parameter for parameter, _ in pairs}))
            wanted = Wanted(wanted.callee, parameters, tuple(sorted({result for _, result in pairs})))
        if wanted not in self._names:
            self._counts[wanted.callee] += 1
            self._names[wanted] = self._declare(wanted)
            self._pending.append(wanted)
        return self._names[wanted], wanted

    def _declare(self, wanted: Wanted) -> str:
        name = f"{wanted.callee}_vjp"
        count = 0
        while name in self.signatures:
            count += 1
            name = f"{wanted.callee}_vjp_{count}"
        primal = self.signatures[wanted.callee]
        assert primal is not None, "verified functions have a signature"
        cotangents = tuple(primal.results[place] for place in wanted.results)
        gradients = tuple(primal.parameters[place] for place in wanted.parameters)
        self.signatures[name] = Signature((*primal.parameters, *cotangents), gradients)
        return name

    def _make(self, wanted: Wanted) -> Function:
        builder = self.new_builder()
        name = self._names[wanted]
        signature = self.signatures[name]
        assert signature is not None, "it was made here"
        for type_ in signature.parameters:
            builder.parameter(type_)
        block = self.functions[wanted.callee].entry
        backward = self.backward(builder, wanted.callee, wanted.parameters, wanted.results)
        cotangents = builder.values[len(block.parameters) :]
        for place, cotangent in zip(wanted.results, cotangents, strict=True):
            result = block.terminator.operands[place]
            if result in backward.varying:
                backward.accumulate(result, cotangent)
        backward.visit(block.operations)
        self.findings += backward.problems()
        chosen = [block.parameters[place] for place in wanted.parameters]
        gradients = [
            backward.gradients.get(parameter.value_id) or full(builder, parameter.tensor_type, 0)
            for parameter in chosen
        ]
        builder.operations = live_operations(builder.operations, [value.id for value in gradients])
        return builder.function(name, gradients, public=False)


@dataclass(frozen=True, slots=True)
class _Calls:
    """Appends calls of derivatives."""

    derivatives: FunctionDerivatives
    builder: Builder

    def __call__(
        self,
        callee: str,
        operands: Sequence[Value],
        cotangents: Sequence[Value | None],
        needs: Sequence[bool],
    ) -> list[Value | None]:
        pairs = [
            (parameter, result)
            for parameter, result in self.derivatives.summaries[callee]
            if needs[parameter] and cotangents[result] is not None
        ]
        parameters = tuple(sorted({parameter for parameter, _ in pairs}))
        results = tuple(sorted({result for _, result in pairs}))
        found: list[Value | None] = [None] * len(operands)
        if not pairs:
            return found
        name, wanted = self.derivatives.name_of(Wanted(callee, parameters, results))
        signature = self.derivatives.signatures[callee]
        assert signature is not None, "verified functions have a signature"
        given = [
            cotangents[place] or full(self.builder, signature.results[place], 0) for place in wanted.results
        ]
        values = self.builder.emit_all("Call", *operands, *given, callee=name)
        for place, value in zip(wanted.parameters, values, strict=True):
            found[place] = value
        return found
