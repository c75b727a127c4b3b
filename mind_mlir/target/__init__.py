"""The description of the processor that will run the code, for schedules and code generators.

A :class:`Target` is data: schedules are pure functions of shapes, dtypes and a target, so that the same
program scheduled for the same target gives the same module on every machine. `host_target` detects the
features of the machine at hand; `artefact_target` makes targets of names.
"""

from mind_mlir.target.artefact import ARTEFACT_TARGETS, artefact_target, processors_of
from mind_mlir.target.features import FEATURES
from mind_mlir.target.host import (
    host_architecture,
    host_features,
    host_flags,
    host_target,
    missing_features,
    refused_features,
    target_from_features,
)
from mind_mlir.target.named import (
    NATIVE,
    TARGETS,
    VARIABLE,
    environment_target,
    least_target,
    named_target,
    rates_are_measured,
    required_features,
    runnable_target,
    runs_here,
    triple_of,
)
from mind_mlir.target.processors import PROCESSORS
from mind_mlir.target.record import AARCH64, BASELINE, X86_64, Target

__all__ = [
    "AARCH64",
    "ARTEFACT_TARGETS",
    "BASELINE",
    "FEATURES",
    "NATIVE",
    "PROCESSORS",
    "TARGETS",
    "VARIABLE",
    "X86_64",
    "Target",
    "artefact_target",
    "environment_target",
    "host_architecture",
    "host_features",
    "host_flags",
    "host_target",
    "least_target",
    "missing_features",
    "named_target",
    "processors_of",
    "rates_are_measured",
    "refused_features",
    "required_features",
    "runnable_target",
    "runs_here",
    "target_from_features",
    "triple_of",
]
