"""`plan`: what a program would send, hold and take on processes and a network that need not be there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from mind_mlir.collectives.problems import failed
from mind_mlir.collectives.world import ranks_each
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.mesh import Mesh, mesh_of
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.passes.verify import verify
from mind_mlir.planning.costs import planned
from mind_mlir.planning.meshes import in_parts, is_annotated, layouts_of, mesh_from, with_mesh
from mind_mlir.planning.network import Network
from mind_mlir.planning.report import PlannedLayouts, ProgramPlan
from mind_mlir.runtime.lowered import Lowered
from mind_mlir.runtime.threads import check_threads, get_num_threads
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Module
    from mind_mlir.languages.programs.kinds import AnyProgram

#: A plan looks at all pairs of processes.
MOST_PROCESSES = 1 << 12


@public
def plan(
    program: AnyProgram | Lowered,
    *,
    function: str | None = None,
    bindings: Mapping[str, int] | None = None,
    processes: int | None = None,
    mesh: Mesh | str | None = None,
    network: Network | str | None = None,
    threads: int | None = None,
    parts: bool = False,
) -> ProgramPlan:
    """Return what a call of a function sends, holds and takes where processes run it; nothing is run.

    The bytes that processes send are exactly those of a run. Times are those of the rates that this machine
    was measured to have, and of the network that is stated.

    Args:
        program: A module of any profile, a program, or what ``lower`` of a traced function returns.
        function: The exported function to plan for; may be left out where one alone is exported, or one is
            called ``main``.
        bindings: Extents for the symbolic dimensions of a program, by name without the ``?``.
        processes: How many processes there are; one for each rank of the mesh unless given.
        mesh: Other sizes for the axes of the program's mesh, as a mesh, or as a text: ``data=64,model=8``, or
            ``64x8``. Programs with annotations allow all by which dimensions can be divided, programs with
            collectives of their own those that keep their shapes.
        network: What connects the processes, or a text that states it (see `Network`); unless given, all of
            them share this machine.
        threads: How many threads each process computes with; `get_num_threads` says unless given.
        parts: Whether arguments and results stay in parts, as those of `mind_mlir.partition` may, where a
            program has annotations; else they are whole in each process.

    Raises:
        VerificationError: The program breaks a rule; the exception holds all findings. E2002, E2101, E2102:
            there is no such function, it is not exported, or it must be said which one is meant. E6206, the
            program cannot be planned so.
        ExecutionError: E6201, the ranks cannot be spread over so many processes.
        TypeError: An argument is not of the type above.
        ValueError: ``network`` or ``mesh`` states none, ``processes`` is not positive or ``threads`` is
            wrong, or ``bindings`` names a symbol that there is not.
    """
    wanted = _wanted(program, function, bindings, network, threads, parts=parts)
    return wanted.plan(_mesh(wanted.module, mesh), processes)


@public
def plan_layouts(
    program: AnyProgram | Lowered,
    processes: int,
    *,
    function: str | None = None,
    bindings: Mapping[str, int] | None = None,
    memory: int | None = None,
    network: Network | str | None = None,
    threads: int | None = None,
    parts: bool = False,
) -> PlannedLayouts:
    """Return the plans of all sizes that the axes of a program's mesh may have on so many processes.

    Each process runs one rank. The best plan comes first: of those that fit into the memory, the one that
    takes least.

    Args:
        program: As of `plan`; what each rank computes follows from annotations in it (`with_sharding`).
        processes: How many processes there are.
        function: As of `plan`.
        bindings: As of `plan`.
        memory: How many bytes of memory each process has; as many as it needs unless given.
        network: As of `plan`.
        threads: As of `plan`.
        parts: As of `plan`.

    Raises:
        VerificationError: As `plan`; E6206, the program has no annotations, or no sizes divide its
            dimensions.
        ExecutionError: As `plan`.
        TypeError: An argument is not of the type above.
        ValueError: As `plan`, or ``memory`` is negative.
    """
    wanted = _wanted(program, function, bindings, network, threads, parts=parts)
    if not is_annotated(wanted.module):
        _refuse("what each rank computes does not follow from annotations", "plan for one mesh, or use Shard")
    if argument_checks.integer(processes, "processes") < 1:
        raise ValueError(f"processes must be positive, not {processes}")
    if memory is not None and argument_checks.integer(memory, "memory") < 0:
        raise ValueError(f"memory must not be negative, is {memory}")
    plans, refused = list[ProgramPlan](), dict[str, str]()
    for mesh in layouts_of(mesh_of(mesh_text(wanted.module)), processes):
        try:
            plans.append(wanted.plan(mesh, processes))
        except VerificationError as error:
            refused[str(mesh)] = (error.diagnostics[0].notes or (str(error),))[0]
    if not plans:
        _refuse(f"no sizes of the mesh on {processes} processes divide it", "plan for others", refused)
    plans.sort(key=lambda each: (memory is not None and each.memory.total > memory, each.seconds))
    return PlannedLayouts(tuple(plans), refused, memory)


class _Wanted(NamedTuple):
    """A verified module, whose only exported function is planned, and what it runs on."""

    module: Module
    name: str
    network: Network | None
    threads: int
    parts: bool

    def plan(self, mesh: Mesh | None, processes: int | None) -> ProgramPlan:
        """Return the plan for a mesh of the axes of the program's; None where it has none."""
        module = self.module
        if mesh is not None and str(mesh) != mesh_text(module):
            module = with_mesh(module, mesh)
        count = _processes(mesh, processes)
        if self.parts:
            if not is_annotated(module):
                _refuse(
                    "it has no annotations, which divide its arguments and results", "leave out the parts"
                )
            module = in_parts(module)
        return planned(module, self.name, mesh, count, self.network, self.threads, parts=self.parts)


