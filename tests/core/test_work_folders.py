"""Private folders for data on disk: the next start removes those of dead processes, and no others."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import OutputError
from shoal.files import work_folders
from shoal.files.work_folders import PREFIX, create, create_beside, create_temporary, remove_stale

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and file modes of POSIX")

POLICY = """
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10]}}
  town: {role: other}
models: [{k-anonymity: {k: 2}}]
"""
ABANDON = """
import os, sys
from pathlib import Path
from shoal.files.work_folders import create
folder = create(Path(sys.argv[1]))
(folder.path / "rows").write_text("Xyzzyplugh")
os._exit(9)
"""


@pytest.fixture
def abandoned(tmp_path: Path) -> Path:
    """A folder whose process ended without removing it."""
    subprocess.run([sys.executable, "-c", ABANDON, str(tmp_path)], check=False, timeout=300)
    (folder,) = tmp_path.iterdir()
    assert (folder / "rows").exists()
    return folder


def rename(folder: Path, host: str = "", process: object = "", started: str = "") -> Path:
    """Let the name of a folder tell of another owner."""
    *prefix, old_host, old_process, old_started, token = folder.name.split("-")
    owner = [host or old_host, str(process or old_process), started or old_started]
    return folder.rename(folder.with_name("-".join([*prefix, *owner, token])))


def test_a_folder_is_private_and_goes_with_what_is_in_it(tmp_path: Path) -> None:
    folder = create(tmp_path)
    assert folder.path.name.startswith(PREFIX)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    (folder.path / "sub").mkdir()
    (folder.path / "sub" / "rows").write_text("x")
    assert remove_stale(tmp_path) == 0
    assert folder.path.exists()
    folder.remove()
    folder.remove()
    assert not any(tmp_path.iterdir())


def test_a_folder_of_a_dead_process_is_removed(tmp_path: Path, abandoned: Path) -> None:
    kept = create(tmp_path)
    assert remove_stale(tmp_path) == 1
    assert list(tmp_path.iterdir()) == [kept.path]
    kept.remove()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: rename(folder, host="another"),
        lambda folder: folder.chmod(0o755),
        lambda folder: folder.rename(folder.with_name("other-name")),
        lambda folder: folder.rename(folder.with_name(f"{PREFIX}0")),
        lambda folder: rename(folder, process="x"),
    ],
    ids=["another host", "open to others", "another name", "no owner", "unreadable owner"],
)
def test_what_may_be_of_another_is_left_alone(
    tmp_path: Path, abandoned: Path, change: Callable[[Path], object]
) -> None:
    change(abandoned)
    assert remove_stale(tmp_path) == 0
    assert list(tmp_path.rglob("rows"))


def test_a_folder_of_another_user_is_left_alone(
    tmp_path: Path, abandoned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: abandoned.stat().st_uid + 1)
    assert remove_stale(tmp_path) == 0
    assert (abandoned / "rows").exists()


def test_no_link_is_followed(tmp_path: Path, abandoned: Path) -> None:
    name = abandoned.name
    there = abandoned.rename(tmp_path / "there")
    (tmp_path / name).symlink_to(there)
    os.mkfifo(tmp_path / f"{name[:-1]}{'1' if name[-1] == '0' else '0'}", 0o600)
    (tmp_path / f"{name[:-1]}{'3' if name[-1] == '2' else '2'}").write_text("a file")
    assert remove_stale(tmp_path) == 0
    assert (there / "rows").exists()
    assert len(list(tmp_path.iterdir())) == 4


def test_a_link_within_a_stale_folder_is_removed_and_not_what_it_leads_to(
    tmp_path: Path, abandoned: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "rows").write_text("kept")
    (abandoned / "link").symlink_to(outside)
    assert remove_stale(tmp_path) == 1
    assert (outside / "rows").read_text() == "kept"


@pytest.mark.parametrize(
    ("process", "started", "removed"),
    [("same", "same", 0), ("same", "0123456789ab", 1), ("same", "unknown", 0), (2**22 + 1, "same", 1)],
)
def test_without_locks_the_process_and_its_start_decide(
    tmp_path: Path,
    abandoned: Path,
    monkeypatch: pytest.MonkeyPatch,
    process: Any,
    started: Any,
    removed: int,
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    number = os.getpid() if process == "same" else process
    when = work_folders._started(os.getpid()) if started == "same" else started
    folder = rename(abandoned, process=number, started=when)
    assert remove_stale(tmp_path) == removed
    assert folder.exists() == (not removed)


def test_two_that_clean_at_once_remove_it_once(
    tmp_path: Path, abandoned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, go_on = threading.Event(), threading.Event()
    real = work_folders._remove

    def slow(folder: Path) -> bool:
        inside.set()
        assert go_on.wait(300)
        return real(folder)

    monkeypatch.setattr(work_folders, "_remove", slow)
    counts: list[int] = []
    first = threading.Thread(target=lambda: counts.append(remove_stale(tmp_path)))
    first.start()
    assert inside.wait(300)
    assert remove_stale(tmp_path) == 0  # the first holds the lock
    go_on.set()
    first.join(300)
    assert counts == [1]
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("moment", ["before it is opened", "before the lock"])
def test_a_folder_that_is_removed_while_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    counts: list[int] = []
    real_open, real_lock = os.open, work_folders.lock

    def clean() -> None:
        if not counts:
            counts.append(0)
            counts[0] = remove_stale(tmp_path)

    def cleaning_open(path: Any, *more: Any, **options: Any) -> int:
        if moment == "before it is opened":
            clean()
        return real_open(path, *more, **options)

    def cleaning_lock(descriptor: int) -> None:
        if moment == "before the lock":
            clean()
        real_lock(descriptor)

    monkeypatch.setattr(os, "open", cleaning_open)
    monkeypatch.setattr(work_folders, "lock", cleaning_lock)
    folder = create(tmp_path)
    assert counts == [1]
    assert list(tmp_path.iterdir()) == [folder.path]
    folder.remove()


def test_a_folder_next_to_an_output_is_found_from_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, outputs = tmp_path / "temporary", tmp_path / "outputs"
    temporary.mkdir()
    outputs.mkdir()
    script = (
        "import os, sys; from pathlib import Path; from shoal.files.work_folders import create_beside;"
        "(create_beside(Path(sys.argv[1])).path / 'rows').write_text('Xyzzyplugh'); os._exit(9)"
    )
    call = [sys.executable, "-c", script, str(outputs / "release.csv")]
    subprocess.run(call, check=False, timeout=300, env={**os.environ, "TMPDIR": str(temporary)})
    assert list(outputs.rglob("rows"))
    assert remove_stale(temporary) == 1
    assert not any(outputs.iterdir())
    assert not any(temporary.iterdir())


def test_a_run_to_the_same_folder_removes_it_too(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    subprocess.run(
        [sys.executable, "-c", ABANDON.replace("sys.argv[1])", "sys.argv[1]), '.shoal-work-'"), str(outputs)],
        check=False,
        timeout=300,
    )
    assert list(outputs.rglob("rows"))
    folder = create_beside(outputs / "release.csv")
    assert not list(outputs.rglob("rows"))
    folder.remove()


def test_a_fork_leaves_the_folders_of_its_parent(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from shoal.files.work_folders import create, remove_stale;"
        "f = create(Path(sys.argv[1])); child = os.fork();"
        "child or (remove_stale(Path(sys.argv[1])), f.remove(), sys.exit(0)); os.waitpid(child, 0);"
        "assert f.path.exists()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(tmp_path)], timeout=300, check=False
    )
    assert done.returncode == 0
    assert not any(tmp_path.iterdir())


# Temporary folders that cannot be used


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget which temporary folder is in use."""
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.mark.usefixtures("fresh")
def test_a_temporary_folder_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(OutputError, match=r"nowhere': No such file or directory\. Set TMPDIR to a folder"):
        create_temporary()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (28, "No space left on device. Free some space there, or set TMPDIR"),
        (30, "Read-only file system. Set"),
    ],
)
def test_a_temporary_folder_that_is_full_or_read_only_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, text: str
) -> None:
    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OutputError, match="temporary files in the folder") as caught:
        create_temporary()
    assert str(tmp_path) in str(caught.value)
    assert text in str(caught.value)
    assert not any(tmp_path.iterdir())


