"""Who may import whom, how large things may grow, and what a bare import loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal

ROOT = Path(shoal.__file__).parent
# Lowest first; a package imports from lower layers and from itself. Types alone (TYPE_CHECKING) count, too.
LAYERS = (
    ("wording",),
    ("errors",),
    ("registry",),
    ("files",),
    ("document",),
    ("core",),
    ("models", "metrics", "algorithms", "engines"),
    ("policy",),
    ("columns",),
    ("workflow",),
    ("sample",),
    ("integrations",),
    ("web",),
    ("cli",),
    ("sklearn", "__main__"),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
PLUGINS = ("models", "metrics", "algorithms", "engines")


def modules() -> Iterator[str]:
    for path in sorted(ROOT.rglob("*.py")):
        yield ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def file_of(module: str) -> Path:
    path = ROOT.parent / Path(*module.split("."))
    package = path / "__init__.py"  # a folder without it holds what an earlier version has left
    return package if package.exists() else path.with_suffix(".py")


def imports(module: str) -> set[str]:
    """Return what a module imports, wherever the import stands."""
    path = file_of(module)
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "shoal"}


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_package_has_its_layer() -> None:
    assert {package_of(module) for module in modules()} - {""} == set(RANK)


@pytest.mark.parametrize("module", [module for module in modules() if module != "shoal"])
def test_a_module_imports_only_from_lower_layers(module: str) -> None:
    package = package_of(module)
    for other in imports(module):
        there = package_of(other)
        allowed = there in ("", package) or RANK.get(there, -1) < RANK[package]
        assert allowed, f"{module} imports {other}"


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """What is imported when it is first used, or for its type alone, does not count."""
    known = set(modules())
    edges: dict[str, set[str]] = defaultdict(set)
    for module in known:
        path = file_of(module)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                names = {f"{node.module}.{alias.name}" for alias in node.names} & known
                edges[module] |= names or ({node.module} & known)
    finished: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, f"a circle: {' -> '.join((*way[way.index(module) :], module))}"
        if module not in finished:
            for other in sorted(edges[module]):
                visit(other, (*way, module))
            finished.add(module)

    for module in sorted(known):
        visit(module, ())


def registered() -> dict[str, set[str]]:
    """Return the modules of the registered plug-ins of each kind."""
    from importlib import import_module

    registries = {kind: getattr(import_module(f"shoal.{kind}"), kind.upper()) for kind in PLUGINS}
    return {
        kind: {registry.load(name).__module__ for name in registry} for kind, registry in registries.items()
    }


def test_every_folder_is_described() -> None:
    text = (ROOT.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"__pycache__"}
    assert not {name for name in folders if f"`{name}/`" not in text}


@pytest.mark.parametrize("kind", PLUGINS)
def test_siblings_do_not_import_each_other(kind: str) -> None:
    """Shared code of a folder (not registered) may be imported; a registered plug-in may not."""
    homes = registered()[kind]
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


# What the code may not outgrow; these numbers go down, or a later change says in the changelog why not.
# Files, lines and code do not count plug-ins of one file and the lists of their names: new ones are welcome.
LIMITS = {"files": 341, "lines": 71_600, "code": 53_100, "long functions": 10, "modules of anonymize": 110}
TOP_LEVEL = {"errors", "registry", "wording"}
ENTRY_POINTS = {"__init__", "__main__", "sample", "sklearn"}  # documented, or Python's own
HEAVY_FEATURES = ("suda", "order_cuts", "mondrian", "workflow.report", "workflow.utility", "workflow.attack")


def one_file_plugins() -> set[Path]:
    """Return the files of the plug-ins that are one file, and of the lists of their names."""
    folders = {ROOT / kind for kind in PLUGINS}
    files = {file_of(module) for homes in registered().values() for module in homes}
    return {file for file in files if file.parent in folders} | {folder / "__init__.py" for folder in folders}


def sizes() -> dict[str, int]:
    """Count files, lines, lines without blanks, comments and docstrings, and functions over 50 lines."""
    uncounted = one_file_plugins()
    counted = dict.fromkeys(("files", "lines", "code", "long functions"), 0)
    for path in ROOT.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        tree = ast.parse("\n".join(lines))
        documented: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0] if node.body else None
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    documented |= set(range(first.lineno, (first.end_lineno or 0) + 1))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                counted["long functions"] += (node.end_lineno or 0) - node.lineno >= 50
        if path in uncounted:
            continue
        code = [
            number
            for number, line in enumerate(lines, 1)
            if line.strip() and not line.strip().startswith("#") and number not in documented
        ]
        counted["files"] += 1
        counted["lines"] += len(lines)
        counted["code"] += len(code)
    return counted


def test_the_code_stays_within_its_limits() -> None:
    too_large = {name: size for name, size in sizes().items() if size > LIMITS[name]}
    assert not too_large


def test_few_modules_are_at_the_top() -> None:
    assert {path.stem for path in ROOT.glob("*.py")} <= TOP_LEVEL | ENTRY_POINTS


def test_a_plain_anonymize_imports_what_it_uses(tmp_path: Path) -> None:
    code = (
        "import sys, shoal; from shoal.sample import bundled;"
        f"data, policy = bundled({str(tmp_path)!r}); output = {str(tmp_path / 'r.csv')!r};"
        "shoal.anonymize(data, policy, output=output);"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert not {"numba", "ibis", "pandas", "fsspec"} & {*loaded}
    names = [name for name in loaded if name.split(".")[0] == "shoal"]
    assert len(names) <= LIMITS["modules of anonymize"]
    assert not [name for name in names if any(feature in name for feature in HEAVY_FEATURES)]


# Words that a newcomer would not search for, as names of functions, classes, modules, variables, parameters.
FORBIDDEN = {
    "told", "found", "own", "place", "so_many", "meant", "perhaps", "told_apart", "otherwise", "hopeless",
    "ahead", "book", "spared", "sizes_settle", "naming", "beyond", "lent", "stuck", "falls_short",
    "values_alone", "explains", "abandoned", "vanished", "wish", "wishes", "Variety", "Entries", "Searched",
    "Seen", "Look", "Site", "Hubs", "Books", "Charge", "NOBODY", "Room", "Seat", "Desk", "Holder", "Beginner",
    "Kept", "TOLD", "Wish", "PolicyWish",
}  # fmt: skip
# Common as variables; not the names of functions, classes and modules.
FORBIDDEN_DEFINITIONS = FORBIDDEN | {
    "again", "apart", "clock", "done", "far", "held", "hold", "kept", "look", "near", "one", "opened",
    "plain", "settle", "short", "within",
}  # fmt: skip
KEPT_NAMES = {("workflow/outliers.py", "found")}  # a key of the JSON


def defined_names(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield every name that a module stores, and whether it is that of a function, a class or the module."""
    yield path.stem, True
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, True
        elif isinstance(node, ast.arg):
            yield node.arg, False
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, False


def test_names_are_those_that_a_newcomer_would_search_for() -> None:
    used = set()
    for path in ROOT.rglob("*.py"):
        for name, defines in defined_names(path):
            word = name.lstrip("_")
            if word in (FORBIDDEN_DEFINITIONS if defines else FORBIDDEN):
                used.add((path.relative_to(ROOT).as_posix(), word))
    assert used <= KEPT_NAMES


def type_names(path: Path) -> Iterator[str]:
    """Yield the public classes and type aliases of a module; an alias has a name like that of a class."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        else:
            continue
        if re.fullmatch(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name):
            yield name


def test_no_public_type_is_defined_twice() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        for name in type_names(path):
            homes[name].append(str(path.relative_to(ROOT)))
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}
