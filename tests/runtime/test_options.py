"""The options of a compilation stand in one table, of which keywords and signatures are made."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

import mind_mlir
from mind_mlir.runtime.options import OPTIONS, CodeOptions, Options
from mind_mlir.support.options import CompileOptions

MODULE = mind_mlir.parse('%0 = Input {name="x"} : tensor<f32[2]>\noutputs: %0\n')


def test_the_table_and_the_types_have_the_same_options() -> None:
    names = [each.name for each in OPTIONS]
    assert names == list(Options.__annotations__)
    assert set(CodeOptions.__annotations__) < set(names)
    assert set(names) < {each.name for each in fields(CompileOptions)}


@pytest.mark.parametrize(
    ("function", "keywords"),
    [(mind_mlir.compile, Options), (mind_mlir.jit, Options), (mind_mlir.package, CodeOptions)],
)
def test_signatures_list_the_options(function: object, keywords: type) -> None:
    parameters = inspect.signature(function).parameters  # type: ignore[arg-type]  # functions, all of them
    assert list(parameters)[-len(keywords.__annotations__) :] == list(keywords.__annotations__)
    assert parameters["opt_level"].default == 3
    assert parameters["winograd"].annotation == "bool"
    assert parameters["disabled_passes"].default == ()


def test_help_explains_each_option() -> None:
    text = inspect.getdoc(mind_mlir.compile)
    assert text is not None
    for option in OPTIONS:
        assert f"\n    {option.name}: {option.text.splitlines()[0]}\n" in text


def test_wrong_keywords_are_refused_as_python_refuses_them() -> None:
    with pytest.raises(
        TypeError,
        match=r"(?m)^compile\(\) got an unexpected keyword argument 'thread'. Did you mean 'threads'\?$",
    ):
        mind_mlir.compile(MODULE, thread=2)  # type: ignore[call-overload]  # that is what is tested
    with pytest.raises(TypeError, match=r"(?m)^jit\(\) got an unexpected keyword argument 'fast'$"):
        mind_mlir.jit(fast=True)  # type: ignore[call-overload]  # as above
    with pytest.raises(TypeError, match=r"(?m)^package\(\) got an unexpected keyword argument 'cache'$"):
        mind_mlir.package(MODULE, "x", cache=False)  # type: ignore[call-arg]  # as above


def test_options_are_checked_before_anything_is_made() -> None:
    with pytest.raises(ValueError, match=r"(?m)^opt_level must be one of 0, 1, 2, 3, not 4$"):
        mind_mlir.compile(MODULE, opt_level=4)
    with pytest.raises(TypeError, match=r"(?m)^winograd must be True or False, not the int 1$"):
        mind_mlir.jit(winograd=1)  # type: ignore[call-overload]  # that is what is tested
