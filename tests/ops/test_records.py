"""What every operation record promises, checked for all of them."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import starmap
from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest
from harness import (
    Use,
    assert_agrees,
    compile_uses,
    edge_operands,
    findings,
    random_array,
    random_operands,
    results_of,
    run_numpy_all,
    run_vjp,
    use_of,
    uses_of,
)

import mind_mlir
from mind_mlir import parse, verify
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.dtype_support import YES, support
from mind_mlir.ops.example_types import dtypes_of
from mind_mlir.ops.opdef import Domain, ExampleModule, NotDifferentiable, OpDef
from mind_mlir.ops.registry import FAMILIES, all_ops, by_mnemonic, by_opcode, lookup
from mind_mlir.ops.unknown import nearest_opcode, unknown_operation

if TYPE_CHECKING:
    from collections.abc import Sequence

# Inputs are bound by the caller, and control flow runs whatever is in it: their own rules alone say nothing.
# What several ranks do together has tests of its own: `tests/collectives/test_collectives.py`.
EVALUATED = [record for record in all_ops() if record.in_dialect and not record.collective]
OPERATIONS = [pytest.param(record, id=record.opcode) for record in all_ops()]
WITH_EXAMPLES = [pytest.param(record, id=record.opcode) for record in all_ops() if record.examples]


def _is_other(dtype: Any) -> bool:
    """Return whether Core v1 lacks ``dtype``."""
    return dtype is not None and dtype not in CORE_V1.dtypes


def test_the_table_of_families_names_the_records() -> None:
    held = {name: import_module(f"mind_mlir.ops.{name}").OPERATIONS for name in FAMILIES}
    assert {name: tuple(record.opcode for record in records) for name, records in held.items()} == FAMILIES
    assert list(by_opcode().values()) == list(all_ops())


CASES = [
    pytest.param(record, dtype, id=f"{record.opcode}-{dtype.core_name if dtype else 'any'}")
    for record in EVALUATED
    for dtype in dtypes_of(record)
]
CORE_CASES = [case for case in CASES if not _is_other(case.values[1])]
OTHER_DTYPES = [
    pytest.param(record, id=record.opcode) for record in EVALUATED if any(map(_is_other, dtypes_of(record)))
]
DIFFERENTIABLE = [
    pytest.param(record, id=record.opcode)
    for record in EVALUATED
    if not isinstance(record.derivative, NotDifferentiable)
]


@pytest.mark.parametrize("record", OPERATIONS)
def test_every_field_is_filled(record: OpDef) -> None:
    assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", record.opcode)
    assert re.fullmatch(r"[a-z][a-z0-9_]*", record.mnemonic)
    assert record.mnemonic.replace("_", "") == record.opcode.lower()
    assert re.fullmatch(r"[A-Z][a-z]+s .*\.", record.summary), "a summary is a sentence: 'Computes ... .'"
    assert record.description.endswith(".")
    assert re.match(
        r"(core-ir|shapes|autodiff|core-ir-page|ptir-v0\.4|distributed|partitioning)\.md, |StableHLO spec",
        record.spec,
    )
    assert record.examples or record.programs
    for rule in (record.type_rule, record.evaluate):
        assert callable(rule)
    assert callable(record.lower) or record.opcode == "Input" or record.upstream
    if isinstance(record.derivative, NotDifferentiable):
        assert record.derivative.reason
    else:
        assert callable(record.derivative)
    for choice in record.choices:
        assert choice.endswith("."), "an implementation-defined choice is a sentence"
    for operand in record.operands:
        assert operand.name
        assert operand.dtypes
        assert re.fullmatch(r"E\d{4}", operand.dtype_code)
    for attribute in record.attributes:
        assert attribute.doc
        assert re.fullmatch(r"E\d{4}", attribute.code)
        assert attribute.default is None or not attribute.choices or attribute.default in attribute.choices
    for alias in record.aliases:
        assert alias.profile
        assert alias.name not in by_opcode()
        assert all(record.attribute(name) for name in alias.attributes)


def test_names_are_unique() -> None:
    assert len(by_opcode()) == len(by_mnemonic()) == len(all_ops())
    spellings = [(alias.profile, alias.name) for record in all_ops() for alias in record.aliases]
    assert len(spellings) == len(set(spellings))


def test_lookup_knows_canonical_opcodes_only() -> None:
    assert all(lookup(record.opcode) is record for record in all_ops())
    assert lookup("add") is None
    assert lookup("tensor.add") is None
    assert lookup("tensor.add", "core-v1") is None


def test_lookup_in_a_profile_knows_its_aliases_and_what_they_fix() -> None:
    assert lookup("tensor.add", "core-functions") == (by_opcode()["Add"], {})
    assert lookup("Add", "core-functions") == lookup("Add", "core-v1") == (by_opcode()["Add"], {})
    for alias, opcode in (("tensor.sum_all", "Sum"), ("tensor.mean_all", "Mean")):
        fixed = {"axes": (), "keepdims": False}
        assert lookup(alias, "core-functions") == (by_opcode()[opcode], fixed)


def test_aliases_of_another_profile_say_so() -> None:
    finding = unknown_operation("tensor.sum_all", None)
    assert finding.help is not None
    assert finding.help.startswith("write Sum: tensor.sum_all is its name in profile core-functions")


@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_examples_are_valid(record: OpDef, dtype: DType | None) -> None:
    for use in uses_of(record, dtype):
        assert findings(record, use.types, use.attributes) == [], str(use)


@pytest.mark.parametrize(("record", "dtype"), CORE_CASES)
def test_compiled_code_agrees_with_numpy(record: OpDef, dtype: DType | None) -> None:
    """On ordinary values, and on awkward ones."""
    uses = uses_of(record, dtype)
    call = compile_uses(uses)
    for values in (random_operands, edge_operands):
        rng = np.random.default_rng(20261001)
        operands = [values(use, rng) for use in uses]
        _check(uses, operands, call(operands))


@pytest.mark.parametrize("record", OTHER_DTYPES)
def test_compiled_code_agrees_with_numpy_in_dtypes_that_core_lacks(record: OpDef) -> None:
    """All uses that PTIR allows, in all these dtypes, are one function: most of the time is a function's."""
    uses = [use for dtype in dtypes_of(record) if _is_other(dtype) for use in uses_of(record, dtype)]
    call = compile_uses(uses)
    for values in (random_operands, edge_operands):
        rng = np.random.default_rng(20261001)
        operands = [values(use, rng) for use in uses]
        _check(uses, operands, call(operands))


