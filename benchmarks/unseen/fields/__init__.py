"""The programs, a module a field."""

from __future__ import annotations

from benchmarks.unseen.fields import dynamics, finance, geometry, graphs, learning, science, speech, vision

#: The programs of each field.
FIELDS = {
    "Science": science.PROGRAMS,
    "Dynamics": dynamics.PROGRAMS,
    "Geometry": geometry.PROGRAMS,
    "Vision": vision.PROGRAMS,
    "Speech": speech.PROGRAMS,
    "Graphs": graphs.PROGRAMS,
    "Finance": finance.PROGRAMS,
    "Machine learning": learning.PROGRAMS,
}

#: All programs, by name.
PROGRAMS = {each.name: each for programs in FIELDS.values() for each in programs}
