"""`mind-mlir compile` and `mind-mlir grad`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from cli_harness import SUM, findings, invoke, succeed

from mind_mlir import canonicalize, differentiate, parse, print_module
from mind_mlir.runtime.stage_text import stage_text
from mind_mlir.support.options import CompileOptions
from mind_mlir.support.stages import CORE_FORMS, FORMS, STAGES

if TYPE_CHECKING:
    from pathlib import Path


def test_the_help_tells_every_form_and_what_it_is() -> None:
    text = succeed("compile", "--help")
    rows = " ".join(text.split())
    assert [stage.name for stage in STAGES if f" {stage.name} {stage.summary}" not in rows] == []
    lines = text.splitlines()
    assert "  partitioned  what each rank of a mesh runs  bufferized  the same in one arena" in lines


@pytest.mark.parametrize("form", [form for form in FORMS if form != "asm"])
def test_each_form(form: str) -> None:
    expected = stage_text(parse(SUM), form).replace("<string>", "<stdin>")  # a schedule tells places
    assert succeed("compile", "-", f"--emit={form}", stdin=SUM).rstrip() == expected.rstrip()


@pytest.mark.parametrize("form", CORE_FORMS)
def test_forms_without_mlir_are_those_of_what_is_compiled(form: str) -> None:
    """Custom calls are expanded, and what debug information rules out is not done."""
    type_ = "tensor<f32[8, 8]>"
    lines = [f'%0 = Input {{name="x"}} : {type_}']
    for number in range(1, 25, 2):
        lines.append(f"%{number} = MatMul (%{number - 1}, %0) : {type_}")
        lines.append(f'%{number + 1} = CustomCall (%{number}) {{target="mind.gelu.v1"}} : {type_}')
    text = "\n".join([*lines, "outputs: %24", ""])
    for debug in (False, True):
        expected = stage_text(parse(text), form, CompileOptions(debug=debug))
        arguments = ["--debug"] if debug else []
        assert succeed("compile", "-", f"--emit={form}", *arguments, stdin=text) == expected


def test_assembly_holds_the_function() -> None:
    pytest.importorskip("capstone")
    pytest.importorskip("elftools")
    assert "main:" in succeed("compile", "-", "--emit=asm", "-O1", stdin=SUM)


def test_assembly_without_a_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "capstone", None)
    (found,) = findings("compile", "-", "--emit=asm", stdin=SUM)
    assert found["code"] == "E7003"
    assert "asm" in found["help"]


def test_the_default_is_llvm() -> None:
    assert succeed("compile", "-", stdin=SUM) == succeed("compile", "-", "--emit=llvm", stdin=SUM)


def test_the_flags_of_the_languages_own_driver() -> None:
    assert succeed("compile", "-", "--emit-ir", "--func", "main", stdin=SUM) == SUM
    assert succeed("compile", "-", "--emit-mlir", stdin=SUM) == succeed(
        "compile", "-", "--emit=mind", stdin=SUM
    )
    assert succeed("compile", "-", "--verify-only", stdin=SUM) == ""
    gradient = print_module(differentiate(parse(SUM)).module)
    assert succeed("compile", "-", "--autodiff", "--emit-grad-ir", stdin=SUM) == gradient
    assert succeed("compile", "-", "--autodiff", "--emit-ir", stdin=SUM) == SUM


def test_autodiff_takes_extensions() -> None:
    program = """\
