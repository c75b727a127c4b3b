"""Which pages the site has, in the order of its menu: a page has a line here, or it is not built."""

from __future__ import annotations

from website import api, commands, error_index, operations, sources

#: The tabs of the site, and the pages of each, by their place in the tree.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Start": (
        "README.md",
        "docs/start.md",
        "docs/from-numpy.md",
        "docs/from-jax.md",
        "docs/from-torch.md",
        "docs/cookbook.md",
        "docs/faster.md",
    ),
    "Python": (
        "docs/python.md",
        "docs/numpy.md",
        "docs/random.md",
        "docs/notebooks.md",
        "docs/custom_calls.md",
        "docs/torch.md",
        "docs/onnx.md",
        "docs/stablehlo.md",
        "docs/weights.md",
        "docs/quantization.md",
        "examples/models/README.md",
        "examples/digits/README.md",
    ),
    "Language": ("docs/language.md", "docs/language-reference.md", "docs/editors.md"),
    "Core IR and PTIR": (
        "docs/tutorial.md",
        operations.HEAD,
        "docs/programs.md",
        "docs/ptir-formats.md",
        "docs/ptir-operations.md",
        "docs/ptir-conformance.md",
        "docs/conversion.md",
        "docs/stablehlo-target.md",
        "docs/c-target.md",
    ),
    "Processes": (
        "docs/distributed.md",
        "docs/training.md",
        "docs/partitioning.md",
        "docs/planning.md",
        "docs/workers.md",
    ),
    "Shipping": ("docs/artefacts.md", "docs/serving.md", "examples/c/README.md", "SECURITY.md"),
    "Stages": (
        "docs/stages.md",
        "docs/explorer.md",
        "docs/optimiser.md",
        "docs/identities.md",
        "docs/schedule.md",
        "docs/buffers.md",
        "docs/debugging.md",
    ),
    "Performance": (
        "docs/performance.md",
        "docs/profiling.md",
        "docs/peers.md",
        "docs/scaling.md",
        "docs/models.md",
        "docs/unseen.md",
        "docs/atlas.md",
    ),
    "Reference": (
        commands.HEAD,
        error_index.HEAD,
        api.HEAD,
        "docs/glossary.md",
        "CHANGELOG.md",
        "docs/releasing.md",
        sources.HEAD,
    ),
    "Development": (
        "CONTRIBUTING.md",
        "docs/how-to-read.md",
        "docs/architecture.md",
        "docs/design/ir-and-verification.md",
        "docs/design/languages.md",
        "docs/design/differentiation.md",
        "docs/design/numbers.md",
        "docs/design/lowering-and-scheduling.md",
        "docs/design/memory.md",
        "docs/design/code-and-cache.md",
        "docs/design/runtime-and-threads.md",
        "docs/design/tools.md",
        "docs/design/bindings.md",
    ),
}
#: How much the pages of tabs, and of folders of the site, count for the search, where that is not 1.
WEIGHTS = {"Start": 2.0, "Development": 0.5, "errors": 0.4, "operations": 0.4, "sources": 0.4}
#: Where pages are on the site that lie elsewhere in the tree than in `docs`.
_PLACES = {
    api.HEAD: api.PLACE,
    error_index.HEAD: error_index.PLACE,
    operations.HEAD: operations.PLACE,
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/models/README.md": "models-in-python.md",
    "examples/digits/README.md": "digits.md",
    "examples/c/README.md": "digits-in-c.md",
}


def place_of(path: str) -> str:
    """Return where the page that lies at `path` in the tree is on the site."""
    return _PLACES.get(path, path.removeprefix("docs/"))


def weight_of(place: str) -> float:
    """Return how much a page of the site counts for the search."""
    tabs = [tab for tab, section in SECTIONS.items() if place in map(place_of, section)]
    return next((WEIGHTS[each] for each in (place.partition("/")[0], *tabs) if each in WEIGHTS), 1.0)


def pages() -> tuple[str, ...]:
    """Return the pages that lie in the tree."""
    return tuple(path for section in SECTIONS.values() for path in section if path != sources.HEAD)
