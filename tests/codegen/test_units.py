"""Modules in units: the same results whatever is made apart, and LLVM's passes only where they gain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.codegen import ahead, cutting, engines, entries, machine_code, units
from mind_mlir.codegen.entries import add_entries
from mind_mlir.diagnostics import InternalError
from mind_mlir.lowering.llvm_hints import SCALAR_ATTRIBUTE
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.mlir import bindings
from mind_mlir.runtime import compiled_code

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, np.dtype[Any]]
EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = (33, 47, 64, 71, 96, 130)


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a function of one operation be worth a unit."""
    monkeypatch.setattr(cutting, "_WORTHWHILE", 1)


def exponentials(sizes: Sequence[int] = SIZES) -> mind_mlir.Module:
    """Return a module of many kernels: exponentials and their sums for matrices of different sizes."""
    lines = [f'%{i} = Input {{name="x{i}"}} : tensor<f32[7, {size}]>' for i, size in enumerate(sizes)]
    outputs = []
    for i, size in enumerate(sizes):
        whole, column, number = f"tensor<f32[7, {size}]>", "tensor<f32[7, 1]>", len(sizes) + 3 * i
        lines += [
            f"%{number} = Exp (%{i}) : {whole}",
            f"%{number + 1} = Sum (%{number}) {{axes=[1], keepdims=true}} : {column}",
            f"%{number + 2} = Sub (%{number}, %{number + 1}) : {whole}",
        ]
        outputs.append(f"%{number + 2}")
    return mind_mlir.parse("\n".join([*lines, f"outputs: {', '.join(outputs)}", ""]), format="core")


def inputs() -> list[Array]:
    random = np.random.default_rng(3)
    return [random.standard_normal((7, size), np.float32) for size in SIZES]


def run(monkeypatch: pytest.MonkeyPatch, cores: int, module: mind_mlir.Module, given: list[Array]) -> bytes:
    """Return the results of ``module``, compiled as where there are so many cores."""
    monkeypatch.setattr(compiled_code, "usable_cores", lambda: cores)
    monkeypatch.setattr(compiled_code, "get_num_threads", lambda: cores)
    return b"".join(result.tobytes() for result in mind_mlir.compile(module)(*given))


def lowered(module: mind_mlir.Module) -> Any:
    lowering = Lowering()
    lowering.run(module)
    return lowering.mlir


def cut(module: Any, opt_level: int, most: int) -> list[units.CodeUnit]:
    """Cut a lowered module, having given it its entries."""
    entries = [each.symbol for each in add_entries(module).values()]
    return units.cut_into_units(module, opt_level, most, entries)


@pytest.mark.usefixtures("any_size")
def test_any_number_of_units_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    module, given = exponentials(), inputs()
    alone = run(monkeypatch, 1, module, given)
    for cores in (2, 3, 5):
        assert run(monkeypatch, cores, module, given) == alone


@pytest.mark.usefixtures("any_size")
def test_units_hold_every_function_once() -> None:
    module = lowered(exponentials())
    private = [
        op.attributes["sym_name"].value
        for op in module.body.operations
        if op.operation.name == "llvm.func" and "mind.kernel" in op.attributes
    ]
    made = cut(module, 3, 3)
    assert len(made) == 3
    assert all(unit.level == 0 for unit in made)
    held = [
        op.attributes["sym_name"].value
        for unit in made
        for op in unit.module.body.operations
        if op.operation.name == "llvm.func" and "mind.kernel" in op.attributes
    ]
    assert sorted(held) == sorted(private) != []


def test_a_small_module_is_one_unit() -> None:
    module = mind_mlir.parse((EXAMPLES / "quickstart.ir").read_text(encoding="utf-8"))
    assert len(cut(lowered(module), 3, 8)) == 1