@pytest.mark.usefixtures("fresh")
def test_a_temporary_folder_to_which_nothing_can_be_written_is_not_replaced_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    tempfile.gettempdir()  # falls back to /tmp
    with pytest.raises(OutputError, match="nowhere"):
        create_temporary()


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "shoal", *map(str, words)]


def table(folder: Path) -> Path:
    data = folder / "table.csv"
    data.write_text("age,town\n" + "30,A\n31,B\n" * 20, encoding="utf-8")
    return data


@pytest.mark.parametrize("name", ["diagnose", "demo"])
def test_the_command_line_names_a_missing_temporary_folder(tmp_path: Path, name: str) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path / "nowhere")}
    call = command(name, *[table(tmp_path)] * (name != "demo"), "--json")
    done = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 2
    assert "TMPDIR" in done.stderr
    assert "Traceback" not in done.stderr
    assert "nowhere" in json.loads(done.stdout)["message"]


def test_a_release_to_a_file_needs_no_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    words = [table(tmp_path), "--policy", tmp_path / "policy.yaml", "--output", tmp_path / "o.csv"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "nowhere")}
    done = subprocess.run(command("anonymize", *words), env=environment, timeout=300, check=False)
    assert done.returncode == 0
    assert not any(path.name.startswith(".") for path in tmp_path.iterdir())


