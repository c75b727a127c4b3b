"""The whole training as one compiled function: steps, minibatches and optimiser, with no Python between."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import mind_mlir
from mind_mlir.passes.structure import structure

if TYPE_CHECKING:
    from mind_mlir import Module

_LOOP = """\
func @train(%images: tensor<f32[{samples}, 64]>, %labels: tensor<i64[{samples}]>, \
%order: tensor<i64[{count}]>, {parameters}) -> (tensor<f32[]>, {types}) {{
^entry:
  %zero = ConstI64 {{value=0}} : tensor<i64[]>
  %end = ConstI64 {{value={count}}} : tensor<i64[]>
  %batch = ConstI64 {{value={batch}}} : tensor<i64[]>
  %nothing = ConstF32 {{value=0.0}} : tensor<f32[]>
  br ^head(%zero, %nothing, {initial})
^head(%at: tensor<i64[]>, %total: tensor<f32[]>, {carried}):
  %more = Compare (%at, %end) {{op=Less}} : tensor<i1[]>
  cond_br %more, ^step, ^done
^step:
  %start = ExpandDims (%at) {{axes=[0]}} : tensor<i64[1]>
  %chosen = DynamicSlice (%order, %start) {{sizes=[{batch}]}} : tensor<i64[{batch}]>
  %image = Gather (%images, %chosen) : tensor<f32[{batch}, 64]>
  %label = Gather (%labels, %chosen) : tensor<i64[{batch}]>
  %loss, {moved} = call @step (%image, %label, {state}) : (tensor<f32[]>, {types})
  %sum = Add (%total, %loss) : tensor<f32[]>
  %next = Add (%at, %batch) : tensor<i64[]>
  br ^head(%next, %sum, {moved})
^done:
  return %total, {state}
}}
"""


def training_loop(step: Module, samples: int, steps: int) -> Module:
    """Return a module whose function ``train`` takes ``steps`` training steps.

    Args:
        step: One step, as `training_step` builds it: it takes a minibatch, `image` f32 ``[batch, 64]`` and
            `label` i64 ``[batch]``, and the state, and returns the loss and the new state.
        samples: How many images there are to choose minibatches from.
        steps: The number of steps.

    Returns:
        ``train`` takes all images, all labels, the order of the samples, i64 ``[steps * batch]``, and the
        state; it returns the sum of the losses and the state at the end.
    """
    (body,) = structure(step).functions
    (image, _, *state) = body.parameters
    names, types = [str(parameter.name) for parameter in state], [str(parameter.type) for parameter in state]
    batch = image.tensor_type.extents[0]
    text = _LOOP.format(
        samples=samples,
        batch=batch,
        count=steps * batch,
        parameters=", ".join(f"%{name}: {type_}" for name, type_ in zip(names, types, strict=True)),
        types=", ".join(types),
        initial=", ".join(f"%{name}" for name in names),
        carried=", ".join(f"%now_{name}: {type_}" for name, type_ in zip(names, types, strict=True)),
        state=", ".join(f"%now_{name}" for name in names),
        moved=", ".join(f"%new_{name}" for name in names),
    )
    callee = replace(body, name="step", public=False)
    loop = mind_mlir.parse(f"{text}\n{callee}\n", "loop.ir", format="core")
    return mind_mlir.verify(loop)
