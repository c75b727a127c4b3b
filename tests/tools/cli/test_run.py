"""`mind-mlir run`: inputs, outputs, and comparing with the interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cli_harness import SUM, findings, invoke, succeed

from mind_mlir import interpreter
from mind_mlir.ops import registry

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ops.contexts import EvalContext

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROW = np.array([10, 20, 30], np.float32)

IDENTITY = '%0 = Input {{name="x"}} : tensor<{}>\noutputs: %0\n'


def outputs(path: Path, *args: object, stdin: str = SUM) -> dict[str, Any]:
    assert succeed("run", "-", *args, "-o", path, stdin=stdin) == ""
    with np.load(path) as archive:
        return dict(archive)


@pytest.mark.parametrize("how", [(), ("--interpret",), ("-O0",)])
def test_arrays_from_files(how: tuple[str, ...], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "rest.npz", row=ROW)
    found = outputs(
        tmp_path / "out.npz", f"--input=x={tmp_path / 'x.npy'}", f"--input={tmp_path / 'rest.npz'}", *how
    )
    assert found.keys() == {"output_0"}
    assert found["output_0"].tolist() == [63, 72]


def test_a_named_input_comes_before_an_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=X, row=ROW)
    found = outputs(tmp_path / "out.npz", f"--input={tmp_path / 'all.npz'}", "--input=row=zeros")
    assert found["output_0"].tolist() == [3, 12]


def test_one_output_as_npy(tmp_path: Path) -> None:
    succeed("run", "-", "--input=ones", "-o", tmp_path / "out.npy", stdin=SUM)
    assert np.load(tmp_path / "out.npy").tolist() == [6, 6]


def test_outputs_are_printed() -> None:
    assert succeed("run", "-", "--input=x=ones", "--input=zeros", stdin=SUM) == (
        "%3 : tensor<f32[2]>\n[3., 3.]\n"
    )


def test_large_outputs_are_shortened() -> None:
    text = succeed("run", "-", "--input=x=zeros", stdin=IDENTITY.format("f32[1000, 1000]"))
    assert "..." in text
    assert len(text) < 2000


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        ("f32[]", "2.5", "2.5"),
        ("f64[2]", "[1, 0.1]", "[1. , 0.1]"),
        ("i32[2, 1]", "[[1], [-2]]", "[[ 1],\n [-2]]"),
        ("i1[2]", "[true, false]", "[ True, False]"),
        ("f32[2]", "[-Infinity, NaN]", "[-inf,  nan]"),
        ("f32[2]", "[-inf, nan]", "[-inf,  nan]"),
        ("f32[4]", " [+1 ,.5, 2. , -3e+1] ", "[  1. ,   0.5,   2. , -30. ]"),
        ("f64[]", "18446744073709551616", "1.8446744073709552e+19"),
        ("f64[2]", "[18446744073709551615, -1]", "[ 1.8446744073709552e+19, -1.0000000000000000e+00]"),
        (
            "i64[2]",
            "[9223372036854775807, -9223372036854775808]",
            "[ 9223372036854775807, -9223372036854775808]",
        ),
        ("i1[2]", "[True, FALSE]", "[ True, False]"),
    ],
)
def test_values_on_the_command_line(type_: str, value: str, shown: str) -> None:
    text = succeed("run", "-", "--input", f"x={value}", stdin=IDENTITY.format(type_))
    assert text == f"%0 : tensor<{type_}>\n{shown}\n"


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        ("i32[]", "2.5", "2.5 is not an integer"),
        ("i32[]", "2147483648", "2147483648 is out of range"),
        ("i64[]", "99999999999999999999", "99999999999999999999 is out of range of i64"),
        ("i64[2]", "[9223372036854775808, -1]", "9223372036854775808 is out of range of i64"),
        ("i1[]", "2", "'2' is not an i1 value"),
        ("f32[]", "true", "expected a number, found 'true'"),
        ("f32[1, 2]", "[[1e39, 1]]", "1e39 is out of range of f32"),
        ("f64[]", "1e400", "1e400 is out of range of f64"),
        ("f32[2]", "[1, [2]]", "a list of shape [1] at character 5 stands beside a single value"),
        ("f32[2]", "[[1, 2], [3]]", "a list of shape [1] at character 10 stands beside a list of shape [2]"),
        ("f32[2]", '["a", "b"]', """should stand at character 2, not '"a", "b"]'"""),
        ("f32[2]", "[1, 2", "it ends where ',' or ']' should stand"),
        ("f32[2]", "1, 2", "the end should stand at character 2, not ', 2'"),
        ("f32[]", "1.2.3", "should stand at character 1"),
        ("f32[]", "1_000", "should stand at character 1"),
        ("f32[]", "-true", "should stand at character 1"),
        ("f32[]", "[" * 100_000, "lists nest more than 64 deep"),
        ("f32[2]", "[true, 1]", "expected a number, found 'true'"),
        ("f32[]", "1" * 100_000, "is out of range of f32"),
        ("i32[]", "9" * 300, "is out of range of i32"),
    ],
)
def test_values_that_are_not_of_the_dtype(type_: str, value: str, why: str) -> None:
    (found,) = findings("run", "-", "--input", f"x={value}", stdin=IDENTITY.format(type_))
    assert found["code"] == "E6103"
    assert why in found["message"]
    assert "such as [[1, 2], [3, 4]]" in found["help"]


def test_words_that_are_neither_values_nor_files() -> None:
    (found,) = findings("run", "-", "--input=x=rnadom", stdin=IDENTITY.format("f32[]"))
    assert found["code"] == "E6105"
    assert "did you mean random?" in found["message"]
    assert "such as [[1, 2], [3, 4]]" in found["help"]
    (found,) = findings("run", "-", "--input=X=1", "--input=ones", stdin=IDENTITY.format("f32[]"))
    assert "did you mean x?" in found["message"]
    assert "did you mean zeros?" in invoke("run", "-", "--input=zeroes", stdin=SUM).stderr
    assert "--input NAME=a.npy" in invoke("run", "-", "--input=a.npy", stdin=SUM).stderr


def test_random_inputs_depend_on_the_seed_and_not_on_the_other_inputs(tmp_path: Path) -> None:
    program = SUM.replace("outputs: %3", "outputs: %0, %1")
    first = outputs(tmp_path / "out.npz", "--input=random", stdin=program)
    again = outputs(tmp_path / "out.npz", "--input=row=random", "--input=x=zeros", stdin=program)
    other = outputs(tmp_path / "out.npz", "--input=random", "--seed=1", stdin=program)
    assert np.array_equal(first["output_1"], again["output_1"])
    assert not np.array_equal(first["output_1"], other["output_1"])
    assert not np.array_equal(first["output_0"][0], first["output_1"])


def test_random_indices_are_in_bounds_and_random_logarithms_finite() -> None:
    program = """\
