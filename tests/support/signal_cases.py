"""Commands that send themselves a signal at a named point, each in a process that is forked from this one.

Reads a JSON list of cases from stdin and prints what became of each: exit code, stdout and stderr.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import shoal.files.signals

for name in (
    "pyarrow.feather", "rich.progress", "shoal.cli.app",
    "shoal.workflow.release.anonymize", "shoal.workflow.compare.compare", "shoal.workflow.profile.profile",
    "shoal.workflow.risk.risk", "shoal.workflow.diagnosis.diagnose", "shoal.workflow.inspect",
    "shoal.engines.duckdb.engine", "shoal.engines.duckdb.decoded",
):  # fmt: skip
    import_module(name)

Send = Callable[[], None]


def wrap(place: str, *, before: Send | None = None, after: Send | None = None, when: Any = None) -> None:
    """Send a signal before or after a function of a module or class is called; where `when` says so."""
    module, _, name = place.rpartition(".")
    try:
        owner: Any = import_module(module)
    except ModuleNotFoundError:
        above, _, kind = module.rpartition(".")
        owner = getattr(import_module(above), kind)
    real = getattr(owner, name)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        chosen = when is None or when(*arguments, **options)
        if before and chosen:
            before()
        result = real(*arguments, **options)
        if after and chosen:
            after()
        return result

    setattr(owner, name, wrapped)


class OnImport(MetaPathFinder):
    """Sends a signal when a module is looked for."""

    def __init__(self, module: str, send: Send) -> None:
        self.module, self.send = module, send

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname == self.module:
            self.send()


def in_phase(phase: str, act: Send) -> None:
    wrap("rich.progress.Progress.update", after=act, when=lambda *_, **told: told["description"] == phase)


def in_destructor(send: Send) -> None:
    class Dying:
        def __del__(self) -> None:
            send()

    in_phase("search", lambda: Dying() and None)


def in_long_query(send: Send) -> None:
    from shoal.workflow.release.anonymize import Run

    def find(self: Run, **_: Any) -> None:
        engine: Any = self.engine
        send()
        with engine.translate_errors():
            engine.connection.execute(
                "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
            )

    Run.find = find  # type: ignore[assignment, method-assign]


def in_long_computation(send: Send) -> None:
    def compute() -> None:
        send()
        time.sleep(600)

    in_phase("search", compute)


def hook(point: str, send: Send) -> None:
    """Arrange for a signal at a point."""
    kind, _, what = point.partition(":")
    if kind == "import":
        del sys.modules[what]
        sys.meta_path.insert(0, OnImport(what, send))
    elif kind == "phase":
        in_phase(what, send)
    elif kind == "before":
        wrap(what, before=send)
    elif kind == "after":
        wrap(what, after=send)
    else:
        special = {
            "callback": lambda: wrap("shoal.engines.duckdb.decoded.DecodedFile.read", before=send),
            "destructor": lambda: in_destructor(send),
            "long query": lambda: in_long_query(send),
            "long computation": lambda: in_long_computation(send),
        }
        special[kind]()


def run(case: dict[str, Any]) -> None:
    """Be the command, in a forked process."""
    os.chdir(case["folder"])
    tempfile.tempdir = None
    os.environ["TMPDIR"] = case["temporary"]
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"{case['temporary']}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    signals = [getattr(signal, name) for name in case["signals"]]
    sent: list[int] = []

    def send() -> None:
        if not sent:
            sent.append(1)
            for number in signals:
                os.kill(os.getpid(), number)

    if case["point"] != "long computation":
        shoal.files.signals.GRACE = 600.0  # a check or an interrupt ends it, however slow the machine is
    hook(case["point"], send)
    sys.argv = ["shoal", *case["words"]]
    code: Any = 99
    try:
        from shoal.__main__ import main

        main()
    except SystemExit as done:
        code = done.code
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit((code or 0) if sent else 98)


def main() -> None:
    results = []
    for case in json.load(sys.stdin):
        Path(case["temporary"]).mkdir()
        child = os.fork()
        if child == 0:
            run(case)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = [Path(f"{case['temporary']}.{name}").read_text() for name in ("stdout", "stderr")]
        results.append([code, *said])
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
