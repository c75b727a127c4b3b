"""`--winograd` of `mind-mlir run` and `compile`."""

from __future__ import annotations

import re

from cli_harness import invoke, succeed

CONVOLUTION = """\
%0 = Input {name="x"} : tensor<f32[1, 24, 24, 16]>
%1 = Input {name="w"} : tensor<f32[3, 3, 16, 16]>
%2 = Conv2d (%0, %1) {padding=Valid, strides=[1, 1]} : tensor<f32[1, 22, 22, 16]>
outputs: %2
"""


def test_compile_shows_the_form() -> None:
    direct, winograd = (
        succeed("compile", "-", "--emit=schedule", *option, stdin=CONVOLUTION)
        for option in ([], ["--winograd"])
    )
    assert "winograd" not in direct
    assert re.findall(r"\d\. (\w+ ?[a-z]*) \d", winograd) == [
        "winograd filter",
        "winograd image",
        "product",
        "winograd result",
    ]


def test_run_computes_it() -> None:
    text = succeed("run", "-", "--input=x=ones", "--input=w=zeros", "--winograd", stdin=CONVOLUTION)
    assert text == succeed("run", "-", "--input=x=ones", "--input=w=zeros", stdin=CONVOLUTION)
    random = [
        succeed("run", "-", "--input=random", *option, stdin=CONVOLUTION) for option in ([], ["--winograd"])
    ]
    assert random[0] != random[1]


def test_the_bound_of_sums_is_not_checked() -> None:
    refused = invoke("run", "-", "--input=random", "--check", "--winograd", stdin=CONVOLUTION)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "leave out --winograd" in refused.stderr