%0 = Input {name="x"} : tensor<f32[3]>
%1 = Input {name="i"} : tensor<i64[100]>
%2 = Gather (%0, %1) : tensor<f32[100]>
%3 = Log (%0) : tensor<f32[3]>
outputs: %2, %3
"""
    text = succeed("run", "-", "--input=random", "--interpret", stdin=program)
    assert "nan" not in text


def test_an_index_out_of_bounds_is_located_in_the_source() -> None:
    program = '%0 = Input {name="i"} : tensor<i64[2]>\n%1 = Gather (%0, %0) : tensor<i64[2]>\noutputs: %1\n'
    for how in ((), ("--interpret",)):
        (found,) = findings("run", "-", "--input=i=[0, 5]", *how, stdin=program)
        assert (found["code"], found["span"]["line"]) == ("E6001", 2)


# --check


def test_check_agrees() -> None:
    assert succeed("run", "-", "--input=random", "--check", stdin=SUM).startswith("OK")


def test_check_names_the_operation_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    records = dict(registry.by_opcode())
    original = records["Add"].evaluate

    def wrong(context: EvalContext) -> Array:
        result: Array = original(context)
        result[1, 2] += 1
        return result

    records["Add"] = replace(records["Add"], evaluate=wrong)
    monkeypatch.setattr(interpreter, "by_opcode", lambda: records)
    result = invoke("run", "-", "--input=ones", "--check", stdin=SUM)
    assert result.exit_code == 1
    assert result.stdout == "%2 = Add differs at [1, 2]: compiled 2.0, interpreted 3.0\n"


# Wrong inputs


def test_a_missing_input() -> None:
    (found,) = findings("run", "-", "--input=x=ones", stdin=SUM)
    assert found["code"] == "E6101"
    assert found["span"]["line"] == 2
    assert "--input row=" in found["help"]


def test_an_input_that_does_not_exist() -> None:
    (found,) = findings("run", "-", "--input=ones", "--input=y=ones", stdin=SUM)
    assert found["code"] == "E6102"


@pytest.mark.parametrize("how", [(), ("--interpret",), ("--check",)])
def test_arrays_of_another_dtype_or_shape(how: tuple[str, ...], tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=X.astype(np.float64), row=ROW[:2])
    found = findings("run", "-", f"--input={tmp_path / 'all.npz'}", *how, stdin=SUM)
    assert [finding["code"] for finding in found] == ["E6103", "E6104"]


def _files(directory: Path) -> dict[str, Path]:
    files = {
        name: directory / f"{name}.npy" for name in ("missing", "empty", "text", "objects", "cut", "npz")
    }
    files["empty"].touch()
    files["text"].write_text("1 2 3")
    np.save(files["objects"], np.array([{}], dtype=object), allow_pickle=True)
    np.save(files["cut"], X)
    files["cut"].write_bytes(files["cut"].read_bytes()[:-3])
    with files["npz"].open("wb") as file:
        np.savez(file, x=X)
    return files | {"directory": directory}


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "objects", "cut", "npz", "directory"])
def test_files_that_hold_no_array(kind: str, tmp_path: Path) -> None:
    (found,) = findings("run", "-", "--input=ones", f"--input=x={_files(tmp_path)[kind]}", stdin=SUM)
    assert found["code"] == "E6105"
    assert "allow_pickle" not in found["message"]


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "objects", "cut"])
def test_files_that_are_no_archive(kind: str, tmp_path: Path) -> None:
    path = _files(tmp_path)[kind]
    renamed = path.with_suffix(".npz")
    if path.exists():
        path.rename(renamed)
    assert findings("run", "-", "--input=ones", f"--input={renamed}", stdin=SUM)[0]["code"] == "E6105"


def test_an_archive_of_objects(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=np.array([None], dtype=object), allow_pickle=True)
    (found,) = findings("run", "-", "--input=ones", f"--input={tmp_path / 'all.npz'}", stdin=SUM)
    assert found["code"] == "E6105"


@pytest.mark.parametrize(
    "args",
    [
        ("--input=x",),
        ("--input=x=",),
        ("--input==ones",),
        ("--input=ones", "--input=zeros"),
        ("--input=x=ones", "--input=x=zeros"),
        ("--input=ones", "-o", "out.txt"),
        ("--input=ones", "--interpret", "--check"),
        ("--seed=-1",),
    ],
)
def test_wrong_usage(args: tuple[str, ...]) -> None:
    result = invoke("run", "-", *args, stdin=SUM)
    assert result.exit_code == 2
    assert "Error: " in result.stderr


def test_npy_takes_one_output() -> None:
    program = SUM.replace("outputs: %3", "outputs: %3, %2")
    assert invoke("run", "-", "--input=ones", "-o", "out.npy", stdin=program).exit_code == 2


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    result = invoke("run", "-", "--input=ones", "-o", tmp_path / "missing" / "out.npz", stdin=SUM)
    assert result.exit_code == 1
    assert "cannot write" in result.stderr


def test_random_indices_fit_every_table_that_they_index(tmp_path: Path) -> None:
    program = """%0 = Input {name=large} : tensor<f32[1000]>
%1 = Input {name=small} : tensor<f32[3]>
%2 = Input {name=at} : tensor<i32[50]>
%3 = Gather (%0, %2) : tensor<f32[50]>
%4 = Gather (%1, %2) : tensor<f32[50]>
%5 = Gather (%0, %2) : tensor<f32[50]>
outputs: %2, %3, %4, %5
"""
    found = outputs(tmp_path / "out.npz", "--input=random", stdin=program)
    assert set(found["output_0"]) == {0, 1, 2}
