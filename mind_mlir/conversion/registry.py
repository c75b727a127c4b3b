"""The registry of conversion targets: those that ship, those registered, and those that other packages ship.

A package ships a target by an entry point of the group ``mind_mlir.conversion_targets`` that has the target's
name and leads to a `ConversionTarget`, or to a function without arguments that returns one. It is loaded when
it is first asked for, and once. One that cannot be is a finding (E7204), and no target.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import entry_points
from threading import RLock
from typing import TYPE_CHECKING

from mind_mlir.conversion.shipped import GROUP, SHIPPED
from mind_mlir.conversion.target import ConversionTarget
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_lock = RLock()
_registered: dict[str, ConversionTarget] = {}
#: What became of each plug-in that has been asked for, by name: a target, or what is wrong.
_loaded: dict[str, ConversionTarget | Diagnostic] = {}


@public
def register_conversion_target(target: ConversionTarget) -> ConversionTarget:
    """Make ``target`` known in this process, and return it.

    Raises:
        TypeError: It is no `ConversionTarget`.
        ValueError: There is a target of that name.
    """
    given = argument_checks.expect(target, ConversionTarget, "target", "a ConversionTarget")
    with _lock:
        known = _registered.get(given.name)
        if given.name in SHIPPED or (known is not None and known is not given):
            raise ValueError(
                f"target must be new, but there is one called '{given.name}': give it another name"
            )
        return _registered.setdefault(given.name, given)


@public
def get_conversion_target(name: str) -> ConversionTarget:
    """Return the target called ``name``.

    Raises:
        UnsupportedError: E7204, a package has one of that name that cannot be loaded.
        TypeError: ``name`` is no string.
        ValueError: There is none of that name.
    """
    name = argument_checks.text(name, "name")
    found = _find(name)
    if isinstance(found, Diagnostic):
        raise UnsupportedError(found)
    if found is not None:
        return found
    names = conversion_target_names()
    guess = did_you_mean(name, names)
    raise ValueError(f"name must be one of {', '.join(names)}; not '{brief(name)}'{guess}")


@public
def list_conversion_targets() -> tuple[ConversionTarget, ...]:
    """Return all targets, in order of their names; those that cannot be loaded are left out."""
    found = [_find(name) for name in conversion_target_names()]
    return tuple(each for each in found if isinstance(each, ConversionTarget))


def conversion_target_names() -> tuple[str, ...]:
    """Return the names of all targets, in order, those that cannot be loaded included: none is loaded."""
    return tuple(sorted({*SHIPPED, *_registered, *_plug_ins()}))


def conversion_target_problems() -> tuple[Diagnostic, ...]:
    """Return what is wrong with targets that other packages ship: an E7204 for each, as a warning."""
    found = [_plugged(point) for points in _plug_ins().values() for point in points]
    return tuple(replace(each, severity="warning") for each in found if isinstance(each, Diagnostic))


def _find(name: str) -> ConversionTarget | Diagnostic | None:
    if name in SHIPPED:
        from mind_mlir.conversion.targets import TARGETS  # noqa: PLC0415 -- only what asks for one needs their tables

        return TARGETS[name]
    if name in _registered:
        return _registered[name]
    points = _plug_ins().get(name)
    return None if points is None else _plugged(points[0])


def _plug_ins() -> dict[str, list[EntryPoint]]:
    """Return the entry points by name, several of one name in an order of their own."""
    found: dict[str, list[EntryPoint]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda each: (each.name, each.value, _package(each))):
        found.setdefault(point.name, []).append(point)
    return found


def _plugged(point: EntryPoint) -> ConversionTarget | Diagnostic:
    """Return what an entry point leads to, or what is wrong with it; it is loaded once."""
    key = f"{point.name} = {point.value} of {_package(point)}"
    with _lock:
        if key not in _loaded:
            _loaded[key] = _load(point)
        return _loaded[key]


def _load(point: EntryPoint) -> ConversionTarget | Diagnostic:
    if point.name in SHIPPED:
        return _broken(point, "there is a target of that name that ships with mind-mlir")
    if (points := _plug_ins()[point.name])[0] != point:
        return _broken(point, f"{_package(points[0])} has a target of that name, too")
    try:
        found = point.load()
        if not isinstance(found, ConversionTarget) and callable(found):
            found = found()
    except (Exception, SystemExit) as error:  # whatever a package of somebody else does when it is loaded
        return _broken(point, f"{type(error).__name__}: {brief(str(error))}".rstrip(": "))
    if not isinstance(found, ConversionTarget):
        return _broken(point, f"it leads to {argument_checks.describe(found)}, which is no ConversionTarget")
    if found.name != point.name:
        return _broken(point, f"it leads to a target that is called '{found.name}'")
    return found


def _broken(point: EntryPoint, why: str) -> Diagnostic:
    package = _package(point)
    return Diagnostic(
        "E7204",
        f"conversion target '{point.name}' of {package} cannot be used: {why}",
        notes=(f"its entry point is {point.value}",),
        help=f"ask the authors of {package}, or uninstall it",
        context=FrozenDict({"target": point.name, "package": package, "reason": why}),
    )


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"package {point.dist.name}"
