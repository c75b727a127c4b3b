"""A caller's options for the machine code of a module, as one record on its way down the stages."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

from mind_mlir.support.lazy_dataclass import dataclass

DEFAULT_OPT_LEVEL = 3
#: How many bindings of symbolic dimensions keep their code, unless a caller says otherwise.
DEFAULT_MAX_BINDINGS = 32

#: Of fields that take no part in the key of the cache: a key says them more exactly, or they change no code.
_NOT_IN_KEY = {"in_key": False}


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The options of a compilation; `mind_mlir.runtime.options` explains those that callers give.

    Attributes:
        opt_level: The most that LLVM optimises, 0 to 3.
        threads: How many threads share a loop at most; None for as many as the process is set to.
        target: The name of the processor; None for what the environment says.
        winograd: Whether convolutions take Winograd's form where it is faster.
        bf16x6: Whether tiles of bf16 multiply f32 and f16, as sums of these, where that is faster.
        disabled_passes: The passes of the optimiser that do not run, by name.
        prepares: Whether what is made of large literals alone is evaluated when the module is compiled.
        debug: Whether machine code says which line of the program it comes from.
        debug_prefixes: Beginnings of paths, with what debug information says in their place; the last that
            fits counts.
        cache: Whether code is kept on disk, or in which directory; None for what the environment says.
        check_nan: Whether calls check that results are finite, and say what made them otherwise.
        interpret: Whether operations run one by one, with numpy; None for what the environment says.
    """

    opt_level: int = DEFAULT_OPT_LEVEL
    threads: int | None = field(default=None, metadata=_NOT_IN_KEY)
    target: str | None = field(default=None, metadata=_NOT_IN_KEY)
    winograd: bool = False
    bf16x6: bool = True
    disabled_passes: frozenset[str] = frozenset()
    prepares: bool = False
    debug: bool = field(default=False, metadata=_NOT_IN_KEY)
    debug_prefixes: tuple[tuple[str, str], ...] = field(default=(), metadata=_NOT_IN_KEY)
    cache: bool | str | None = field(default=None, metadata=_NOT_IN_KEY)
    check_nan: bool = field(default=False, metadata=_NOT_IN_KEY)
    interpret: bool | None = field(default=None, metadata=_NOT_IN_KEY)

    def __reduce__(self) -> tuple[Any, ...]:
        # Sets have no order of their own, and pickles are to be the same in each process.
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return _again, ({**given, "disabled_passes": sorted(self.disabled_passes)},)


def _again(given: dict[str, Any]) -> CompileOptions:
    return CompileOptions(**{**given, "disabled_passes": frozenset(given["disabled_passes"])})


#: The options that code depends on by themselves, which make a part of its key.
KEY_OPTIONS = tuple(each.name for each in fields(CompileOptions) if each.metadata.get("in_key", True))