#: Constants of all dtypes are tested in `tests/ir/test_dtypes.py`.
IN_CONTRACT = [
    pytest.param(r, id=r.opcode) for r in all_ops() if r.contract and r.examples and r.opcode != "ConstTensor"
]


@pytest.mark.parametrize("record", IN_CONTRACT)
def test_what_the_table_of_dtypes_says_is_compiled(record: OpDef) -> None:
    """The two tests above run each dtype that the table has a `yes` for."""
    run = {dtype for dtype in dtypes_of(record) if dtype is not None}
    for example in record.examples:
        use = use_of(record, example, DType.F32)
        run |= {type_.dtype for type_ in use.types[:1]} if None in dtypes_of(record) else set()
        run |= {value for value in use.attributes.values() if isinstance(value, DType)}
        run |= {value.type.dtype for value in use.attributes.values() if isinstance(value, TensorLiteral)}
    assert {dtype for dtype in DType if support(record, dtype)[0] == YES} <= run


def _check(uses: Sequence[Use], operands: Sequence[list[Any]], results: Sequence[Any]) -> None:
    for use, arrays, actual in zip(uses, operands, results, strict=True):
        expected = run_numpy_all(use.record, arrays, use.attributes)
        try:
            assert_agrees(use.record, actual, expected, arrays, use.attributes)
        except AssertionError as error:
            error.add_note(f"in {use}")
            raise


PROGRAMS = [
    pytest.param(record, program, id=f"{record.opcode}-{index}")
    for record in all_ops()
    for index, program in enumerate(record.programs)
]


