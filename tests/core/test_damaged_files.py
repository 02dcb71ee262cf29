"""Damaged files: none crashes the process, raises anything but a deliberate error, or shows a value."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import damaged_inputs
from example_counts import usual_or_nightly

SEED = 20
NUMBER = usual_or_nightly(5, 75)  # of each kind
PART = 25  # files that one process reads


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    damaged_inputs.prepare(folder)
    return folder


def read_damaged(folder: Path, kind: str, first: int, last: int) -> list[dict[str, Any]]:
    """Let a process of its own read some files."""
    words = [sys.executable, damaged_inputs.__file__, str(folder), kind, *map(str, (SEED, first, last))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{kind} {first + len(found)} ended the process: {done.stderr[-500:]}"
    return found


@pytest.mark.parametrize("kind", damaged_inputs.DAMAGE)
def test_a_damaged_file_is_an_error_of_ours_or_harmless(whole: Path, kind: str) -> None:
    found = []
    for first in range(0, NUMBER, PART):
        found += read_damaged(whole, kind, first, min(first + PART, NUMBER))
    outcomes = [one for one in found if "code" in one]
    assert len(outcomes) == NUMBER
    assert [one for one in outcomes if "accident" in one] == []
    assert [one for one in outcomes if one["leak"] or one["long"]] == []
    assert {one["code"] for one in outcomes} <= {0, 1, 2}
    codes = {code: sum(one["code"] == code for one in outcomes) for code in (0, 1, 2)}
    peak = max(one["peak"] for one in found if "peak" in one)
    print(kind, codes, "slowest", max(one["seconds"] for one in outcomes), "s, peak", peak // 1024, "MB")  # noqa: T201


@pytest.mark.parametrize("kind", damaged_inputs.DAMAGE)
def test_a_whole_file_is_read(whole: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(whole)
    path = whole / f"whole-{damaged_inputs.NAMES[kind]}"
    path.write_bytes((whole / f"whole.{kind}").read_bytes())
    told = damaged_inputs.outcome(kind, path)
    assert (told["code"], told["leak"], told.get("accident")) == (0, False, None), told


@pytest.mark.parametrize(("kind", "number"), [("parquet", 56), ("regions", 54), ("regions", 58)])
def test_what_was_an_accident_once_is_an_error(whole: Path, kind: str, number: int) -> None:
    """Statistics that contradict the values of a Parquet file, and a range without an end."""
    outcome = read_damaged(whole, kind, number, number + 1)[0]
    assert (outcome["code"], "accident" in outcome) == (2, False)
    assert "is damaged" in outcome["message"]
