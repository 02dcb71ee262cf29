"""Faults at the n-th call that changes the disk, for operations on one output; also in a child to be killed.

As a program it reads requests, a line of JSON each, and runs each in a forked child that kills itself before
the n-th call. It runs an operation once itself, so that its children have everything loaded.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DISK = [(os, name) for name in ("rename", "replace", "link", "unlink", "remove", "rmdir", "fsync")]
CANARY = "canary-7f3a"
QUASI = "quasi-identifier"


class Faults:
    """Counts calls, and strikes before those of some numbers, or where a condition holds.

    With `folder`, calls on files elsewhere are not counted: another process may leave a temporary folder
    there at any time, whose removal would shift the numbers.
    """

    def __init__(
        self,
        strike: Callable[[], None],
        first: int,
        last: int | None = None,
        folder: Path | None = None,
        when: Callable[[], bool] = lambda: False,
    ) -> None:
        self.strike = strike
        self.first, self.last = first, first if last is None else last
        self.folder = folder
        self.when = when
        self.count = 0

    def around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            if self.folder is None or is_inside(arguments, options, self.folder):
                self.count += 1
                if self.first <= self.count <= self.last or self.when():
                    self.strike()
            return real(*arguments, **options)

        return called


def is_inside(arguments: Sequence[Any], options: Mapping[str, Any], folder: Path) -> bool:
    """Return whether a call is about a file below a folder; one without a file is counted everywhere."""
    target = arguments[0] if arguments else None
    if isinstance(target, int):
        target = os.readlink(f"/proc/self/fd/{target}")
    if not isinstance(target, str | Path):
        return True
    parent = options.get("dir_fd", options.get("src_dir_fd"))
    start = Path.cwd() if parent is None else Path(os.readlink(f"/proc/self/fd/{parent}"))
    return folder.resolve() in Path(os.path.abspath(start / target)).parents


@contextmanager
def faults(
    strike: Callable[[], None],
    first: int,
    last: int | None = None,
    targets: Sequence[tuple[Any, str]] = DISK,
    *,
    folder: Path | None = None,
    when: Callable[[], bool] = lambda: False,
) -> Iterator[Faults]:
    """Strike before the calls of these numbers, by default to what changes names on the disk or syncs it."""
    injected = Faults(strike, first, last, folder, when)
    real = [getattr(owner, name) for owner, name in targets]
    for (owner, name), function in zip(targets, real, strict=True):
        setattr(owner, name, injected.around(function))
    try:
        yield injected
    finally:
        for (owner, name), function in zip(targets, real, strict=True):
            setattr(owner, name, function)


def statements() -> list[tuple[Any, str]]:
    """Return the calls that send statements to PostgreSQL."""
    import psycopg

    return [(psycopg.Connection, name) for name in ("execute", "commit", "transaction")]


def fail(number: int = errno.EIO) -> Callable[[], None]:
    def raised() -> None:
        raise OSError(number, os.strerror(number))

    return raised


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# The operations, on a table of one person per row


def write_table(folder: Path) -> Path:
    path = folder / "people.csv"
    rows = [f"{CANARY}-{i},{20 + i % 12},{'abcd'[i % 4]}" for i in range(36)]
    path.write_text("\n".join(["name,age,ward", *rows, ""]), encoding="utf-8")
    return path


def policy(k: int = 2, *, anatomy: bool = False) -> dict[str, Any]:
    columns = {
        "name": {"role": "identifier"},
        "age": {"role": QUASI, "hierarchy": {"intervals": [2, 4]}},
        "ward": {"role": "sensitive" if anatomy else "other"},
    }
    if anatomy:
        return {
            "columns": columns,
            "models": [{"distinct-l-diversity": {"l": k}}],
            "algorithm": "anatomy",
            "suppression_limit": 0.2,
        }
    return {"columns": columns, "models": [{"k-anonymity": {"k": k}}]}


OLD, NEW = policy(2), policy(6)
ANATOMY = policy(2, anatomy=True)


def anonymize(table: Path, folder: Path) -> None:
    import shoal

    shoal.anonymize(table, NEW, output=folder / "r.csv", force=True, mapping=True)


def anonymize_new(table: Path, folder: Path) -> None:
    import shoal

    shoal.anonymize(table, NEW, output=folder / "r.csv", mapping=True)


def anatomy(table: Path, folder: Path) -> None:
    import shoal

    shoal.anonymize(table, ANATOMY, output=folder / "r.csv", force=True)


def apply(table: Path, folder: Path) -> None:
    import shoal

    shoal.apply(table.with_name("recipe.json"), table, output=folder / "r.csv", force=True)


def profile(table: Path, folder: Path) -> None:
    import shoal

    shoal.profile(table, NEW).save(folder / "p.profile", force=True)


def command(*arguments: object) -> None:
    """Run a command in this process; what it refuses is raised."""
    from typer.testing import CliRunner

    from shoal.cli.app import app
    from shoal.errors import OutputError

    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exit_code:
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        raise OutputError(done.stderr)


def compare(table: Path, folder: Path) -> None:
    wanted = table.with_name("policy.yaml")
    command("compare", table, "-p", wanted, "--algorithm", "ola", "-o", folder / "c.csv", "--force")


def init(table: Path, folder: Path) -> None:
    command("init", table, "--yes", "-o", folder / "i.yaml", "--force")


def postgres(table: Path, folder: Path) -> None:
    import shoal

    os.chdir(folder)
    shoal.anonymize("people", NEW, output="r", force=True, engine="postgres")


OPERATIONS: dict[str, Callable[[Path, Path], None]] = {
    operation.__name__: operation
    for operation in (anonymize, anonymize_new, anatomy, apply, profile, compare, init, postgres)
}


# What is left


def state(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones too, and every empty folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file():
            found[name] = path.read_bytes()
        elif not any(path.iterdir()):
            found[f"{name}/"] = b""
    return found


def exposed(folder: Path) -> list[str]:
    """Return the temporary files that others could read."""
    open_to_others = []
    for path in folder.glob(f".*.{'[0-9a-f]' * 12}.tmp*"):
        for file in [path, *path.rglob("*")]:
            chain = [file, *[parent for parent in file.parents if folder in parent.parents]]
            if file.is_file() and not any(not stat.S_IMODE(one.stat().st_mode) & 0o077 for one in chain):
                open_to_others.append(str(file.relative_to(folder)))
    return open_to_others


class Killer:
    """A process whose forked children run an operation and are killed before the n-th call."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(
        self, operation: str, table: Path, folder: Path, number: int, moment: str | None = None
    ) -> bool:
        """Return whether the child was killed, which it is not where it makes fewer calls."""
        assert self.process.stdin
        assert self.process.stdout
        request = [operation, str(table), str(folder), number, moment]
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) == signal.SIGKILL

    def close(self) -> None:
        self.process.communicate()


