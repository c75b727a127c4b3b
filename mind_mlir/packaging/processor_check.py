"""Code that asks the processor whether it has what other code needs, as text of the LLVM dialect.

It runs on the oldest processor of its architecture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mind_mlir.target.features import FEATURES, Question, with_implied
from mind_mlir.target.processors import LEVELS, PROCESSORS
from mind_mlir.target.tile_state import ARCH_PRCTL, REQUEST, TILE_DATA

#: What the operating system has to save where vectors of 32 bytes are used, and of 64, and tiles: bits of the
#: register XCR0, which another instruction reads. It is there where cpuid says so.
_YMM, _ZMM, _TILES = 0b110, 0b11100110, 3 << 17
STATE = Question(-1)
#: Linux is asked for leave to use tiles, which is what matters of its answer.
LEAVE = Question(-2)
_STATE_IS_THERE = (Question(1, register=2), 27)


def questions(machine: str, features: Iterable[str]) -> Sequence[tuple[Question, int]]:
    """Return what to ask a processor, and the bits that all have to be set in the answer.

    Returns:
        The questions in order, those about `STATE` and `LEAVE` last: they may be asked where the others have
        been answered so. Nothing where no feature is needed.

    Raises:
        KeyError: A feature is not known.
    """
    masks: dict[Question, int] = {}
    state = 0
    for name in features:
        feature = FEATURES[machine][name]
        masks[feature.question] = masks.get(feature.question, 0) | 1 << feature.bits[-1]
        used = with_implied(machine, (name,))
        state |= _ZMM if "avx512f" in used else _YMM if "avx" in used else 0
        state |= _TILES if "amx-tile" in used else 0
    if state:
        question, bit = _STATE_IS_THERE
        masks[question] = masks.get(question, 0) | 1 << bit
    ordered = sorted(masks.items())
    leave = [(LEAVE, 0)] if state & _TILES else []
    return [*ordered, (STATE, state), *leave] if state else ordered


def in_words(machine: str, features: Iterable[str]) -> str:
    """Return what code needs as people say it: a level of the architecture, and what is beyond that."""
    found = frozenset(features)
    level = next(name for name in reversed(LEVELS[machine]) if PROCESSORS[name].features <= found)
    least = [level] if level != LEVELS[machine][0] else []
    return ", ".join([*least, *sorted(found - PROCESSORS[level].features)])


#: What `check_text` defines: ``i32 ()``, which returns `SUPPORTED` or another number.
LOOK = "mind.c.look"
SUPPORTED = 1

#: The least that each architecture promises: functions with these attributes run everywhere.
BASELINE = {
    "x86_64": 'target_cpu = "x86-64", target_features = #llvm.target_features<["+sse2"]>',
    "aarch64": 'target_cpu = "generic", target_features = #llvm.target_features<["+neon"]>',
}
_ANSWER = "!llvm.struct<(i32, i32, i32, i32)>"
_EXTENDED = 0x80000000


def check_text(machine: str, features: Iterable[str]) -> str:
    """Return the text of `LOOK` for ``features``; nothing where none is needed.

    Raises:
        KeyError: A feature is not known.
    """
    asked = questions(machine, features)
    if not asked:
        return ""
    if machine == "aarch64":
        ask = _ask_system
        lines = ["llvm.func @getauxval(i64) -> i64"]
    else:
        ask = _ask_processor
        lines = []
    lines += [
        f"llvm.func internal @{LOOK}() -> i32 attributes {{no_inline, {BASELINE[machine]}}} {{",
        f"  %yes = llvm.mlir.constant({SUPPORTED} : i32) : i32",
        "  %no = llvm.mlir.constant(2 : i32) : i32",
    ]
    for number, (question, mask) in enumerate(asked):
        lines += ask(number, question, mask)
    return "\n".join([*lines, "  llvm.return %yes : i32", "^lacking:", "  llvm.return %no : i32", "}"])


def _ask_processor(number: int, question: Question, mask: int) -> list[str]:
    """Return what goes on in a block of its own where all bits of ``mask`` are set."""
    found = f"%found_{number}"
    if question == STATE:
        lines = [
            f"  %first_{number} = llvm.mlir.constant(0 : i32) : i32",
            f'  %state_{number} = llvm.inline_asm has_side_effects "xgetbv", "={{ax}},={{dx}},{{cx}}" '
            f"%first_{number} : (i32) -> !llvm.struct<(i32, i32)>",
            f"  {found} = llvm.extractvalue %state_{number}[0] : !llvm.struct<(i32, i32)>",
        ]
        return [*lines, *_demand(number, found, mask, "i32")]
    if question == LEAVE:
        return _ask_for_tiles(number)
    # A processor answers anything to a question that it does not know.
    lines = _cpuid(f"least_{number}", question.leaf & _EXTENDED, 0, register=0)
    lines += _at_least(f"{number}_leaf", f"%least_{number}", question.leaf)
    if question.subleaf:
        lines += _cpuid(f"subleaf_{number}", question.leaf, 0, register=0)
        lines += _at_least(f"{number}_subleaf", f"%subleaf_{number}", question.subleaf)
    lines += _cpuid(found[1:], question.leaf, question.subleaf, question.register)
    return [*lines, *_demand(number, found, mask, "i32")]


def _ask_for_tiles(number: int) -> list[str]:
    """Return what goes on in a block of its own where Linux lets this process use tiles from now on."""
    numbers = zip("acb", (ARCH_PRCTL, REQUEST, TILE_DATA), strict=True)
    lines = [f"  %{name}_{number} = llvm.mlir.constant({value} : i64) : i64" for name, value in numbers]
    return [
        *lines,
        f'  %refused_{number} = llvm.inline_asm has_side_effects "syscall", '
        '"={ax},{ax},{di},{si},~{rcx},~{r11},~{memory}" '
        f"%a_{number}, %c_{number}, %b_{number} : (i64, i64, i64) -> i64",
        f"  %none_{number} = llvm.mlir.constant(0 : i64) : i64",
        f'  %has_{number} = llvm.icmp "eq" %refused_{number}, %none_{number} : i64',
        f"  llvm.cond_br %has_{number}, ^has_{number}, ^lacking",
        f"^has_{number}:",
    ]


def _cpuid(name: str, leaf: int, subleaf: int, register: int) -> list[str]:
    return [
        f"  %{name}_a = llvm.mlir.constant({_signed(leaf)} : i32) : i32",
        f"  %{name}_c = llvm.mlir.constant({subleaf} : i32) : i32",
        f'  %{name}_all = llvm.inline_asm has_side_effects "cpuid", '
        '"={ax},={bx},={cx},={dx},{ax},{cx}" '
        f"%{name}_a, %{name}_c : (i32, i32) -> {_ANSWER}",
        f"  %{name} = llvm.extractvalue %{name}_all[{register}] : {_ANSWER}",
    ]


def _at_least(name: str, value: str, least: int) -> list[str]:
    return [
        f"  %bound_{name} = llvm.mlir.constant({_signed(least)} : i32) : i32",
        f'  %is_{name} = llvm.icmp "uge" {value}, %bound_{name} : i32',
        f"  llvm.cond_br %is_{name}, ^known_{name}, ^lacking",
        f"^known_{name}:",
    ]


def _ask_system(number: int, question: Question, mask: int) -> list[str]:
    lines = [
        f"  %kind_{number} = llvm.mlir.constant({question.leaf} : i64) : i64",
        f"  %found_{number} = llvm.call @getauxval(%kind_{number}) : (i64) -> i64",
    ]
    return [*lines, *_demand(number, f"%found_{number}", mask, "i64")]


def _demand(number: int, found: str, mask: int, type_: str) -> list[str]:
    return [
        f"  %mask_{number} = llvm.mlir.constant({_signed(mask)} : {type_}) : {type_}",
        f"  %set_{number} = llvm.and {found}, %mask_{number} : {type_}",
        f'  %has_{number} = llvm.icmp "eq" %set_{number}, %mask_{number} : {type_}',
        f"  llvm.cond_br %has_{number}, ^has_{number}, ^lacking",
        f"^has_{number}:",
    ]


def _signed(value: int) -> int:
    """Return a number of 32 bits as MLIR writes it."""
    return value - (1 << 32) if value >= 1 << 31 else value