@pytest.mark.parametrize(("record", "program"), PROGRAMS)
def test_programs_use_the_operation_and_compile_to_what_numpy_gives(
    record: OpDef, program: ExampleModule
) -> None:
    module = verify(parse(program.text))
    blocks = [block for function in module.functions for block in function.blocks]
    assert any(operation.opcode == record.opcode for operation in operations_of(blocks))
    executables = [mind_mlir.compile(module, opt_level=level) for level in (0, 3)]
    rng = np.random.default_rng(3)
    for _ in range(5):  # so that branches go both ways
        arguments = {
            str(parameter.name): random_array(parameter.tensor_type, Domain.ANY, rng)
            for parameter in module.functions["main"].parameters
        }
        expected = mind_mlir.interpret(module, arguments)
        for executable in executables:
            results = guarded.call_executable(executable, arguments)
            for actual, wanted in zip(results, expected, strict=True):
                np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("record", [pytest.param(record, id=record.opcode) for record in EVALUATED])
def test_results_do_not_depend_on_the_optimisation_level(record: OpDef) -> None:
    uses = uses_of(record, DType.F32 if DType.F32 in dtypes_of(record) else dtypes_of(record)[0])
    rng = np.random.default_rng(5)
    operands = [random_operands(use, rng) for use in uses]
    plain, optimised = (compile_uses(uses, opt_level)(operands) for opt_level in (0, 3))
    for use, left, right in zip(uses, plain, optimised, strict=True):
        for one, other in zip(results_of(left), results_of(right), strict=True):
            assert one.tobytes() == other.tobytes(), str(use)


@pytest.mark.parametrize("record", DIFFERENTIABLE)
def test_derivative_matches_central_differences(record: OpDef) -> None:
    allowed = dtypes_of(record)
    dtype = DType.F64 if DType.F64 in allowed else allowed[0]
    rng = np.random.default_rng(11)
    for use in uses_of(record, dtype):
        if any(type_.dtype is DType.F64 for type_ in use.types):
            _check_derivative(use, rng)


def _check_derivative(use: Use, rng: np.random.Generator) -> None:
    """Compare g . (f(x + h v) - f(x - h v)) / 2h with sum(vjp(g) . v) for random g and v."""
    record, step = use.record, 1e-6
    operands = random_operands(use, rng)
    result = run_numpy_all(record, operands, use.attributes)[0]
    if result.dtype != np.float64:
        return  # nothing to differentiate, or not to this precision
    seed = rng.standard_normal(result.shape)
    cotangents = run_vjp(record, operands, seed, use.attributes)
    for index, (operand, cotangent) in enumerate(zip(operands, cotangents, strict=True)):
        if operand.dtype != np.float64:
            assert cotangent is None, f"{use}: operand {index} carries no gradient"
            continue
        assert cotangent is not None, f"{use}: the gradient of operand {index} is dropped"
        direction = rng.standard_normal(operand.shape)
        ends = []
        for signed in (step, -step):
            moved = [*operands[:index], np.asarray(operand + signed * direction), *operands[index + 1 :]]
            ends.append(run_numpy_all(record, moved, use.attributes)[0])
        # A constant NaN or infinity in the result (a padding value) does not move.
        still = (ends[0] == ends[1]) | (np.isnan(ends[0]) & np.isnan(ends[1]))
        with np.errstate(invalid="ignore"):
            difference = np.where(still, 0.0, ends[0] - ends[1])
        numeric = np.sum(seed * difference) / (2 * step)
        # The driver sums a cotangent back over what broadcasting stretched; so does this product.
        assert np.broadcast_shapes(cotangent.shape, operand.shape) == cotangent.shape
        analytic = np.sum(cotangent * direction)
        assert analytic == pytest.approx(numeric, rel=1e-5, abs=1e-7), f"{use}, operand {index}"


@pytest.mark.parametrize("record", WITH_EXAMPLES)
def test_wrong_operand_count_is_E2007(record: OpDef) -> None:  # noqa: N802 -- the code as it is spelled
    (example, *_) = record.examples
    scalar = TensorType(DType.F32)
    least = len(record.operands) - record.is_variadic
    for count in ({least - 1} if record.is_variadic else {least - 1, least + 1}) - {-1}:
        (finding,) = findings(record, [scalar] * count, example.attributes)
        assert finding.code == "E2007"
        assert (finding.context["expected"], finding.context["found"]) == (least, count)
        assert finding.help


