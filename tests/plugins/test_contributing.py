"""The examples of CONTRIBUTING.md: each plug-in works with its files and its line."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

import shoal
from shoal.algorithms import ALGORITHMS
from shoal.engines import ENGINES
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.workflow.catalogue import algorithm_sentence
from shoal.workflow.session import choose_engine

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
REGISTRIES: dict[str, Any] = {
    "metrics": METRICS, "models": MODELS, "algorithms": ALGORITHMS, "engines": ENGINES
}  # fmt: skip
EXAMPLES = re.findall(
    r'`"([\w-]+)": "shoal\.(\w+)\.(\w+):(\w+)"`\n\n```python\n# src/shoal/\2/\3\.py\n(.*?)```',
    TEXT,
    re.DOTALL,
)
TESTS = re.findall(r"```python\n# (tests/plugins/examples/\w+\.py)\n(.*?)```", TEXT, re.DOTALL)

# The tests of structure that every plug-in must pass; none may need a change for a new one.
STRUCTURE = (
    *(
        f"tests/test_architecture.py::{name}"
        for name in (
            "test_the_code_stays_within_its_limits",
            "test_siblings_do_not_import_each_other",
            "test_names_are_those_that_a_newcomer_would_search_for",
            "test_no_public_type_is_defined_twice",
            "test_a_plain_anonymize_imports_what_it_uses",
        )
    ),
    "tests/web/test_web_forms.py::test_every_model_has_one_sentence",
    "tests/workflow/test_privacy.py::test_every_model_is_released_here",
    *(
        f"tests/plugins/contracts/{name}"
        for name in (
            "test_metrics.py::test_every_metric_is_tried_here",
            "test_models.py::test_every_model_is_tried_here",
            "test_models.py::test_every_model_that_is_not_always_monotone_has_its_example",
        )
    ),
)


def table() -> pa.Table:
    ages = [20 + 7 * row % 40 for row in range(120)]
    return pa.table({"age": ages, "sex": ["f", "m", "m"] * 40})


def policy(**entries: Any) -> dict[str, Any]:
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
    }
    return {"columns": columns, "models": [{"k-anonymity": {"k": 4}}], **entries}


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Add the plug-ins of all examples, and return their names by folder."""
    monkeypatch.syspath_prepend(tmp_path)
    names = {}
    for name, folder, module, kind, code in EXAMPLES:
        (tmp_path / f"example_{module}.py").write_text(code, encoding="utf-8")
        registry = REGISTRIES[folder]
        homes = {**registry._locations, name: f"example_{module}:{kind}"}
        monkeypatch.setitem(vars(registry), "_locations", homes)
        names[folder] = name
    importlib.invalidate_caches()
    return names


@pytest.mark.parametrize("code", [*(code for *_, code in EXAMPLES), *(code for _, code in TESTS)])
def test_every_function_of_an_example_is_typed(code: str) -> None:
    functions = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)]
    assert functions
    for function in functions:
        assert function.returns
        assert all(argument.annotation or argument.arg == "self" for argument in function.args.args)


def test_there_is_an_example_of_every_kind(added: dict[str, str]) -> None:
    assert set(added) == set(REGISTRIES)


def test_the_metric_is_minimized(added: dict[str, str]) -> None:
    release = shoal.anonymize(table(), policy(metric=added["metrics"], suppression_limit="10%"))
    counts = release.table.group_by(["age", "sex"]).aggregate([([], "count_all")])
    assert release.loss == max(counts["count_all"].to_pylist())


def test_the_model_suppresses(added: dict[str, str]) -> None:
    models = [{"k-anonymity": {"k": 2}}, {added["models"]: {"most": 7}}]
    release = shoal.anonymize(table(), policy(models=models, suppression_limit="60%"))
    counts = release.table.group_by(["age", "sex"]).aggregate([([], "count_all")])
    assert max(counts["count_all"].to_pylist()) <= 7


def test_the_search_stops_at_the_least_height(added: dict[str, str]) -> None:
    release = shoal.anonymize(table(), policy(algorithm=added["algorithms"]))
    least = shoal.anonymize(table(), policy(algorithm="samarati", metric="height"))
    assert sum(release.levels.values()) == sum(least.levels.values())


def test_every_search_has_one_sentence_for_the_studio(added: dict[str, str]) -> None:
    sentences = {name: algorithm_sentence(name) for name in ("auto", *ALGORITHMS)}
    assert added["algorithms"] in sentences
    assert all(text.endswith(".") and text.count(". ") == 0 for text in sentences.values())
    assert len({*sentences.values()}) == len(sentences)


def test_a_plug_in_is_named_without_loading_others(
    added: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, name in added.items():
        registry = REGISTRIES[folder]
        options = {"most": 3} if folder == "models" else {}
        plugin = registry.create(name, options)
        monkeypatch.setattr(registry, "load", None)
        assert registry.name_of(plugin) == name
        assert registry.name_of(TEXT) == "str"


@pytest.mark.filterwarnings("ignore:.*infer_string")  # of what Ibis asks pandas for
def test_the_engine_releases(added: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    connection = ibis.sqlite.connect("people.db")
    connection.create_table("people", table())
    connection.disconnect()
    release = shoal.anonymize("people", policy(), engine=added["engines"])
    assert release.levels == shoal.anonymize(table(), policy()).levels
    tables = ibis.sqlite.connect("people.db")
    engine = choose_engine("auto", tables.table("people"))
    assert ENGINES.name_of(engine) == added["engines"]
    tables.disconnect()


def test_the_plug_ins_pass_the_contracts_with_their_own_files(tmp_path: Path) -> None:
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, folder, module, kind, code in EXAMPLES:
        (tmp_path / f"src/shoal/{folder}/{module}.py").write_text(code, encoding="utf-8")
        registry = tmp_path / f"src/shoal/{folder}/__init__.py"
        text, lines = re.subn("    {\n", f'    {{\n        "{name}": "shoal.{folder}.{module}:{kind}",\n',
                              registry.read_text(encoding="utf-8"), count=1)  # fmt: skip
        assert lines == 1
        registry.write_text(text, encoding="utf-8")
    (tmp_path / "tests/plugins/examples").mkdir(exist_ok=True)
    assert len(TESTS) == 3
    for file, code in TESTS:
        (tmp_path / file).write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    names = " or ".join(name for name, *_ in EXAMPLES)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(tmp_path / "src"), "SHOAL_CHECK": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    structure = run(*STRUCTURE)
    assert structure.returncode == 0, structure.stdout[-4000:]
    result = run("-k", names, "tests/plugins/contracts")
    assert result.returncode == 0, result.stdout[-4000:]
    for name, *_ in EXAMPLES:
        assert re.search(rf"\[{name}\] PASSED", result.stdout), name
