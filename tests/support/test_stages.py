"""The table of stages, and the steps that stand elsewhere by its names."""

from __future__ import annotations

from mind_mlir.lowering import pipeline
from mind_mlir.passes import forms
from mind_mlir.support.stages import CORE_FORMS, FORMS, PIPELINE, STAGES, Kind, stages_after, suffix


def test_every_stage_has_one_step() -> None:
    steps = [*forms.STEPS, *pipeline.STEPS]
    assert steps == list(dict.fromkeys(stage.step for stage in STAGES if stage.name != "core"))
    assert tuple(forms.STEPS) == CORE_FORMS[1:]


def test_a_form_without_a_step_is_next_to_the_one_it_is_made_with() -> None:
    for stage in STAGES:
        if stage.made_with:
            assert abs(FORMS.index(stage.made_with) - FORMS.index(stage.name)) == 1


def test_the_way_to_a_form_ends_with_it() -> None:
    for form in FORMS:
        way = [stage.name for stage in stages_after("core", form)]
        assert way == [each for each in PIPELINE[1:] if FORMS.index(each) <= FORMS.index(form)]
    assert stages_after("linalg", "core") == ()


def test_files_are_called_after_what_they_hold() -> None:
    assert {stage.kind: suffix(stage.name) for stage in STAGES} == {kind: kind.value for kind in Kind}
    assert suffix("gradient") == ".ir"