def _wanted(
    program: AnyProgram | Lowered,
    function: str | None,
    bindings: Mapping[str, int] | None,
    network: Network | str | None,
    threads: int | None,
    *,
    parts: bool,
) -> _Wanted:
    if isinstance(program, Lowered):
        program = program.module
    found, name = kind_of(program, "program").single(program, function, bindings)
    name = entry_function(found, name).name
    if network is not None and not isinstance(network, (Network, str)):
        argument_checks.reject("network", "a Network, or a text such as bandwidth=12.5GB/s", network)
    return _Wanted(
        restricted(verify(found), name),
        name,
        Network.parse(network) if isinstance(network, str) else network,
        get_num_threads() if threads is None else check_threads(threads, "threads"),
        argument_checks.flag(parts, "parts"),
    )


def _mesh(module: Module, given: Mesh | str | None) -> Mesh | None:
    """Return the mesh to plan a module for; None where it has none."""
    text = mesh_text(module)
    if given is None:
        return mesh_of(text) if text else None
    if not isinstance(given, (Mesh, str)):
        argument_checks.reject("mesh", "a Mesh, or a text such as 64x8", given)
    if not text:
        _refuse("it has no collectives, and so no mesh", "leave the mesh out")
    return mesh_from(str(given), mesh_of(text))


def _processes(mesh: Mesh | None, given: int | None) -> int:
    """Return how many processes run a program of a mesh."""
    if given is not None and argument_checks.integer(given, "processes") < 1:
        raise ValueError(f"processes must be positive, not {given}")
    found = given or (1 if mesh is None else mesh.size)
    if mesh is None and found > 1:
        _refuse(f"it has no collectives: one process runs it, not {found}", "leave the processes out")
    if found > MOST_PROCESSES:
        raise failed("E6201", f"{found} processes are too many to plan", f"plan {MOST_PROCESSES} at most")
    if mesh is not None:
        ranks_each(mesh, found)
    return found


def _refuse(reason: str, way_out: str, notes: Mapping[str, str] | None = None) -> NoReturn:
    """Raise an error: a program cannot be planned."""
    found = tuple([f"{mesh}: {why}" for mesh, why in (notes or {}).items()][:4])
    message = f"the program cannot be planned so: {reason}"
    raise VerificationError([Diagnostic("E6206", message, notes=found, help=way_out)])