@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_disallowed_dtype_is_reported(record: OpDef, dtype: DType | None) -> None:
    use = uses_of(record, dtype)[0]
    for index, operand in enumerate(record.operands):
        for wrong in (dtype for dtype in DType if dtype not in operand.dtypes):
            types = list(use.types)
            types[index] = types[index].with_dtype(wrong)
            codes = [finding.code for finding in findings(record, types, use.attributes)]
            assert codes == [operand.dtype_code]


def _mixed_dtypes() -> list[Any]:
    return [
        pytest.param(record, id=record.opcode)
        for record in EVALUATED
        if record.same_dtype and len(record.operands) > 1 and len(record.operands[0].dtypes) > 1
    ]


@pytest.mark.parametrize("record", _mixed_dtypes())
def test_mixed_dtypes_are_E2004(record: OpDef) -> None:  # noqa: N802 -- the code as it is spelled
    floats = DType.F32 in record.operands[0].dtypes
    left, right = (DType.F32, DType.F64) if floats else (DType.SI32, DType.SI64)
    use = uses_of(record, left)[0]
    types = [use.types[0], use.types[1].with_dtype(right), *use.types[2:]]
    (finding,) = findings(record, types, use.attributes)
    assert finding.code == "E2004"
    assert "Dtype mismatch" in finding.message
    assert (finding.context["left"], finding.context["right"]) == (left.core_name, right.core_name)


@pytest.mark.parametrize("record", WITH_EXAMPLES)
def test_unknown_attribute_is_E1103(record: OpDef) -> None:  # noqa: N802 -- the code as it is spelled
    use = uses_of(record, dtypes_of(record)[0])[0]
    (finding,) = findings(record, use.types, {**use.attributes, "nonsense": True})
    assert finding.code == "E1103"
    assert "nonsense" in finding.message


def _attributes() -> list[Any]:
    return list(
        starmap(
            lambda record, attribute: pytest.param(
                record, attribute.name, id=f"{record.opcode}-{attribute.name}"
            ),
            ((record, attribute) for record in EVALUATED for attribute in record.attributes),
        )
    )


@pytest.mark.parametrize(("record", "name"), _attributes())
def test_missing_or_malformed_attribute_is_reported(record: OpDef, name: str) -> None:
    use = uses_of(record, dtypes_of(record)[0])[0]
    definition = record.attribute(name)
    assert definition is not None
    rest = {key: value for key, value in use.attributes.items() if key != name}
    codes = [finding.code for finding in findings(record, use.types, rest)]
    if definition.default is None:
        assert codes == [definition.code]
    malformed = findings(record, use.types, {**rest, name: "no" if definition.kind is AttrKind.F64 else 1.5})
    assert [finding.code for finding in malformed] == [definition.code]
    assert malformed[0].help


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Relux", "Relu"),
        ("relu", "Relu"),
        ("mat_mul", "MatMul"),
        ("Transposee", "Transpose"),
        ("Xyzzy", None),
    ],
)
def test_the_nearest_opcode(written: str, meant: str | None) -> None:
    assert nearest_opcode(written) == meant
    found = unknown_operation(written, None)
    assert (found.code, found.context["suggestion"]) == ("E1102", meant)
    assert found.help == (
        f"did you mean {meant}?" if meant else "the operation reference lists all operations"
    )


def test_operations_with_regions_say_how_values_flow() -> None:
    assert {record.opcode for record in all_ops() if record.flow} == {
        record.opcode for record in all_ops() if record.regions
    }


def test_names_elsewhere_stand_for_one_operation() -> None:
    names = [record.stablehlo_name for record in all_ops() if record.stablehlo_name]
    names += [f"numpy.{name}" for record in all_ops() for name in _names_in_numpy(record)]
    assert len(names) == len(set(names))


def _names_in_numpy(record: OpDef) -> tuple[str, ...]:
    names = (record.mnemonic,) if record.in_numpy is None else record.in_numpy
    return () if isinstance(names, str) else names
