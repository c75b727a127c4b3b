"""`--no-bf16x6` of `mind-mlir compile` and `buffers`."""

from __future__ import annotations

from cli_harness import succeed

PRODUCT = """\
%0 = Input {name="x"} : tensor<f32[512, 512]>
%1 = Input {name="w"} : tensor<f32[512, 512]>
%2 = MatMul (%0, %1) : tensor<f32[512, 512]>
outputs: %2
"""


def test_products_of_f32_are_six_of_bf16_unless_told_otherwise() -> None:
    command = "compile", "-", "--emit=schedule", "--target=amx"
    found, asked, without = (
        succeed(*command, *option, stdin=PRODUCT) for option in ([], ["--bf16x6"], ["--no-bf16x6"])
    )
    assert "products  6 of bf16 each" in found
    assert found == asked
    assert "bf16" not in without


def test_memory_is_that_of_the_packed_factors() -> None:
    command = "buffers", "-", "--target=amx"
    found, without = (succeed(*command, *option, stdin=PRODUCT) for option in ([], ["--no-bf16x6"]))
    assert f"{512 * 512 * 6 + 8:,}" in found
    assert f"{512 * 512 * 6 + 8:,}" not in without
