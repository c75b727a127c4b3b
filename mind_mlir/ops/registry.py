"""The table of all operation records, by opcode and by dialect mnemonic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, overload

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ops.opdef import OpDef

#: The modules that hold records, in the order of the reference, and what their operations are called: whoever
#: reads a program loads the records that it has, which are few.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "constants": ("Input", "ConstI64", "ConstF32", "ConstF64", "ConstTensor"),
    "random_numbers": ("RngUniform", "RngNormal"),
    "elementwise": ("Add", "Sub", "Mul", "Neg"),
    "division": ("Div",),
    "extrema": ("Maximum", "Minimum"),
    "functions": ("Relu", "Exp", "Log", "Reciprocal", "Tanh", "Erf", "Rsqrt"),
    "rounding": ("Sqrt", "Floor", "Ceil", "RoundEven", "Round", "Sign", "IsFinite"),
    "transcendental": ("Log1p", "Expm1", "Logistic", "Sin", "Cos", "Tan", "Atan2", "Power", "Cbrt"),
    "remainders": ("Remainder",),
    "clamping": ("Abs", "Clamp", "StopGradient"),
    "selection": ("Compare", "Select"),
    "logic": ("And", "Or", "Xor", "Not"),
    "bits": (
        "ShiftLeft",
        "ShiftRightLogical",
        "ShiftRightArithmetic",
        "PopulationCount",
        "CountLeadingZeros",
    ),
    "conversion": ("Cast",),
    "bitcast": ("Bitcast",),
    "complex_elements": ("Real", "Imag", "Complex"),
    "reductions": ("Sum", "Mean"),
    "reduce": ("Reduce",),
    "products": ("ReduceProd", "ReduceBits"),
    "cumulate": ("Cumulate",),
    "argmax": ("ArgMax",),
    "topk": ("TopK",),
    "argsort": ("ArgSort",),
    "reshaping": ("Reshape", "ExpandDims", "Squeeze"),
    "shaping": ("Transpose", "BroadcastTo"),
    "joining": ("Concat", "Tile"),
    "iota": ("Iota",),
    "indexing": ("Index", "Gather", "Take", "GatherElements"),
    "slicing": ("Slice",),
    "dynamic_slicing": ("DynamicSlice", "DynamicUpdateSlice"),
    "padding": ("Pad",),
    "scatter": ("ScatterAdd", "ScatterReduce"),
    "xla_windows": ("GatherWindows", "ScatterWindows"),
    "segments": ("SegmentReduce",),
    "quantization": ("Quantize", "Dequantize", "Requantize"),
    "quantized_dot": ("QuantizedDot",),
    "contractions": ("Dot", "MatMul"),
    "dot_general": ("DotGeneral",),
    "normalization": ("LayerNorm",),
    "reduce_window": ("ReduceWindow",),
    "patches": ("ExtractPatches",),
    "convolution": ("Conv2d",),
    "convolution_general": ("Convolution",),
    "custom_call": ("CustomCall",),
    "collectives": (
        "AllReduce",
        "ReduceScatter",
        "AllGather",
        "AllToAll",
        "BroadcastFrom",
        "Shift",
        "AxisIndex",
    ),
    "parts": ("TakePart", "JoinParts"),
    "shard": ("Shard",),
    "control": ("Cond", "While", "Call"),
    "scan": ("Scan",),
}

NOTHING_FIXED: Mapping[str, AttributeValue] = MappingProxyType({})


@cache
def all_ops() -> tuple[OpDef, ...]:
    """Return every record, in reference order."""
    return tuple(record for family in FAMILIES for record in _family(family))


def _family(name: str) -> tuple[OpDef, ...]:
    records: tuple[OpDef, ...] = import_module(f"mind_mlir.ops.{name}").OPERATIONS
    return records


class _Records(Mapping[str, "OpDef"]):
    """The records by opcode; those of a family are loaded when one of them is asked for."""

    def __init__(self) -> None:
        self._families = {opcode: family for family, opcodes in FAMILIES.items() for opcode in opcodes}
        self._loaded: dict[str, OpDef] = {}

    def __getitem__(self, opcode: str) -> OpDef:
        record = self._loaded.get(opcode)
        if record is None:
            self._loaded.update((each.opcode, each) for each in _family(self._families[opcode]))
            record = self._loaded[opcode]
        return record

    def __contains__(self, opcode: object) -> bool:
        return opcode in self._families

    def __iter__(self) -> Iterator[str]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)


@cache
def by_opcode() -> Mapping[str, OpDef]:
    """Return the records by canonical opcode."""
    return _Records()


@cache
def by_mnemonic() -> Mapping[str, OpDef]:
    """Return the records by their name in the `mind` dialect."""
    return MappingProxyType({record.mnemonic: record for record in all_ops()})


class Spelling(NamedTuple):
    """The meaning of a name in a profile: an operation, and attributes that the name fixes."""

    record: OpDef
    attributes: Mapping[str, AttributeValue]


@overload
def lookup(name: str) -> OpDef | None: ...
@overload
def lookup(name: str, profile: str) -> Spelling | None: ...
def lookup(name: str, profile: str | None = None) -> OpDef | Spelling | None:
    """Return what ``name`` stands for, or None.

    Without a profile, it is an opcode as operations in memory have it, and the answer its record. With the
    name of a profile, the aliases of that profile are names, too, and the answer says what they fix.
    """
    record = by_opcode().get(name)
    if profile is None:
        return record
    return Spelling(record, NOTHING_FIXED) if record is not None else _aliases(profile).get(name)


@cache
def _aliases(profile: str) -> Mapping[str, Spelling]:
    return {
        alias.name: Spelling(record, alias.attributes)
        for record in all_ops()
        for alias in record.aliases
        if alias.profile == profile
    }
