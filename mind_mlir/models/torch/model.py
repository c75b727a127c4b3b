"""`from_torch`: a module of torch as a function that runs compiled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import count
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Unpack

from mind_mlir.diagnostics import Diagnostic, TracingError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.models.torch.exporting import EXPORTING, Exported, exported
from mind_mlir.models.torch.state import ModuleState, key_of, modes_of
from mind_mlir.models.torch.tensors import check_values, load_torch
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.options import Options, options_of, takes
from mind_mlir.runtime.stage_text import stage_text
from mind_mlir.runtime.staged import DEFAULT_MAX_SIGNATURES
from mind_mlir.support import argument_checks
from mind_mlir.support.stages import FORMS

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module
    from mind_mlir.models.torch.compiled import GraphProgram
    from mind_mlir.support.options import CompileOptions


class TorchModel:
    """A module of torch that runs compiled; `mind_mlir.from_torch` makes one.

    It is called as the module is, and returns what that returns, without a graph for gradients. Weights are
    read where they lie, so that a call sees what has been changed in place, or assigned anew. A program is
    made for each form of arguments: dtypes, shapes, containers, and values that are no tensors; and of the
    module: modes, modules, and other attributes in it.

    Attributes:
        source: The module of torch.
    """

    def __init__(
        self,
        module: Any,
        options: CompileOptions,
        *,
        dynamic: Any = None,
        frozen: bool = False,
        buckets: object = None,
    ) -> None:
        """Hold a module, or a function; `from_torch` says what the others are."""
        self._given = module
        self.source = module if isinstance(module, load_torch().nn.Module) else _as_module(module)
        self._options, self._dynamic, self._frozen, self._buckets = options, dynamic, frozen, buckets
        self._made: BindingCache[Hashable, Exported] = BindingCache(DEFAULT_MAX_SIGNATURES)
        self._plain: dict[Hashable, Exported] = {}
        self._tree = load_torch().utils._pytree
        self._tensor = load_torch().Tensor
        self._state = None if frozen else ModuleState(self.source)
        self._first: tuple[Exported, list[Any]] | None = None

    def __repr__(self) -> str:
        return f"<TorchModel {getattr(self._given, '__name__', type(self._given).__name__)}>"

    def __reduce__(self) -> Any:
        made = partial(TorchModel, dynamic=self._dynamic, frozen=self._frozen, buckets=self._buckets)
        return made, (self._given, self._options)

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module.

        Raises:
            UnsupportedError: E7001, the module cannot be read.
            ArgumentError: A tensor is none of this machine's memory (E6105), or does not fit (E61xx).
            ExecutionError: As a call of an `Executable`.
        """
        leaves: list[Any] = [*args, *kwargs.values()]
        with EXPORTING:  # elsewhere, `torch.export` may just have put other tensors into the module
            key = self._plain_key(leaves, kwargs)
            found = None if key is None else self._plain.get(key)
            if found is None:
                leaves, spec = self._tree.tree_flatten((args, kwargs))
                found = self._exported(leaves, spec, args, kwargs)
                if key is not None:
                    self._remember(key, found)
            values = found.values(leaves)
        return found(leaves, values)

    def _plain_key(self, leaves: list[Any], kwargs: dict[str, Any]) -> Hashable:
        """Return what says which program a call of tensors alone has, quickly; None for another call."""
        key: list[Any] = [self._state_key(), *kwargs]
        for leaf in leaves:
            if type(leaf) is not self._tensor:
                return None
            key += (leaf.shape, leaf.dtype)
        return tuple(key)

    def _remember(self, key: Hashable, found: Exported) -> None:
        if len(self._plain) >= DEFAULT_MAX_SIGNATURES:
            self._plain.clear()
        self._plain[key] = found

    def _exported(
        self, leaves: list[Any], spec: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Exported:
        form = (spec, *[self._key(leaf) for leaf in leaves])
        found = next(filter(None, (self._numbered(form, each, leaves, args, kwargs) for each in count())))
        if self._first is None:
            self._first = (found, leaves)
        return found

    def _numbered(
        self, form: Hashable, number: int, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Exported | None:
        """Return a program for a form, of which open extents have several, where it holds for these."""
        made = False

        def make() -> Exported:
            nonlocal made
            made = True
            return self._export(args, kwargs)

        found = self._made.get((form, self._state_key(), number), make)
        if made:  # the module has run: what it has changed of itself is no reason to read it anew
            return self._made.get((form, self._state_key(), number), lambda: found)
        return found if found.guards is None or found.guards.hold(leaves, args, kwargs) else None

    def _key(self, leaf: Any) -> Hashable:
        if isinstance(leaf, self._tensor):
            return (leaf.dtype, leaf.ndim if self._dynamic else leaf.shape)
        return key_of(leaf)

    def _export(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exported:
        check_values(self._tree.tree_leaves_with_path((args, kwargs)))
        found = exported(
            self.source,
            args,
            kwargs,
            self._options,
            dynamic=self._dynamic,
            frozen=self._frozen,
            buckets=self._buckets,
        )
        if self._state is not None:
            self._state.note_changes()
        return found

    def _state_key(self) -> Hashable:
        """Return what besides arguments decides on a program; a frozen module is not looked at again."""
        return modes_of(load_torch()) if self._state is None else self._state.key()

    def lower(self, *args: Any, **kwargs: Any) -> GraphProgram:
        """Return the program for arguments, which is compiled but not run."""
        leaves, spec = self._tree.tree_flatten((args, kwargs))
        with EXPORTING:
            found = self._exported(leaves, spec, args, kwargs)
        return _program_of(found, leaves)

    @property
    def module(self) -> Module:
        """Return the program for the example, or for the arguments of the first call, as a module."""
        if self._first is None:
            raise TracingError(
                Diagnostic(
                    "E2305",
                    "the model has no program yet: nobody has said what its arguments are",
                    help="give an example: mind_mlir.from_torch(module, x), or call the model first",
                )
            )
        found = _program_of(*self._first).module
        assert found is not None, "a model computes something"
        return found

    @property
    def compiled(self) -> int:
        """Return how many programs have been compiled."""
        # A module that changes itself as it is read has its program for what it was before, too.
        graphs = {id(each): each.compiled for _, each in self._made.items()}
        return sum(each.compiled for each in graphs.values())

    @property
    def reason(self) -> str | None:
        """Return why there is no program for a range of extents, where one was asked for; else None."""
        return next(filter(None, [each.compiled.open.reason for _, each in self._made.items()]), None)

    def as_text(self, stage: str = "core") -> str:
        """Return `module` in the form that a stage leaves it in (see `mind_mlir.Executable.as_text`)."""
        argument_checks.choice(stage, FORMS, "stage")
        return stage_text(self.module, stage, self._options)

    @property
    def weights(self) -> Mapping[str, Any]:
        """Return parameters and buffers by their names in the module, as they are now."""
        return {**dict(self.source.named_parameters()), **dict(self.source.named_buffers())}


def _program_of(found: Exported, leaves: list[Any]) -> GraphProgram:
    return found.compiled.program(found.values(leaves))


@public
@takes(Options)
def from_torch(
    module: Any,
    *example: Any,
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Any = None,
    frozen: bool = False,
    buckets: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> TorchModel:
    """Return a module of torch, or a function of tensors, as what runs compiled.

    It is read by `torch.export`, in the mode, training or not, that it is in. For gradients, give
    `torch.compile` the backend ``"mind_mlir"``.

    Args:
        module: A `torch.nn.Module`, a function of tensors, or a `torch.export.ExportedProgram`.
        example: Arguments, for which the program is made and compiled now; without any, that is done for
            those of the first call.
        kwargs: Further arguments of the example, by name.
        dynamic: Which extents of arguments may differ from call to call without the module being read
            again: what `torch.export.export` takes as ``dynamic_shapes``, or True for all. A program serves a
            range of extents, as those of `mind_mlir.jit`; where there is no such one, for `reason`, each
            extent has a program of its own. None for reading the module anew for new shapes.
        frozen: Whether weights are constants: the code is made for what they hold now, and does not see
            later changes, neither of them nor of anything else in the module.
        buckets: The greatest extents of ranges that share a program, for open dimensions.
        options: Those of `mind_mlir.runtime.options`.

    Raises:
        UnsupportedError: E7003, torch is not installed; E7001, the module does what cannot be read, with all
            operators that there are no rules for.
        TypeError: ``module`` can not be called, or an option is of another type.
        ValueError: As `mind_mlir.compile`.
    """
    torch = load_torch()
    argument_checks.mapping(kwargs or {}, "kwargs", "a mapping from names to arguments")
    if not (dynamic is None or isinstance(dynamic, (bool, Mapping, list, tuple))):
        argument_checks.reject("dynamic", "True, False, or shapes as torch.export.export takes them", dynamic)
    if isinstance(module, torch.export.ExportedProgram):
        module = module.module()
    if not callable(module) or isinstance(module, type):
        argument_checks.reject("module", "a torch.nn.Module, or a function of tensors", module)
    chosen = options_of(options, "from_torch", Options, prepares=argument_checks.flag(frozen, "frozen"))
    made = TorchModel(module, chosen, dynamic=dynamic, frozen=frozen, buckets=buckets)
    if example or kwargs:
        made.lower(*example, **(kwargs or {}))
    return made


def _as_module(function: Any) -> Any:
    module = load_torch().nn.Module()
    module.forward = _called_forward(function)
    return module


def _called_forward(function: Any) -> Any:
    """Return a function under the name of a module's, for torch notes the places of these alone."""
    if isinstance(function, MethodType):
        return MethodType(_called_forward(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        return lambda *args, **kwargs: function(*args, **kwargs)  # noqa: PLW0108 -- it has code, as torch asks
    code = function.__code__.replace(co_name="forward")
    made = FunctionType(code, function.__globals__, None, function.__defaults__, function.__closure__)
    made.__kwdefaults__, made.__annotations__ = function.__kwdefaults__, function.__annotations__
    return made
