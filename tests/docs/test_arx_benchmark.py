"""The benchmark that runs ARX says how, where it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "arx.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_without_a_class_path_it_says_what_to_give() -> None:
    done = _run()
    assert done.returncode == 1
    assert done.stderr.startswith("Give the class path of ARX: --arx libarx.jar.")
    assert not done.stdout


def test_with_a_class_path_that_is_not_there_it_names_it(tmp_path: Path) -> None:
    done = _run("--arx", str(tmp_path / "no.jar"))
    assert done.returncode == 1
    assert "no.jar" in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
