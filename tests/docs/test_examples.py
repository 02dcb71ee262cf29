"""Every code block of the docs and of the README runs: in a shell, in Python, or as the policy that it is.

The `sh` blocks of a page are one script, which finds the files that `furniture` knows; a `text` block right
below one is what it prints, where a line of three dots stands for lines left out. A `yaml` block whose first
line is `# policy.yaml` is that file. A `python` block runs by itself. What is only shown is `text` or `csv`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.core import TyperGroup

from code_blocks import DOCS, PAGES, README, ROOT, Block, blocks, prose
from doc_fixtures import furnished
from servers import needs_postgres, needs_spark
from shell import SHOAL, run
from shoal.cli.app import app
from shoal.models import MODELS
from shoal.policy.policy import Column, Policy
from shoal.web.workspace.sources import Sources

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

EVERY = (*PAGES, README)
LANGUAGES = {"sh", "python", "yaml", "csv", "text", "nginx"}  # nginx: tests/web/test_web_proxy.py runs it
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
REAL = DOCS / "howto" / "every-quarter.md"  # its commands run as processes of their own


def told(page: Path) -> str:
    return str(page.relative_to(ROOT))


def marks(code: str) -> list[Any]:
    """Say what the code needs; servers are those of the tests that have them running."""
    servers = {"spark": needs_spark, "postgres": needs_postgres}
    found = [mark for name, mark in servers.items() if name in code]
    found += [pytest.mark.xdist_group("servers")] if found else []
    return [*found, needs_curl] if "curl" in code else found


def all_blocks(language: str) -> list[Any]:
    return [
        pytest.param(block, id=block.place, marks=marks(block.text))
        for page in EVERY
        for block in blocks(page, language)
    ]


# What is there to run


@pytest.mark.parametrize("page", EVERY, ids=told)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.place}: name one of {sorted(LANGUAGES)}"


@pytest.mark.parametrize("page", EVERY, ids=told)
def test_no_code_is_hidden_from_the_tests_by_indentation(page: Path) -> None:
    before = listed = ""
    for number, line in prose(page):
        if line.strip() and not line.startswith(" "):
            listed = line if re.match(r"[-*\d]", line) else ""
        if line.startswith("    ") and not before.strip():
            assert listed, f"{told(page)}:{number}: put it between fences"
        before = line


# Policies


@pytest.mark.parametrize("block", all_blocks("yaml"))
def test_every_yaml_block_holds_known_entries(block: Block, tmp_path: Path) -> None:
    written = yaml.safe_load(block.text)
    if isinstance(written, list):
        assert all(set(step) <= {"run", "uses", "with"} for step in written)  # steps of a workflow
        return
    if all(isinstance(entry, dict) and "address" in entry for entry in written.values()):
        path = tmp_path / "sources.yaml"  # of `shoal studio --sources`
        path.touch(mode=0o600)
        path.write_text(block.text, encoding="utf-8")
        assert set(Sources.read(path).entries) == set(written)
        return
    assert set(written) <= {*Policy.model_fields, *Column.model_fields}
    for model in written.get("models", []):
        ((name, options),) = model.items()
        MODELS.create(name, options)


@pytest.mark.parametrize(
    "block", [found for found in all_blocks("yaml") if "columns:" in found.values[0].text]
)
def test_every_policy_in_the_docs_is_valid(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(block.text, encoding="utf-8")
    policy = Policy.load(path)
    assert Policy.load(yaml.safe_load(policy.to_yaml())) == policy


# Python


@pytest.mark.parametrize("block", all_blocks("python"))
def test_every_python_example_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    needs = block.text if marks(block.text) else ""  # the others make what they need
    with furnished(tmp_path, block.page, needs) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        exec(compile(block.text, block.place, "exec"), {"__name__": "docs"})


# The shell


def steps(page: Path) -> list[tuple[str, str | None]]:
    """Return what a page runs in a shell, and what stands right below as what that prints.

    That is its `sh` blocks, and the commands of a workflow.
    """
    found: list[tuple[str, str | None]] = []
    before = ""
    for block in blocks(page):
        if block.language == "sh":
            found.append((block.text, None))
        elif block.language == "yaml" and isinstance(written := yaml.safe_load(block.text), list):
            found.append(("\n".join(step["run"] for step in written if "run" in step), None))
        elif block.language == "text" and block.below and before == "sh":
            found[-1] = (found[-1][0], block.text)
        before = block.language
    return found


def script(page: Path) -> str:
    return "\n".join(part for part, _ in steps(page))


def printed_as(text: str, shown: str) -> bool:
    """Say whether a text is what is shown, in which a line of three dots stands for any lines."""
    lines = [line.rstrip() for line in shown.strip().splitlines()]
    pattern = "\n".join(r"[\s\S]*" if line == "..." else re.escape(line) for line in lines)
    return bool(re.fullmatch(pattern, "\n".join(line.rstrip() for line in text.strip().splitlines())))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=told(page), marks=marks(script(page)))
        for page in EVERY
        if steps(page) and page != REAL
    ],
)
def test_every_command_of_a_page_runs_after_the_one_before(page: Path, tmp_path: Path) -> None:
    with furnished(tmp_path, page, script(page)) as environment:
        ran = run([part for part, _ in steps(page)], tmp_path, environment)
    assert ran.code == 0, str(ran)
    for printed, (_, shown) in zip(ran.printed, steps(page), strict=True):
        assert shown is None or printed_as(printed, shown), printed


def test_the_commands_of_a_page_run_as_processes_of_their_own(tmp_path: Path) -> None:
    wanted = "\n".join(["set -euo pipefail", *(part for part, _ in steps(REAL) if "make" not in part)])
    assert wanted.count("\nshoal ") == 3
    home = os.pathsep.join([str(SHOAL.parent), os.environ["PATH"]])
    with furnished(tmp_path, REAL, wanted):
        done = subprocess.run(
            ["bash", "-c", wanted],
            cwd=tmp_path,
            env=os.environ | {"PATH": home},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    assert done.returncode == 0, done.stdout + done.stderr


# What prose names


def test_every_link_of_the_readme_leads_to_a_file_and_a_heading() -> None:
    found = re.findall(r"\]\((?!https?:)([^)#]+)(?:#([^)]+))?\)", README.read_text(encoding="utf-8"))
    assert found
    for path, heading in found:
        assert (ROOT / path).is_file(), path
        headings = [line.lstrip("# ").lower() for _, line in prose(ROOT / path)] if heading else []
        assert not heading or heading in {re.sub(r"[^\w-]", "", line.replace(" ", "-")) for line in headings}


def named(page: Path) -> Iterator[tuple[int, list[str]]]:
    text = "\n".join(line for _, line in prose(page))
    for found in re.finditer(r"`(shoal [a-z][^`]*)`", text):
        yield found.start(), shlex.split(found[1].replace("\n", " "))


@pytest.mark.parametrize("page", [page for page in EVERY if any(named(page))], ids=told)
def test_every_option_that_prose_gives_a_command_is_one_of_it(page: Path) -> None:
    for _, words in named(page):
        command: Any = typer.main.get_command(app)
        rest = words[1:]
        while rest and rest[0] in getattr(command, "commands", {}):
            command, rest = command.commands[rest[0]], rest[1:]
        assert not isinstance(command, TyperGroup) or "COMMAND" in rest or rest == [], words
        known = {written for option in command.params for written in (*option.opts, *option.secondary_opts)}
        assert {word for word in rest if word.startswith("-")} <= known | {"--help"}, words