def test_a_limit_of_the_size_of_files_is_told(tmp_path: Path) -> None:
    data = table(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    limited = ["bash", "-c", 'ulimit -f 0; exec "$@"', "bash"]
    calls = [
        *[["anonymize", "--output", f"o.{ending}"] for ending in ("csv", "parquet", "arrow")],
        ["profile", "--output", "o.profile"],
    ]
    for name, *options in calls:
        done = subprocess.run(
            [*limited, *command(name, data, "--policy", policy, *options)],
            cwd=tmp_path,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        assert "ulimit -f" in done.stderr
    names = {path.name for path in tmp_path.iterdir()}
    assert names - {"cache"} == {"policy.yaml", "table.csv"}


# Killed commands and studios

SPILL = """
import os, signal, sys
from pathlib import Path
import shoal.workflow.release.anonymize as run
real = run.Run.find
def find(self, *arguments, **options):
    self.engine.connection.execute("SET memory_limit = '50MB'")
    self.engine.connection.execute(
        "CREATE TEMP TABLE much AS "
        "SELECT 'Xyzzyplugh' || range AS a, md5(range::text) AS b FROM range(2_000_000)"
    )
    os.kill(os.getpid(), signal.SIGKILL)
run.Run.find = find
import shoal
columns = {"age": {"role": "quasi-identifier", "hierarchy": "flat"}, "town": {"role": "other"}}
policy = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]}
shoal.anonymize(sys.argv[1], policy, output=sys.argv[2] or None)
"""


def canaries(*folders: Path) -> list[Path]:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if b"Xyzzyplugh" in path.read_bytes()]


@pytest.mark.parametrize("output", ["", "release.csv"], ids=["in memory", "to a file"])
def test_nothing_of_the_data_outlives_a_kill_and_the_next_start(tmp_path: Path, output: str) -> None:
    temporary, work = tmp_path / "temporary", tmp_path / "work"
    temporary.mkdir()
    work.mkdir()
    data = table(work)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    call = [sys.executable, "-c", SPILL, str(data), str(work / output) if output else ""]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = canaries(temporary, work)
    assert left
    for path in left:
        private = next(parent for parent in path.parents if "shoal-work-" in parent.name)
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert private.parent == (work if output else temporary)
    done = subprocess.run(
        command("diagnose", data), env=environment, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0
    assert not canaries(temporary, work)
    assert not any(temporary.iterdir())