%0 = Input {name="x"} : tensor<f32[1, 3, 3, 1]>
%1 = Input {name="w"} : tensor<f32[2, 2, 1, 1]>
%2 = Conv2d (%0, %1) {padding=Valid, strides=[1, 1]} : tensor<f32[1, 2, 2, 1]>
outputs: %2
"""
    args = ("compile", "-", "--autodiff", "--emit=canonical")
    assert "E5001" in invoke(*args, stdin=program).stderr
    gradient = succeed("grad", "-", "--extensions", stdin=program)
    assert succeed(*args, "--extensions", stdin=program) == gradient
    assert invoke("compile", "-", "--extensions", stdin=program).exit_code == 2


def test_autodiff_takes_any_form() -> None:
    text = succeed("compile", "-", "--autodiff", "--emit-mlir", stdin=SUM)
    assert "-> (tensor<2xf32>, tensor<2x3xf32>, tensor<3xf32>)" in text


@pytest.mark.parametrize(
    "args",
    [
        ("--emit-grad-ir",),
        ("--emit-ir", "--emit-mlir"),
        ("--emit=llvm", "--emit-ir"),
        ("--emit=object",),
        ("--no-such-option",),
        ("-O4",),
    ],
)
def test_wrong_usage(args: tuple[str, ...]) -> None:
    result = invoke("compile", "-", *args, stdin=SUM)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr


def test_a_function_that_does_not_exist() -> None:
    (found,) = findings("compile", "-", "--func=other", stdin=SUM)
    assert found["code"] == "E2002"
    assert "main" in found["help"]


def test_verify_only_reports() -> None:
    (found,) = findings("compile", "-", "--verify-only", stdin=SUM.replace("axes=[1]", "axes=[5]"))
    assert found["code"] == "E3004"


def test_output_to_a_file(tmp_path: Path) -> None:
    assert succeed("compile", "-", "--emit=core", "-o", tmp_path / "out.ir", stdin=SUM) == ""
    assert (tmp_path / "out.ir").read_text() == SUM


def test_a_failure_leaves_the_output_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out.ir"
    path.write_text("before")
    assert invoke("compile", "-", "-o", path, stdin=SUM.replace("[1]", "[5]")).exit_code == 1
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.ir"]


def test_dumps_are_numbered_in_order(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "dump"
    succeed("compile", "-", "--emit=linalg", "--dump-stages", directory, "-o", tmp_path / "out", stdin=SUM)
    names = sorted(entry.name for entry in directory.iterdir())
    first = ["00-core.ir", "01-canonical.ir", "02-structured.ir", "03-optimized.ir"]
    assert names == [*first, "04-mind.mlir", "05-linalg.mlir"]
    assert (directory / "00-core.ir").read_text() == SUM
    assert (directory / "05-linalg.mlir").read_text() == (tmp_path / "out").read_text()


def test_a_dump_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = invoke("compile", "-", "--dump-stages", tmp_path / "file", stdin=SUM)
    assert result.exit_code == 1
    assert "cannot create directory" in result.stderr


def test_printing_after_all_stages_and_timing() -> None:
    result = invoke("compile", "-", "--emit=linalg", "--print-ir-after-all", "--timing", stdin=SUM)
    assert result.exit_code == 0
    headers = [line.split()[4] for line in result.stderr.splitlines() if line.startswith("// -----//")]
    assert headers == ["core", "canonical", "structured", "optimized", "mind", "linalg"]
    table = result.stderr[result.stderr.index("stage timings") :].splitlines()[1:]
    stages = {line.rsplit(maxsplit=2)[0].strip(): float(line.split()[-2]) for line in table}
    assert stages.keys() >= {"parse", "canonical", "structured", "optimized", "mind", "linalg", "total"}
    assert stages["total"] == pytest.approx(
        sum(ms for name, ms in stages.items() if name != "total"), abs=0.1
    )


# grad


def test_the_gradient_is_canonical() -> None:
    gradient = differentiate(parse(SUM), wrt=["row"]).module
    text = succeed("grad", "-", "--wrt", " row ", stdin=SUM)
    assert text == print_module(gradient) == print_module(canonicalize(gradient))


def test_several_inputs_in_the_order_asked_for() -> None:
    assert succeed("grad", "-", "--wrt=row,x", stdin=SUM) == print_module(
        differentiate(parse(SUM), wrt=["row", "x"]).module
    )


def test_given_cotangents() -> None:
    assert '%2 = Input {name="cotangent_0"} : tensor<f32[2]>' in succeed("grad", "-", "--given", stdin=SUM)


def test_an_input_that_does_not_exist() -> None:
    (found,) = findings("grad", "-", "--wrt=row,", stdin=SUM)
    assert found["code"] == "E5101"


def test_the_gradient_in_another_form() -> None:
    assert '"mind.sum"' in succeed("grad", "-", "--emit=mind", stdin=SUM)


def test_locations_are_printed_on_request(tmp_path: Path) -> None:
    path = tmp_path / "model.ir"
    path.write_text(SUM)
    for form in ("mind", "linalg"):
        text = succeed("compile", path, f"--emit={form}", "--mlir-print-debuginfo")
        assert f'loc("{path}":3:1)' in text
        assert "loc(" not in succeed("compile", path, f"--emit={form}")
    result = invoke("compile", path, "--emit=linalg", "--mlir-print-debuginfo", "--print-ir-after-all")
    assert result.stderr.count(f'loc("{path}":3:1)') == 2
    assert invoke("compile", path, "--emit=core", "--mlir-print-debuginfo").exit_code == 2
