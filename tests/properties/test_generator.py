"""The generator itself: that it knows every operation, and that its programs are varied."""

from __future__ import annotations

from collections import Counter

from budget import examples
from hypothesis import given
from programs import Program, programs, tensor
from recipes import CONSTANTS, ELEMENTWISE, RECIPES

from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ops.registry import by_opcode

#: Operands or results have dtypes that Core IR lacks; a custom call is not the same bits as its expansion.
BEYOND_CORE = {
    *("RngUniform", "RngNormal", "Quantize", "Requantize", "QuantizedDot", "CustomCall"),
    *("Real", "Imag", "Complex"),
}


def test_every_operation_has_a_recipe() -> None:
    written = {opcode for opcode, record in by_opcode().items() if record.examples}
    of_ranks = {opcode for opcode, record in by_opcode().items() if record.attribute("mesh")}
    assert set(RECIPES) == written - set(CORE_V1.refused) - BEYOND_CORE - of_ranks
    assert set(RECIPES) >= CONSTANTS | ELEMENTWISE


def test_programs_are_varied() -> None:
    opcodes: Counter[str] = Counter()
    facts: Counter[str] = Counter()

    @examples(900)
    @given(programs())
    def collect(program: Program) -> None:
        module = program.module
        opcodes.update({op.opcode for op in module.operations})
        uses = Counter(operand for op in module.operations for operand in op.operands)
        inputs = {op.value_id for op in module.inputs}
        facts.update({f"rank {tensor(op).rank}" for op in module.operations})
        facts.update({tensor(op).dtype.core_name for op in module.operations})
        facts["shared value"] += any(count > 1 for count in uses.values())
        facts["several outputs"] += len(set(module.outputs)) > 1
        facts["input as output"] += not inputs.isdisjoint(module.outputs)
        facts["duplicated output"] += len(set(module.outputs)) < len(module.outputs)
        facts["empty tensor"] += any(0 in tensor(op).shape for op in module.operations)
        facts["sparse ids"] += module.operations[0].value_id > 0

    collect()
    assert set(opcodes) == set(RECIPES)
    assert min(opcodes.values()) >= 5, opcodes
    assert min(facts.values()) >= 10, facts
    assert {"rank 0", "rank 4", "i1", "i32", "i64", "f32", "f64"} <= set(facts)
