"""Print the modules of `mind-opt`: at the end, and before and after passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Module, Operation
    from mind_mlir.tools.opt.pass_plan import MLIRStep, OurStep


@dataclass(frozen=True, slots=True)
class Printing:
    """The options of printing modules; the fields are those of the options ``--mlir-...``."""

    print_debuginfo: bool = False
    pretty_debuginfo: bool = False
    print_op_generic: bool = False
    print_local_scope: bool = False
    print_skip_regions: bool = False
    use_nameloc_as_prefix: bool = False
    elide_elementsattrs_if_larger: int | None = None
    elide_resource_strings_if_larger: int | None = None

    def text(self, operation: Operation, *, local_scope: bool = False) -> str:
        """Return ``operation`` as text that ends with a line feed; in ``local_scope`` without aliases."""
        text: str = operation.get_asm(
            large_elements_limit=self.elide_elementsattrs_if_larger,
            large_resource_limit=self.elide_resource_strings_if_larger,
            enable_debug_info=self.print_debuginfo or self.pretty_debuginfo,
            pretty_debug_info=self.pretty_debuginfo,
            print_generic_op_form=self.print_op_generic,
            use_local_scope=self.print_local_scope or local_scope,
            use_name_loc_as_prefix=self.use_nameloc_as_prefix,
            skip_regions=self.print_skip_regions,
        )
        return f"{text.rstrip()}\n"


@dataclass(frozen=True, slots=True)
class Selection:
    """Some of the passes: all of them, or those that are named."""

    every: bool = False
    names: frozenset[str] = frozenset()

    def __contains__(self, name: object) -> bool:
        return self.every or name in self.names

    def __bool__(self) -> bool:
        return self.every or bool(self.names)


@dataclass(frozen=True, slots=True)
class Dumps:
    """The choice of IR dumps before and after passes, which are printed in the form of mlir-opt.

    Attributes:
        before: The passes before which IR is printed.
        after: The passes after which it is.
        after_change: Whether only passes that changed something are followed by a dump.
        after_failure: Whether only passes that fail are, whichever they are.
        module_scope: Whether the whole module is printed where a pass works on a part of it.
    """

    before: Selection = Selection()
    after: Selection = Selection()
    after_change: bool = False
    after_failure: bool = False
    module_scope: bool = False

    def __bool__(self) -> bool:
        return bool(self.before) or bool(self.after) or self.after_failure


@dataclass(slots=True)
class Dumper:
    """Prints the dumps of one module.

    Attributes:
        dumps: What to print.
        printing: How.
        stream: Where to.
    """

    dumps: Dumps
    printing: Printing
    stream: TextIO
    _fingerprint: str = ""

    def starts(self, step: OurStep | MLIRStep, module: Module, target: Operation | None) -> None:
        """See ``target``, or the module where that is None, before a pass works on it."""
        if step.name in self.dumps.before:
            self._dump(f"Before {step.label}", module, target)
        if self.dumps.after_change and step.name in self.dumps.after:
            self._fingerprint = _fingerprint(target or module.operation)

    def ends(self, step: OurStep | MLIRStep, module: Module, target: Operation | None) -> None:
        """See what a pass has left."""
        if step.name not in self.dumps.after or self.dumps.after_failure:
            return
        if self.dumps.after_change and self._fingerprint == _fingerprint(target or module.operation):
            return
        self._dump(f"After {step.label}", module, target)

    def fails(self, step: OurStep | MLIRStep, module: Module, target: Operation | None) -> None:
        """See what a pass has left that failed."""
        if self.dumps.after_failure or step.name in self.dumps.after:
            self._dump(f"After {step.label} Failed", module, target)

    def _dump(self, title: str, module: Module, target: Operation | None) -> None:
        if target is not None and self.dumps.module_scope:
            title += f" ({_description(target)})"
            target = None
        # What stands alone has nowhere to put its aliases.
        text = self.printing.text(target or module.operation, local_scope=target is not None)
        self.stream.write(f"// -----// IR Dump {title} //----- //\n{text}\n")


def _description(operation: Operation) -> str:
    attributes = operation.attributes
    symbol = f": @{attributes['sym_name'].value}" if "sym_name" in attributes else ""
    return f"'{operation.name}' operation{symbol}"


def _fingerprint(operation: Operation) -> str:
    """Return a text that differs wherever two operations do, locations included."""
    return str(operation.get_asm(print_generic_op_form=True, enable_debug_info=True))
