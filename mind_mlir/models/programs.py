"""Programs of models: modules that are traced, with what they take of arguments and of weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.ir.result_names import distinct
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.staging import Unit
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.tracing.jit import JitFunction

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.support.pytrees import Form


@dataclass(frozen=True, slots=True)
class ModelProgram:
    """A model for arguments of some shapes.

    Attributes:
        module: The module; its parameters are the inputs, and then the weights.
        inputs: The places of the leaves of the arguments that it takes.
        weights: The weights that it takes, by what its parameters are called.
        returned: How its results are put together.
    """

    module: Module
    inputs: tuple[int, ...]
    weights: Mapping[str, str]
    returned: Form

    def frozen(self, weights: Mapping[str, Array]) -> Module:
        """Return the module with the weights as constants."""
        return with_constants(
            self.module, {label: weights[name] for label, name in self.weights.items()} or None
        )


def traced(
    run: Callable[[Sequence[Any]], Any],
    inputs: Mapping[int, tuple[str, TensorType]],
    weights: Mapping[str, TensorType],
    name: str,
    outputs: Sequence[str] = (),
) -> ModelProgram:
    """Return the program that a function appends to a trace.

    Args:
        run: Takes arrays for the inputs, and then for the weights.
        inputs: What the inputs are called, and their types, by their places among the leaves.
        weights: The types of the weights by name.
        name: What messages call the function.
        outputs: What its results are called, as far as that is known.
    """

    def main(*values: Any) -> Any:
        return run(values)

    facts: Any = main
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    types = [*(type_ for _, type_ in inputs.values()), *weights.values()]
    facts.__signature__ = inspect.Signature([inspect.Parameter(f"v{at}", kind) for at in range(len(types))])
    main.__name__ = main.__qualname__ = name
    function = JitFunction(main, promotes=False)
    _, form = function.flatten(types, {})
    unit = Unit(profile=EXTENDED_FUNCTIONS)
    instance = function.instance(unit, form, types)
    labels = distinct([*(label for label, _ in inputs.values()), *weights])
    named = tuple(distinct(outputs)) if len(outputs) == len(instance.results) else ()
    module = unit.module(replace(instance, result_names=named), labels)
    taken = dict(zip(labels[len(inputs) :], weights, strict=True))
    return ModelProgram(module, tuple(inputs), taken, instance.form)


def type_of(leaf: Any) -> TensorType:
    """Return the type of an array, or a type itself (UnsupportedError: E7001, it has a dtype of others)."""
    if isinstance(leaf, TensorType):
        return leaf
    dtype = DType.from_numpy(leaf.dtype)
    if dtype is not None:
        return TensorType(dtype, tuple(leaf.shape))
    found = Diagnostic(
        "E7001",
        f"there are no arrays of {'strings' if leaf.dtype.hasobject else leaf.dtype} here",
        help="the page on ONNX models lists what is read",
    )
    raise UnsupportedError(found)