def only_the_release(folder: Path, *, new: bool) -> Callable[[], bool]:
    """Tell when the private folder is moved away, and the old or the new release is in place."""
    before = (folder / "r.csv").read_bytes()

    def holds() -> bool:
        names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
        return names == {"r.csv"} and ((folder / "r.csv").read_bytes() != before) == new

    return holds


MOMENTS: dict[str, Callable[[Path], Callable[[], bool]]] = {
    "old": lambda folder: only_the_release(folder, new=False),
    "new": lambda folder: only_the_release(folder, new=True),
}


def _serve() -> None:
    warnings.simplefilter("ignore")
    loaded = set()
    for line in sys.stdin:
        operation, table, folder, number, moment = json.loads(line)
        if operation not in loaded:
            loaded.add(operation)
            with tempfile.TemporaryDirectory() as elsewhere:
                OPERATIONS[operation](Path(table), Path(elsewhere))
            gc.collect()  # what the operation held is closed
        child = os.fork()
        if not child:
            os.dup2(2, 1)
            calls = [*DISK, *statements()] if operation == "postgres" else DISK
            when = MOMENTS[moment](Path(folder)) if moment else lambda: False
            with faults(kill, number, targets=calls, folder=Path(folder), when=when):
                OPERATIONS[operation](Path(table), Path(folder))
            os._exit(0)
        print(os.waitpid(child, 0)[1], flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    _serve()
