"""The functions that are made from records append the operation that they are named after, as it is."""

from __future__ import annotations

import inspect
import pickle
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as typed
from mind_mlir import DType, TensorType, interpret
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.languages.staging import Unit
from mind_mlir.numpy.generated import spellings
from mind_mlir.numpy.page import page
from mind_mlir.numpy.stub import stub
from mind_mlir.ops.registry import all_ops, by_opcode

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import Example, OpDef

mnp: Any = typed
BY_HAND: dict[str, Any] = import_module("mind_mlir.numpy").BY_HAND
FUNCTIONS = {name: getattr(mnp, name) for name in dir(mnp) if inspect.isfunction(getattr(mnp, name))}
GENERATED = {name: record for name, record in spellings().items() if name not in BY_HAND}


def types_of(record: OpDef, example: Example) -> list[TensorType]:
    """Return the types of an example's operands, with f32, i64 or i1 for ``T``."""
    found = []
    for index, spelled in enumerate(example.operands):
        name, _, extents = spelled.removesuffix("]").partition("[")
        dtypes = record.operand(index).dtypes
        preferred = (DType.F32, DType.SI64, DType.I1)
        dtype = DType.from_name(name) or next((each for each in preferred if each in dtypes), dtypes[0])
        found.append(TensorType(dtype, tuple(int(extent) for extent in extents.split(",") if extent.strip())))
    return found


def uses(record: OpDef) -> list[tuple[list[TensorType], dict[str, Any]]]:
    """Return the operand types and attributes of a record's examples, but for those without elements."""
    found = [(types_of(record, each), dict(each.attributes)) for each in record.examples]
    return [(types, how) for types, how in found if all(0 not in type_.extents for type_ in types)]


def applied(name: str, attributes: dict[str, Any]) -> mind_mlir.JitFunction:
    def function(*operands: Any) -> Any:
        return FUNCTIONS[name](*operands, **attributes)

    return mind_mlir.jit(function)


def built(record: OpDef, types: list[TensorType], attributes: dict[str, Any]) -> mind_mlir.Module:
    """Return the module of one operation, as its record has it."""
    unit = Unit(profile=EXTENDED_FUNCTIONS)
    b = unit.builder()
    results = b.emit_all(record.opcode, *map(b.parameter, types), **attributes)
    instance = unit.define("main", lambda name: b.function(name, results))
    return unit.module(instance, [f"operands.{index}" for index in range(len(types))])


@pytest.mark.parametrize("name", GENERATED)
def test_it_is_its_operation(name: str) -> None:
    record = GENERATED[name]
    for types, attributes in islice(uses(record), 6):
        found = applied(name, attributes).lower(*types).module
        assert str(found) == str(built(record, types, attributes))


@pytest.mark.parametrize(
    "name",
    ["add", "compare", "dot_general", "gather_windows", "layer_norm", "quantize", "reduce_window", "tanh"],
)
def test_it_computes_what_the_numpy_rule_does(name: str) -> None:
    """Within a function and outside of one; what is compiled has tests of its own, by operations."""
    record, rng = GENERATED[name], np.random.default_rng(3)
    types, attributes = uses(record)[0]
    operands = [
        np.asarray(
            rng.standard_normal(type_.extents) if type_.dtype.is_float else rng.integers(0, 2, type_.extents)
        ).astype(type_.dtype.numpy)
        for type_ in types
    ]
    module = built(record, types, attributes)
    expected = interpret(module, {f"operands.{index}": each for index, each in enumerate(operands)})
    for found in (applied(name, attributes)(*operands), FUNCTIONS[name](*operands, **attributes)):
        np.testing.assert_allclose(found, expected[0], rtol=1e-5, atol=1e-6)
        assert found.dtype == expected[0].dtype


def test_several_results_are_a_tuple() -> None:
    x = np.array([3.0, 1.0, 2.0], np.float32)
    values, indices = mnp.top_k(x, 2)
    assert values.tolist() == [3, 2]
    assert indices.tolist() == [0, 2]


def test_every_operation_has_a_function() -> None:
    known = {opcode for function in FUNCTIONS.values() for opcode in function.opcodes}
    elsewhere = {record.opcode for record in all_ops() if isinstance(record.in_numpy, str)}
    assert known | elsewhere == {record.opcode for record in all_ops()}
    assert not known & {"Input", "Call", "Cond", "While", "Scan"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_documentation(name: str) -> None:
    function = FUNCTIONS[name]
    text = inspect.getdoc(function)
    assert text
    assert text.splitlines()[0].endswith((".", ")"))
    assert max(map(len, text.splitlines())) <= 110
    record = by_opcode()[function.opcodes[0]]
    assert f"Operation `{record.opcode}`" in text
    assert f"Specification: {record.spec}." in " ".join(text.split())
    if name in GENERATED:
        parts: list[Any] = [*record.operands, *record.attributes]
        for each in parts:
            assert f"    {'*' * getattr(each, 'variadic', False)}{each.name}" in text
        assert record.summary in text
    assert function.__module__ == "mind_mlir.numpy"
    assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301 -- made here


def test_arguments_that_do_not_fit() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match=r"^exp\(\) missing a required argument: 'input'; it is exp\(input: "):
        mnp.exp()
    with pytest.raises(TypeError, match=r"^add\(\) too many positional arguments"):
        mnp.add(x, x, x)
    with pytest.raises(TypeError, match=r"^compare\(\) missing a required (keyword-only )?argument: 'op'"):
        mnp.compare(x, x)
    with pytest.raises(TypeError, match=r"^exp\(\) got an unexpected keyword argument 'out'"):
        mnp.exp(x, out=x)


def test_the_stub_is_that_of_the_records() -> None:
    """`make docs` writes it, and the page."""
    own = Path(str(mnp.__file__))
    assert own.with_suffix(".pyi").read_text(encoding="utf-8") == stub()
    assert (own.parents[2] / "docs" / "numpy.md").read_text(encoding="utf-8") == page()


def test_all_names_are_listed() -> None:
    assert dir(mnp) == sorted(mnp.__all__)
    dtypes = [getattr(mnp, name) for name in dir(mnp) if isinstance(getattr(mnp, name), type)]
    assert {np.dtype(each) for each in dtypes} == {dtype.numpy for dtype in EXTENDED_FUNCTIONS.dtypes}


def test_a_name_that_is_none() -> None:
    with pytest.raises(
        AttributeError, match=r"^module 'mind_mlir.numpy' has no function 'maximun'; did you mean"
    ):
        mnp.maximun  # noqa: B018 -- the look-up is what fails
    assert not hasattr(mnp, "__wrapped__")
