"""Profiles: which operations, dtypes and forms a module may use.

A profile is data. The module names it, the verifier enforces it, autodiff and the legality checks read it.
Operations of the registry that stand outside Core v1 (`OpDef.extension`) are accepted in every profile that
does not refuse them.
"""

from __future__ import annotations

from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a profile refuses an operation that a person may well try, and what to write instead."""

    reason: str
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One set of rules.

    Attributes:
        name: What `Module.profile` says.
        summary: One line for the reference.
        dtypes: The element types that values may have.
        refused: Opcodes that are rejected although they are well known, and why.
        allows_blocks: Whether a module is functions with signatures, of blocks with parameters, rather than
            one flat list of instructions.
        partial_index: Whether Index may give fewer indices than there are dimensions.
        explicit_broadcast: Whether elementwise operations take operands of one shape only.
        empty_arguments: Whether arguments of exported functions may have no elements.
        empty_shapes: Whether constants and new shapes may have extents of 0.
    """

    name: str
    summary: str
    dtypes: tuple[DType, ...]
    refused: Mapping[str, Refusal] = field(default_factory=lambda: MappingProxyType({}))
    allows_blocks: bool = False
    partial_index: bool = False
    explicit_broadcast: bool = False
    empty_arguments: bool = False
    empty_shapes: bool = False


_ONE_RESULT = Refusal(
    "instructions of Core v1 have one result", "write the program as functions (profile core-functions)"
)
_NO_FLOW = Refusal(
    "Core v1 is a flat list of instructions", "write the program as functions (profile core-functions)"
)

CORE_V1 = Profile(
    name="core-v1",
    summary="MIND Core IR v1: a flat list of instructions over i1, i32, i64, f32 and f64 tensors",
    dtypes=(DType.I1, DType.SI32, DType.SI64, DType.F32, DType.F64),
    refused=MappingProxyType(
        {
            "Div": Refusal(
                "division is not part of Core v1 (core-ir.md, Binary operations)",
                "multiply by the reciprocal: %r = Reciprocal (%b), then Mul (%a, %r)",
            ),
            "TopK": _ONE_RESULT,
            **dict.fromkeys(("Cond", "While", "Scan", "Call"), _NO_FLOW),
        }
    ),
)

CORE_FUNCTIONS = Profile(
    name="core-functions",
    summary="functions of blocks that branch, over the same tensors as Core v1",
    dtypes=CORE_V1.dtypes,
    refused=MappingProxyType(
        {
            "Input": Refusal(
                "the arguments of a function are its parameters",
                "declare a parameter: func @main(%x: tensor<f32[2, 3]>)",
            )
        }
    ),
    allows_blocks=True,
    partial_index=True,
)

PTIR = Profile(
    name="ptir-v0.4",
    summary="PTIR, the Portable Tensor IR contract ptir.v0.4: functions of one block, over all dtypes",
    dtypes=tuple(DType),
    refused=CORE_FUNCTIONS.refused,
    allows_blocks=True,
    explicit_broadcast=True,
    empty_arguments=True,
    empty_shapes=True,
)

#: What functions of Python are: Core IR's forms, with all that PTIR has beyond them. No text spells it.
EXTENDED_FUNCTIONS = replace(
    PTIR,
    name="extended-functions",
    summary="functions of blocks that branch, over tensors of all dtypes, which may be empty",
    partial_index=True,
    explicit_broadcast=False,
)

#: What any profile allows: the rules of the `mind` dialect, which no module chooses.
ANY_PROFILE = Profile(
    name="any",
    summary="what any profile allows",
    dtypes=tuple(DType),
    allows_blocks=True,
    partial_index=True,
)

#: Every profile by name.
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {profile.name: profile for profile in (CORE_V1, CORE_FUNCTIONS, PTIR, EXTENDED_FUNCTIONS)}
)
