"""Whatever a text holds, there is a diagnostic in little time; mutations of all programs, a few of 10^5.

`python -m benchmarks.fuzz_surface` runs all of them, in child processes.
"""

from __future__ import annotations

import pytest
from surface_marks import findings_of

from benchmarks.fuzz_surface import outcome, texts
from benchmarks.mutations import mutated


def _function(body: str, parameters: str = "x: f32", result: str = "f32") -> str:
    return f"fn f({parameters}) -> {result} {{\n    {body}\n}}\n"


_VECTOR = "x: Tensor<f32, [2]>"
HUGE = {
    "zeros": (_function("sum(zeros([1000000, 1000000]))"), "E7001"),
    "identity": (_function("sum(eye(1000000000))"), "E7001"),
    "a reshape": (_function("sum(reshape(x, [4294967296, 4294967296]))", _VECTOR), "E3007"),
    "a parameter": (_function("1.0", "x: Tensor<f32, [4294967296, 4294967296]>"), "E4104"),
    "an outer sum": (_function("sum(expand_dims(x, axes=[1]) + x)", "x: Tensor<f32, [4000000000]>"), "E4104"),
    "a number": (_function("170141183460469231731687303715884105728"), "E1005"),
    "digits": (_function("9" * 5000), "E1005"),
    "a bound of a range": (_function("for i in range(99999999999999999999) {}\n    x"), "E1005"),
    "a struct": (
        "struct S0 { a: f32, b: f32 }\n"
        + "".join(f"struct S{i + 1} {{ a: S{i}, b: S{i} }}\n" for i in range(40)),
        "E7001",
    ),
    "brackets": (_function("[" * 10_000 + "1.0" + "]" * 10_000), "E1109"),
    "signs": (_function("-" * 10_000 + "x"), "E1109"),
    "branches": (_function("if p { " * 10_000 + "1.0" + " } else { 2.0 }" * 10_000, "p: bool"), "E1109"),
    "fields": (_function("x" + ".a" * 10_000), "E1109"),
    "a shape that grows with each call": (
        "fn g(x: Tensor<f32, [n]>) -> f32 {\n    g(concat(x, x, axis=0))\n}\n" + _function("g(x)", _VECTOR),
        "E4104",
    ),
}


@pytest.mark.parametrize("what", HUGE)
def test_what_is_too_large_is_one_finding(what: str) -> None:
    text, code = HUGE[what]
    assert [finding.code for finding in findings_of(text)] == [code]


def test_what_is_long_alone_is_no_mistake() -> None:
    loop = "let s = 0;\n    for i in range(1000000000000000000) {\n        s = s + i;\n    }\n    s"
    names = ", ".join(f"x{number}: f32" for number in range(1000))
    for text in (
        _function(loop, "", "i64"),
        _function("a" * 5000, "a" * 5000 + ": f32"),
        _function("x7", names),
        _function("x" + " + x" * 1000),
    ):
        assert findings_of(text) == []


def test_an_undeclared_name_is_looked_for_among_many() -> None:
    assert len(findings_of(_function("".join(f"let a{i} = b{i};\n" for i in range(1500)) + "x"))) == 1001


def test_mutations_of_programs_are_refused_or_lowered() -> None:
    programs = texts()
    found = {outcome(mutated(1, number, programs)) for number in range(250)}
    assert {"refused", "lowered"} <= found