@pytest.mark.usefixtures("any_size")
def test_functions_with_loops_over_scalars_are_optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    module, given = exponentials(), inputs()
    alone = run(monkeypatch, 1, module, given)

    def mark(module: Any, opt_level: int, most: int, entries: Sequence[str]) -> list[units.CodeUnit]:
        kernel = next(op for op in module.body.operations if "mind.kernel" in op.attributes)
        with module.context:
            kernel.attributes[SCALAR_ATTRIBUTE] = bindings.ir.UnitAttr.get()
        made = units.cut_into_units(module, opt_level, most, entries)
        levels.append([unit.level for unit in made])
        return made

    levels: list[list[int]] = []
    monkeypatch.setattr(machine_code, "cut_into_units", mark)
    assert run(monkeypatch, 1, module, given) == alone
    assert run(monkeypatch, 3, module, given) == alone
    assert levels == [[3, 0], [3, 0, 0, 0]]


def test_loops_of_programs_are_optimised() -> None:
    text = (EXAMPLES / "control" / "newton_sqrt.ir").read_text(encoding="utf-8")
    made = cut(lowered(mind_mlir.parse(text)), 2, 4)
    assert made[0].level == 2


@pytest.mark.usefixtures("any_size")
def test_units_are_made_one_by_one_where_they_must(monkeypatch: pytest.MonkeyPatch) -> None:
    module, given = exponentials(), inputs()
    alone = run(monkeypatch, 1, module, given)

    def fail(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ahead, "start_new_thread", fail)
    assert run(monkeypatch, 4, module, given) == alone


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("first", [True, False])
def test_what_llvm_refuses_is_reported_whichever_unit_it_is(
    monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    create = engines.Engine.__init__

    def refuse(engine: engines.Engine, module: Any, **options: Any) -> None:
        names = {str(op.attributes["sym_name"].value) for op in module.body.operations}
        if ("main" in names) == first:
            raise InternalError("codegen", "LLVM makes no code of the module", "")
        create(engine, module, **options)

    monkeypatch.setattr(engines.Engine, "__init__", refuse)
    with pytest.raises(InternalError, match="LLVM makes no code"):
        run(monkeypatch, 3, exponentials(), inputs())


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.ir")))
def test_examples_in_units_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = mind_mlir.parse((EXAMPLES / f"{name}.ir").read_text(encoding="utf-8"))
    random = np.random.default_rng(5)
    given: list[Array] = [
        random.integers(0, 4, [int(str(extent)) for extent in parameter.type.shape]).astype(
            parameter.type.dtype.numpy
        )
        for parameter in mind_mlir.compile(module).parameters
    ]
    assert run(monkeypatch, 3, module, given) == run(monkeypatch, 1, module, given)


def test_a_large_module_compiles_apart_by_itself() -> None:
    """Nothing is forced: a module of this size is worth two units wherever there are two cores."""
    made = cut(lowered(exponentials(range(33, 63))), 3, 2)
    assert len(made) == 2


def joined(module: Any, opt_level: int = 3) -> list[bool]:
    """Return whether each of the functions that callers see becomes a part of its entry."""
    signatures = add_entries(module)
    if units.whole(module, opt_level, [each.symbol for each in signatures.values()]).level == 0:
        entries.join_entry(module, signatures)
    names = {str(op.attributes["sym_name"].value): op for op in module.body.operations}
    return ["always_inline" in names[name].attributes for name in signatures]


def test_the_code_of_a_single_function_is_in_its_entry() -> None:
    assert joined(lowered(exponentials())) == [True]


@pytest.mark.parametrize("hindrance", ["another function", "its size", "the level"])
def test_a_function_may_stay_outside_of_its_entry(monkeypatch: pytest.MonkeyPatch, hindrance: str) -> None:
    names = ["f", "g"] if hindrance == "another function" else ["f"]
    body = "(%x: tensor<f32[9]>) -> (tensor<f32[9]>) {\n^e:\n%y = Neg (%x) : tensor<f32[9]>\nreturn %y\n}\n"
    module = lowered(mind_mlir.parse("".join(f"func @{name}{body}" for name in names)))
    if hindrance == "its size":
        monkeypatch.setattr(entries, "_MOST_COPIED", 1)
    if hindrance == "the level":
        kernel = next(op for op in module.body.operations if op.operation.name == "llvm.func")
        with module.context:
            kernel.attributes[SCALAR_ATTRIBUTE] = bindings.ir.UnitAttr.get()
    assert joined(module) == [False] * len(names)
