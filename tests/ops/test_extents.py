"""Numbers near the end of 64 bits: a program with them is refused, or runs, or lacks the memory to."""

from __future__ import annotations

import numpy as np
import pytest

from mind_mlir import ExecutionError, VerificationError, compile, differentiate, interpret, parse, verify

HUGE = 2**62
EMPTY = """\
%x = Input {name="x"} : tensor<f32[3]>
%e = Slice (%x) {starts=[0], ends=[0], steps=[1]} : tensor<f32[0]>
"""


def convolution(padding: str, strides: str, result: str) -> str:
    return (
        '%x = Input {name="x"} : tensor<f32[1, 4, 4, 1]>\n'
        '%w = Input {name="w"} : tensor<f32[2, 2, 1, 1]>\n'
        f"%y = Conv2d (%x, %w) {{padding={padding}, strides={strides}}} : tensor<f32{result}>\n"
        "outputs: %y\n"
    )


def broadcasts(extent: int) -> str:
    """Return a program with two intermediate values of ``extent`` numbers that compiled code stores."""
    lines = ['%x = Input {name="x"} : tensor<f32[1]>', '%i = Input {name="i"} : tensor<i64[1]>']
    for name, opcode in (("a", "Sub"), ("b", "Add")):
        lines += [
            f"%{name} = BroadcastTo (%x) {{result_shape=[{extent}]}} : tensor<f32[{extent}]>",
            f"%{name}1 = Sum (%{name}) {{axes=[0], keepdims=true}} : tensor<f32[1]>",
            f"%{name}2 = {opcode} (%{name}, %{name}1) : tensor<f32[{extent}]>",
        ]
    lines += [
        f"%{name}3 = Gather (%{name}2, %i) : tensor<f32[1]>" for name in "ab"
    ]  # both are needed until here
    return "\n".join([*lines, "outputs: %a3, %b3\n"])


@pytest.mark.parametrize(
    "text",
    [
        f"{EMPTY}%r = Reshape (%e) {{new_shape=[-1, {HUGE}]}} : tensor<f32[0, {HUGE}]>\noutputs: %r\n",
        f"{EMPTY}%r = BroadcastTo (%e) {{result_shape=[{HUGE}, 0]}} : tensor<f32[{HUGE}, 0]>\noutputs: %r\n",
        convolution(f"Custom([[{HUGE}, 0], [0, 0]])", f"[{HUGE}, 1]", "[1, 2, 3, 1]"),
        convolution(f"Custom([[0, 0], [{HUGE}, {HUGE}]])", f"[1, {2**63 - 1}]", "[1, 3, 2, 1]"),
    ],
)
def test_values_beyond_any_address_space_are_refused(text: str) -> None:
    with pytest.raises(VerificationError) as caught:
        verify(parse(text))
    (finding,) = caught.value.diagnostics
    assert finding.code == "E4104"
    assert finding.location is not None
    assert finding.location.line == 3


def test_a_literal_beyond_any_address_space_is_no_error_of_numpy() -> None:
    shape = f"[0, {HUGE}, {HUGE}]"
    text = f"%x = ConstTensor {{dtype=f32, shape={shape}, value=[]}} : tensor<f32{shape}>\noutputs: %x\n"
    with pytest.raises(VerificationError, match="E3006"):
        verify(parse(text))


def test_padding_that_no_memory_holds_is_found_when_the_program_runs() -> None:
    module = parse(convolution(f"Custom([[{10**15}, 0], [0, 0]])", f"[{10**15}, 1]", "[1, 2, 3, 1]"))
    arguments = {"x": np.ones((1, 4, 4, 1), np.float32), "w": np.ones((2, 2, 1, 1), np.float32)}
    with pytest.raises(ExecutionError, match="E6004"):
        interpret(module, arguments)
    with pytest.raises(ExecutionError, match="E6004"):
        compile(module)(**arguments)


