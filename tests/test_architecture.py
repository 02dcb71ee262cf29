"""Who may import whom, and what a bare import loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal

ROOT = Path(shoal.__file__).parent
CORE_ORDER = (
    "arrays", "progress", "chances", "uniqueness_sample", "uniqueness_pitman", "uniqueness_snb",
    "uniqueness_zayatz", "uniqueness", "schema", "memory", "delimiters", "counts", "held", "far",
    "markup", "block", "drawn", "figure", "outline", "tree",  # of what a notebook shows
    "hierarchy", "builder", "dates", "calendar", "encodings", "listed",
    "numbers", "prefixes", "builders", "groups", "regions", "lattice", "tags", "recoding", "classes",
    "books", "hubs", "far_hubs", "batch", "cell_kernels", "cells",
    "table_kernels", "tabulate", "subsets", "linking_kernels", "linking",
    "suda_kernels", "suda", "partition_tables", "partition_tally", "partition_cuts",
    "partition_choice", "partition_moves", "partition_rounds", "partition", "ranges", "contracts", "targets",
    "problem", "evaluation", "judgement", "evaluate", "cuts", "matching_kernels", "matching", "lowering",
    "combinations", "blanking", "finer", "specialization", "cut_tables", "cut_steps",
    "cut_entries", "cut_bounds", "cut_prices", "cut_nodes", "cut_ground", "cut_greedy", "cut_search",
)  # fmt: skip
PLUGINS = ("models", "metrics", "algorithms", "engines")
# Lowest first: what several parts share, the parts in their folders, and what a release is made of.
PARTS = (
    "identifiers", "column_names", "outputs", "plot_lines", "plots", "choose", "infeasible", "search",
    "assessing", "policies", "policy", "policy_schema", "spreadsheet",
    "sensitive", "sensitive_table",
    "problem", "recipe", "outliers",
    "analysing", "attacking", "comparing", "diagnosing", "importing", "profiling", "reporting",
    "notebook", "verify", "release", "releasing",
)  # fmt: skip
# What people call, which no part imports.
FACES = (
    "comparison", "diagnosis", "negotiate", "study", "profile", "risk", "report", "utility",
    "anonymize", "apply", "arx", "attack", "catalogue", "compare", "diagnose", "hierarchies", "init",
    "inspection", "measure", "sample", "sklearn", "successive",
)  # fmt: skip
WORKFLOW_ORDER = (*PARTS, *FACES)
INTERFACES = ("__main__", "cli", "commands", "display", "web")


def modules() -> Iterator[str]:
    for path in sorted(ROOT.rglob("*.py")):
        yield ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def imports(module: str) -> set[str]:
    """Return what a module imports at run time, wherever the import stands."""
    path = ROOT.parent / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "shoal"}


@pytest.mark.parametrize("module", list(modules()))
def test_a_module_imports_only_what_lies_below_it(module: str) -> None:
    parts = module.split(".")[1:]
    room = parts[0] if parts else ""
    for other in imports(module):
        target = other.split(".")[1:]
        there = target[0] if target else ""
        if room == "core":
            assert there in ("core", "errors"), f"{module} imports {other}"
        elif room in PLUGINS:
            assert there in (room, "core", "errors", "registry"), f"{module} imports {other}"
        elif room in ("errors", "options", "registry"):
            assert there in ("errors", "options"), f"{module} imports {other}"
        elif room in INTERFACES:
            assert there not in (*PLUGINS, "core", "registry"), f"{module} imports {other}"
        else:
            assert room in INTERFACES or there not in INTERFACES, f"{module} imports {other}"


def test_every_folder_is_told_of() -> None:
    text = (ROOT.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"__pycache__"}
    assert not {name for name in folders if f"`{name}/`" not in text}


@pytest.mark.parametrize("module", [m for m in modules() if m.startswith("shoal.core.")])
def test_the_core_has_an_order(module: str) -> None:
    own = module.removeprefix("shoal.core.")
    if own in ("kernels", "walks", "warm"):
        return
    for other in imports(module):
        name = other.removeprefix("shoal.core.").split(".")[0]
        if other.startswith("shoal.core.") and name in CORE_ORDER:
            assert CORE_ORDER.index(name) < CORE_ORDER.index(own), f"{module} imports {other}"


def units() -> dict[str, list[str]]:
    """Return the modules of each file or folder of the workflow."""
    below = ("core", "errors", "options", "registry", "data", *PLUGINS)
    found: dict[str, list[str]] = {}
    for module in modules():
        room = module.removeprefix("shoal").strip(".").split(".")[0]
        if room and room not in (*below, *INTERFACES):
            found.setdefault(room, []).append(module)
    return found


def test_every_part_of_the_workflow_has_its_place_and_every_folder_is_a_part() -> None:
    assert sorted(units()) == sorted(WORKFLOW_ORDER)
    assert not [face for face in FACES if (ROOT / face).is_dir()]


@pytest.mark.parametrize("unit", WORKFLOW_ORDER)
def test_the_workflow_has_an_order(unit: str) -> None:
    """What is needed for a type alone (TYPE_CHECKING) may come from above."""
    for module in units()[unit]:
        for other in imports(module):
            there = other.split(".")[1] if "." in other else ""
            if there in WORKFLOW_ORDER and there != unit:
                lower = WORKFLOW_ORDER.index(there) < WORKFLOW_ORDER.index(unit)
                assert lower, f"{module} imports {other}, which stands above it"


@pytest.mark.parametrize("kind", PLUGINS)
def test_siblings_do_not_import_each_other(kind: str) -> None:
    """Shared code of a folder (not registered) may be imported; a registered plug-in may not."""
    from importlib import import_module

    registry = getattr(import_module(f"shoal.{kind}"), kind.upper())
    homes = {registry.load(name).__module__ for name in registry}
    for home in homes:
        assert not (imports(home) & (homes - {home}))


def test_a_bare_import_loads_nothing_heavy() -> None:
    heavy = {"numba", "ibis", "duckdb", "pandas", "polars", "pyarrow", "pyspark"}
    code = f"import shoal, sys; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_library_never_prints() -> None:
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        assert not any(getattr(call.func, "id", "") == "print" for call in calls), path
