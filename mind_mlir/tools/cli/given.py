"""What a command runs: a function of a program, and the arrays that its options say it is given."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import Interface, interface_of
from mind_mlir.passes.verify import verify
from mind_mlir.tools.cli.input_extents import given_extents
from mind_mlir.tools.cli.inputs import InputSpecs, make_inputs
from mind_mlir.tools.cli.programs import declared

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.tools.cli.stage_log import StageLog


class Given(NamedTuple):
    """A function and its arguments.

    Attributes:
        module: The function, with what it calls.
        interface: Its inputs and outputs.
        arguments: An array for each input, by name.
    """

    module: Module
    interface: Interface
    arguments: Mapping[str, Array]


def given(
    log: StageLog,
    file: str,
    function: str | None,
    extents: Mapping[str, int],
    constants: Mapping[str, str],
    specs: InputSpecs,
    seed: int,
) -> Given:
    """Read and verify a program, and make the arrays that its function is to be run with."""
    module = log.read(file, function, extents, partial(given_extents, function=function, specs=specs))
    with log.timed("verify"):
        verify(module)
    name = entry_function(module, function).name
    module = declared(restricted(module, name), constants)
    interface = interface_of(entry_function(module, name))
    log.session.stage = "inputs"
    return Given(module, interface, make_inputs(module, interface, specs, seed))


def random_inputs(module: Module, *, seed: int) -> Mapping[str, Array]:
    """Return random arrays for the inputs of the function of a verified module that is meant."""
    return make_inputs(module, interface_of(entry_function(module)), InputSpecs({}, "random"), seed)