def test_strides_that_step_over_everything() -> None:
    huge = 2**63 - 1
    module = parse(convolution("Same", f"[{huge}, {huge}]", "[1, 1, 1, 1]"))
    arguments = {"x": np.ones((1, 4, 4, 1), np.float32), "w": np.ones((2, 2, 1, 1), np.float32)}
    np.testing.assert_array_equal(compile(module)(**arguments)[0], interpret(module, arguments)[0])


def test_an_empty_convolution_has_no_windows_to_list() -> None:
    extent = 2**29
    shape = f"[0, {extent}, {extent}, 1]"
    text = (
        '%x = Input {name="x"} : tensor<f32[1, 1, 1, 1]>\n'
        '%w = Input {name="w"} : tensor<f32[64, 64, 1, 1]>\n'
        "%e = Slice (%x) {starts=[0, 0, 0, 0], ends=[0, 1, 1, 1], steps=[1, 1, 1, 1]} "
        ": tensor<f32[0, 1, 1, 1]>\n"
        f"%b = BroadcastTo (%e) {{result_shape={shape}}} : tensor<f32{shape}>\n"
        f"%y = Conv2d (%b, %w) {{padding=Same, strides=[1, 1]}} : tensor<f32{shape}>\n"
        "outputs: %y\n"
    )
    arguments = {"x": np.ones((1, 1, 1, 1), np.float32), "w": np.ones((64, 64, 1, 1), np.float32)}
    assert interpret(verify(parse(text)), arguments)[0].shape == (0, extent, extent, 1)


def test_scratch_memory_beyond_any_address_space() -> None:
    module = parse(broadcasts(2**60))
    for program in (module, differentiate(module).module):
        with pytest.raises(ExecutionError, match="bytes of scratch memory") as caught:
            compile(program)
        assert caught.value.code == "E6004"


def test_arguments_that_cannot_be_copied() -> None:
    extent = 2**50
    text = f'%x = Input {{name="x"}} : tensor<f32[{extent}]>\n%y = Sum (%x) : tensor<f32[]>\noutputs: %y\n'
    everywhere_one = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (extent,), (0,))
    for run in (interpret, lambda module, arguments: compile(module)(**arguments)):
        with pytest.raises(ExecutionError, match="to bring argument 'x' into row-major order"):
            run(parse(text), {"x": everywhere_one})


@pytest.mark.parametrize("names", [("self", "args", "kwargs"), ("array", "stage", "class")])
def test_inputs_may_have_any_name(names: tuple[str, ...]) -> None:
    inputs = [f'%{i} = Input {{name="{name}"}} : tensor<f32[2]>' for i, name in enumerate(names)]
    text = "\n".join([*inputs, "%9 = Sub (%0, %1) : tensor<f32[2]>", "outputs: %9\n"])
    arguments = {name: np.full(2, i, np.float32) for i, name in enumerate(names)}
    module = parse(text)
    for (found,) in (compile(module)(**arguments), interpret(module, arguments)):
        np.testing.assert_array_equal(found, [-1, -1])
    (gradient,) = compile(differentiate(module, wrt=[names[0]]).module)(**arguments)[1:]
    np.testing.assert_array_equal(gradient, [1, 1])


def test_no_time_goes_into_empty_matrices() -> None:
    many = 2**40
    text = f"""\
%x = Input {{name="x"}} : tensor<f32[]>
%e = BroadcastTo (%x) {{result_shape=[{many}, 0, 3]}} : tensor<f32[{many}, 0, 3]>
%t = Transpose (%e) {{permutation=[0, 2, 1]}} : tensor<f32[{many}, 3, 0]>
%y = MatMul (%e, %t) : tensor<f32[{many}, 0, 0]>
outputs: %y
"""
    module = parse(text)
    one = np.ones((), np.float32)
    for outputs in (interpret(module, {"x": one}), compile(module)(one)):
        assert outputs[0].shape == (many, 0, 0)
