"""LLVM's text in the words of the older LLVM: every float has the bits that it had."""

from __future__ import annotations

import numpy as np
import pytest

from mind_mlir.image.elf import read_object
from mind_mlir.mlir.bindings import ir, llvm, new_context
from mind_mlir.packaging.older_ir import in_older_words


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("ret float 1.000000e-01", "ret float 0x3FB99999A0000000"),  # the nearest float, as a double
        ("ret double 1.000000e-01", "ret double 0x3FB999999999999A"),
        ("%1 = fadd <2 x half> %0, splat (half f0x3C01)", "%1 = fadd <2 x half> %0, splat (half 0xH3C01)"),
        ("%1 = fmul float %0, f0x00800000", "%1 = fmul float %0, 0x3810000000000000"),
        ("store bfloat -1.003910e-01, ptr %2", "store bfloat 0xRBDCE, ptr %2"),
        (
            "select i1 %c, float +inf, float -inf",
            "select i1 %c, float 0x7FF0000000000000, float 0xFFF0000000000000",
        ),
        ("ret float +snan(0x1)", "ret float 0x7FF0000020000000"),
        ("ret half -nan(0x1)", "ret half 0xHFE01"),
        ("ret bfloat +qnan", "ret bfloat 0xR7FC0"),
        # What looks like a float, and is none.
        ('@half.5 = constant [9 x i8] c"f0x1 1.0;"', '@half.5 = constant [9 x i8] c"f0x1 1.0;"'),
        ("br label %1 ; preds = %1.5, float +inf", "br label %1 ; preds = %1.5, float +inf"),
        ("%4 = call float @llvm.fma.f32(float %1, float 2.5e+00, float %3)", None),
    ],
)
def test_floats_become_bits(newer: str, older: str | None) -> None:
    expected = newer.replace("2.5e+00", "0x4004000000000000") if older is None else older
    assert in_older_words(newer) == expected


@pytest.mark.parametrize(("name", "bits"), [("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64)])
def test_llvm_reads_the_bits_that_were_meant(name: str, bits: int) -> None:
    binding = pytest.importorskip("llvmlite.binding")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    kind, rng = np.dtype(f"u{bits // 8}"), np.random.default_rng(3)
    short = np.arange(1, 800).astype(kind)  # subnormal numbers
    random = rng.integers(0, np.iinfo(kind).max, 1500, kind, endpoint=True)
    decimal = np.concatenate([rng.integers(1, 9999, 800) * 10.0**power for power in (-6, -3, 0)])
    wide = {16: np.float16, 32: np.float32, 64: np.float64}[bits]
    patterns = np.concatenate([short, random, decimal.astype(wide).view(kind)])
    text = ", ".join(f"0x{int(pattern):0{bits // 4}X}" for pattern in patterns)
    array = f"!llvm.array<{len(patterns)} x {name}>"
    with new_context(("llvm",)):
        module = ir.Module.parse(
            f"llvm.mlir.global constant @g(dense<[{text}]> : tensor<{len(patterns)}x{name}>) : {array}"
        )
        older = in_older_words(llvm.translate_module_to_llvmir(module.operation))
    machine = binding.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine()
    read = read_object(machine.emit_object(binding.parse_assembly(older)))
    symbol = next(each for each in read.symbols if each.name == "g")
    assert symbol.section is not None
    data = read.sections[symbol.section].data
    assert np.array_equal(np.frombuffer(data[symbol.value : symbol.value + patterns.nbytes], kind), patterns)
