"""Functions that are one operation each, made from its record.

Such a function has the name that the `mind` dialect has for the operation, or those of `OpDef.in_numpy`. It
takes operands by place and attributes as keywords. Where numpy's arguments are others, there is a function by
hand in a module beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, cast

from mind_mlir.numpy.arrays import apply
from mind_mlir.numpy.calling import bind, callable_anywhere
from mind_mlir.numpy.documentation import docstring
from mind_mlir.ops.accumulators import ACCUMULATOR, OUTPUT
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import AttributeDef, OpDef

#: What dtypes are when they are left out depends on the operands.
_FOLLOWING = (ACCUMULATOR.name, OUTPUT.name)

#: How Python writes the type of an attribute.
_ANNOTATIONS = (
    (AttrKind.BOOL, "bool"),
    (AttrKind.I64, "int"),
    (AttrKind.F64, "float"),
    (AttrKind.I64_LIST, "Sequence[int]"),
    (AttrKind.STRING, "str"),
    (AttrKind.DTYPE, "DTypeLike"),
    (AttrKind.LITERAL, "float"),
    (AttrKind.PADDING, "str | Sequence[Sequence[int]]"),
)


def spellings() -> dict[str, OpDef]:
    """Return the operation that each name stands for, where it is one as it is."""
    found = {}
    for record in all_ops():
        names = (record.mnemonic,) if record.in_numpy is None else record.in_numpy
        if not isinstance(names, str):
            found.update(dict.fromkeys(names, record))
    return found


def function_of(name: str, record: OpDef) -> Callable[..., Any]:
    """Return the function called ``name``: it takes the operands by place, and attributes as keywords."""
    signature = _signature(record)

    def function(*operands: Any, **attributes: Any) -> Any:
        bind(name, signature, operands, attributes)
        results = apply(record, operands, attributes)
        return results[0] if len(results) == 1 else results

    function.__name__ = function.__qualname__ = name
    function.__doc__ = docstring(record)
    facts: Any = function
    facts.__signature__ = signature
    made: Any = callable_anywhere(function)
    made.opcodes = (record.opcode,)
    return cast("Callable[..., Any]", made)


def _signature(record: OpDef) -> Signature:
    places = [
        Parameter(
            operand.name,
            Parameter.VAR_POSITIONAL if operand.variadic else Parameter.POSITIONAL_ONLY,
            annotation="ArrayLike",
        )
        for operand in record.operands
    ]
    keywords = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=_default(each), annotation=_annotation(each))
        for each in sorted(record.attributes, key=lambda each: _default(each) is not Parameter.empty)
    ]
    results = len(record.results)
    returns = "Array" if results == 1 else f"tuple[{', '.join(['Array'] * results)}]"
    return Signature([*places, *keywords], return_annotation=returns)


def _default(attribute: AttributeDef) -> Any:
    """Return what an attribute is when it is left out: `Parameter.empty` where it may not be."""
    if attribute.default is not None:
        return attribute.default
    return None if attribute.name in _FOLLOWING else Parameter.empty


def _annotation(attribute: AttributeDef) -> str:
    if attribute.kind is AttrKind.ENUM:
        return 'Literal["' + '", "'.join(attribute.choices) + '"]'
    written = next(text for kind, text in _ANNOTATIONS if kind is attribute.kind)
    return f"{written} | None" if _default(attribute) is None else written
