"""Nothing lost, nothing half done: kills at any moment, signals, full and closed disks, two runs at once."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import shoal
from shoal.cli.app import app
from shoal.core.targets import Target
from shoal.engines.duckdb.engine import DuckDb
from shoal.errors import OutputError, interruptible
from shoal.files.outputs import private_folder
from shoal.sample import bundled, write_csv
from shoal.workflow.release.publish import Draft, draft
from shoal.workflow.release.recovery import matches_release
from shoal.workflow.release.stage import stage_of

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

SHOAL = Path(sys.executable).parent / "shoal"


# A small release, straight through the protocol


BESIDE = ("codebook.csv", "sensitive.csv")


def drafted(output: Path, *, force: bool, beside: Sequence[str] = BESIDE) -> AbstractContextManager[Draft]:
    return draft(Target(str(output), "file", ".csv"), DuckDb(), force=force, beside=beside)


def tells_of(private: Path, output: Path) -> bool:
    return matches_release(private, stage_of(Target(str(output), "file", ".csv"), output, DuckDb()))


def write(begun: Draft, text: str) -> None:
    begun.stage.waiting.parent.mkdir(mode=0o700)
    begun.stage.waiting.write_text(text)
    for name in begun.beside:
        (begun.private / name).write_text(text)


def publish(output: Path, text: str, *, force: bool = False) -> None:
    """Release a text; its recipe and its codebook tell which."""
    with drafted(output, force=force) as begun:
        write(begun, text)
        begun.commit({"of": text}, {})


def beside(output: Path) -> list[Path]:
    return [output.with_name(f"{output.name}.codebook.csv"), output.with_name(f"{output.stem}.sensitive.csv")]


def recipe(output: Path) -> str:
    return str(json.loads((private_folder(output) / "recipe.json").read_text())["of"])


def whole(output: Path, text: str) -> bool:
    """Return whether all of a release is in place, and nothing else."""
    private = private_folder(output)
    return (
        {path.name for path in output.parent.iterdir()}
        == {output.name, private.name, *[path.name for path in beside(output)]}
        and {path.name for path in private.iterdir()} == {"recipe.json", "audit.json"}
        and {path.read_text() for path in (output, *beside(output))} == {recipe(output)} == {text}
        and tells_of(private, output)
    )


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "r[1].csv"  # a name that a pattern would misread


def test_a_release_is_put_in_place_whole(output: Path) -> None:
    publish(output, "one")
    assert whole(output, "one")
    publish(output, "two", force=True)
    assert whole(output, "two")


def test_a_private_folder_tells_of_its_own_release_alone(output: Path) -> None:
    publish(output, "one")
    assert tells_of(private_folder(output), output)
    output.write_text("another")
    assert not tells_of(private_folder(output), output)
    assert not tells_of(output.parent / "absent", output)


def test_what_a_draft_writes_is_closed_to_others(output: Path) -> None:
    with drafted(output, force=False) as begun:
        assert stat.S_IMODE(begun.private.stat().st_mode) == 0o700
    assert not any(output.parent.iterdir())


# Two runs on one target


def test_the_second_of_two_runs_is_refused_without_force(output: Path) -> None:
    with drafted(output, force=False) as late:
        write(late, "late")
        publish(output, "early")
        with pytest.raises(OutputError, match="appeared while this ran"):
            late.commit({"of": "late"}, {})
    assert whole(output, "early")


def test_the_last_of_two_runs_wins_whole_with_force(output: Path) -> None:
    publish(output, "old")
    with drafted(output, force=True) as late:
        write(late, "late")
        publish(output, "early", force=True)
        assert late.stage.waiting.exists()
        late.commit({"of": "late"}, {})
    assert whole(output, "late")


def test_a_run_leaves_the_temporaries_of_a_live_one_alone(output: Path) -> None:
    with drafted(output, force=False) as alive:
        write(alive, "alive")
        with pytest.raises(RuntimeError, match="planted"), drafted(output, force=False):
            raise RuntimeError("planted")
        alive.commit({"of": "alive"}, {})
    assert whole(output, "alive")


def test_a_run_leaves_the_temporaries_of_other_targets_alone(output: Path) -> None:
    names = [".r1.csv.0123456789ab.tmp.csv", ".r[1].csv.mine.tmp", ".r[1].csv.bak.0123456789ab.tmp"]
    for name in names:
        (output.parent / name).write_text("mine")
    publish(output, "one")
    assert all((output.parent / name).read_text() == "mine" for name in names)


def test_of_many_runs_at_once_one_wins_whole(output: Path) -> None:
    accidents: list[BaseException] = []

    def run(name: int) -> None:
        try:
            for turn in range(15):
                publish(output, f"{name} {turn}", force=True)
        except BaseException as error:
            accidents.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not accidents
    assert whole(output, recipe(output))


def test_of_many_runs_at_once_without_force_one_is_not_refused(output: Path) -> None:
    refused: list[str] = []

    def run(name: int) -> None:
        try:
            publish(output, str(name))
        except OutputError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=run, args=(name,)) for name in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 11
    assert all("appeared while this ran" in text or "exists" in text for text in refused)
    assert whole(output, recipe(output))


# kill -9 at every moment: before each call that touches the disk

DYING = """
import os, signal, sys
from contextlib import suppress
from pathlib import Path
from shoal.errors import OutputError
from shoal.core.targets import Target
from shoal.engines.duckdb.engine import DuckDb
from shoal.workflow.release.publish import draft

def release(output, force, moment):
    beside = ["codebook.csv", "sensitive.csv"]
    target, engine = Target(str(output), "file", ".csv"), DuckDb()
    seen = 0

    def kill(event, arguments):
        nonlocal seen
        seen += event.partition(".")[0] in ("open", "os", "shutil", "fcntl")
        if seen == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(kill)
    with suppress(OutputError), draft(target, engine, force=force, beside=beside) as begun:
        begun.stage.waiting.parent.mkdir(mode=0o700)
        begun.stage.waiting.write_text("new")
        for name in beside:
            (begun.private / name).write_text("new")
        begun.commit({"of": "new"}, {})

for line in sys.stdin:
    output, force, moment = line.rstrip("\\n").rsplit(" ", 2)
    child = os.fork()
    if not child:
        release(Path(output), force == "True", int(moment))
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def reaper() -> Iterator[Any]:
    """A process whose children release a text and are killed at a moment; tells whether one was."""
    with subprocess.Popen(
        [sys.executable, "-c", DYING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        asked, answered = process.stdin, process.stdout

        def killed(output: Path, *, force: bool, moment: int) -> bool:
            asked.write(f"{output} {force} {moment}\n")
            asked.flush()
            return int(answered.readline()) == signal.SIGKILL

        yield killed
        asked.close()


def beginning(output: Path, *, force: bool) -> Path:
    output.parent.mkdir()
    if force:
        publish(output, "old")
    return output


def check_settled(output: Path, *, force: bool) -> None:
    """Let another run begin and give up: what is left is whole, or nothing where nothing was before."""
    with suppress(OutputError), drafted(output, force=False):
        pass
    if force or output.exists():
        assert whole(output, "new" if output.read_text() == "new" else "old")
    else:
        assert not any(output.parent.iterdir())


@pytest.mark.parametrize("force", [False, True])
def test_a_kill_at_any_moment_leaves_all_or_nothing(tmp_path: Path, reaper: Any, force: bool) -> None:
    found = []
    for moment in range(1, 1000):
        output = beginning(tmp_path / str(moment) / "r.csv", force=force)
        if not reaper(output, force=force, moment=moment):
            break
        if output.exists():
            text = output.read_text()
            assert text in ("old", "new")
            # Its own recipe, codebook and second table, or none until the next run.
            assert not private_folder(output).exists() or recipe(output) == text
            assert all(not path.exists() or path.read_text() == text for path in beside(output))
        check_settled(output, force=force)
        found.append(output.read_text() if output.exists() else "")
    assert whole(output, "new")
    assert set(found) == {"old" if force else "", "new"}
    assert sum(one != other for one, other in pairwise(found)) == 1  # there is one moment that counts


@pytest.mark.parametrize("force", [False, True])
def test_a_kill_while_the_next_run_settles_a_killed_one_changes_nothing(
    tmp_path: Path, reaper: Any, force: bool
) -> None:
    chance = random.Random(7)
    for first in range(1, 1000):
        output = beginning(tmp_path / str(first) / "r.csv", force=force)
        if not reaper(output, force=force, moment=first):
            break
        for _ in range(3):
            reaper(output, force=force, moment=chance.randrange(1, 60))
        check_settled(output, force=force)
    assert first > 20


def test_what_a_killed_run_left_is_gone_after_the_next(tmp_path: Path, reaper: Any) -> None:
    output = beginning(tmp_path / "out" / "r.csv", force=False)
    killed = [reaper(output, force=True, moment=moment) for moment in range(5, 35, 5)]
    assert all(killed)
    assert any(".tmp" in path.name for path in output.parent.iterdir())
    publish(output, "next", force=True)
    assert whole(output, "next")


def test_a_run_with_less_beside_it_settles_one_with_more(tmp_path: Path, reaper: Any) -> None:
    """The next run may make no second table: that of the killed one goes where it belongs, or goes."""
    for moment in range(1, 1000):
        output = beginning(tmp_path / str(moment) / "r.csv", force=True)
        if not reaper(output, force=True, moment=moment):
            break
        with suppress(OutputError), drafted(output, force=False, beside=()):
            pass
        assert whole(output, output.read_text())
        with drafted(output, force=True, beside=()) as begun:
            begun.stage.waiting.parent.mkdir(mode=0o700)
            begun.stage.waiting.write_text("alone")
            begun.commit({"of": "alone"}, {})
        assert {path.name for path in output.parent.iterdir()} == {"r.csv", "r.csv.private"}
    assert moment > 20


# Errors halfway


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
@pytest.mark.parametrize("call", ["rename", "replace", "link"])
@pytest.mark.parametrize("force", [False, True])
def test_an_error_in_any_rename_leaves_all_or_nothing(
    output: Path, monkeypatch: pytest.MonkeyPatch, force: bool, call: str, error: BaseException
) -> None:
    if force:
        publish(output, "old")
    real = getattr(os, call)
    for number in range(1, 6):
        calls = iter(range(1, 100))

        def fails(*arguments: Any, calls: Any = calls, number: int = number, **options: Any) -> None:
            if next(calls) == number:
                raise error
            real(*arguments, **options)

        monkeypatch.setattr(os, call, fails)
        refused = False
        try:
            publish(output, "new", force=force)
        except OutputError:
            refused = True
        except KeyboardInterrupt:
            pass
        monkeypatch.undo()
        assert force or not (refused and output.exists())
        check_settled(output, force=force)
        if not force:
            shutil.rmtree(output.parent)
            output.parent.mkdir()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_disk_that_goes_on_refusing_loses_nothing(
    output: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    publish(output, "old")
    real, calls = os.rename, iter(range(1, 100))

    def fails(*arguments: Any) -> None:
        if next(calls) >= number:
            raise OSError(5, "Input/output error")
        real(*arguments)

    monkeypatch.setattr(os, "rename", fails)
    with suppress(OutputError):
        publish(output, "new", force=True)
    monkeypatch.undo()
    check_settled(output, force=True)


def test_a_file_system_without_links_will_do(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    publish(output, "one")
    assert whole(output, "one")


@pytest.mark.parametrize("absent", ["system", "file system"])
def test_without_locks_a_run_still_works(output: Path, monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(37, "No locks available")

    if absent == "system":
        monkeypatch.setattr("shoal.files.locks.fcntl", None)
    else:
        monkeypatch.setattr("fcntl.flock", refuse)
    publish(output, "one")
    publish(output, "two", force=True)
    assert whole(output, "two")


# Disks that refuse


def invoke(data: Path, policy: Path, output: Path, *options: str) -> Result:
    arguments = ["anonymize", data, "--policy", policy, "--output", output, *options]
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    ) if shutil.which("mount") else None  # fmt: skip
    if done is None or done.returncode:
        pytest.skip("mounting a small disk is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path, kilobytes_left: int) -> Path:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(2 * 1024**2 - kilobytes_left * 1024))
    return ballast


def remains(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return bundled(tmp_path_factory.mktemp("sample"))


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_disk_that_fills_up_leaves_nothing_and_keeps_the_old_release(
    disk: Path, sample: tuple[Path, Path], ending: str
) -> None:
    data, policy = sample
    output = disk / f"release.{ending}"
    shoal.anonymize(data, policy, output=output)
    before = {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()}
    room = 2 * 1024 - sum(file.stat().st_size for file in before) // 1024 - 48
    outcomes = []
    for kilobytes_left in (0, 4, 12, 24, 48, 600):
        ballast = disk / "ballast"
        with suppress(OSError):
            ballast.write_bytes(bytes(max(0, room + 48 - kilobytes_left) * 1024))
        try:
            shoal.anonymize(data, policy, output=output, force=True)
        except OutputError:
            outcomes.append(False)
            ballast.unlink()
            assert {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()} == before
        else:
            outcomes.append(True)
            assert not any("tmp" in name for name in remains(disk))
            break
    assert len(outcomes) > 1
    assert outcomes[-1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_full_disk_is_exit_code_2_and_leaves_nothing(
    disk: Path, sample: tuple[Path, Path], ending: str
) -> None:
    fill(disk, kilobytes_left=8)
    done = invoke(*sample, disk / f"release.{ending}")
    assert done.exit_code == 2
    assert "Error: " in done.stderr
    assert isinstance(done.exception, SystemExit)
    assert remains(disk) == {"ballast"}


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_full_disk_is_named_with_what_to_do(disk: Path, sample: tuple[Path, Path], ending: str) -> None:
    fill(disk, kilobytes_left=8)
    with pytest.raises(OutputError) as caught:
        shoal.anonymize(*sample, output=disk / f"release.{ending}")
    assert "o space" in str(caught.value)
    assert repr(str(disk)) in str(caught.value)
    assert "Free some space" in str(caught.value)
    assert ".tmp" not in str(caught.value)


def test_a_full_disk_in_the_protocol_itself_is_named_with_what_to_do(disk: Path) -> None:
    fill(disk, kilobytes_left=0)
    with pytest.raises(OutputError, match=r"No space left on device\. Free some space there") as caught:
        publish(disk / "r.csv", "new")
    assert repr(str(disk)) in str(caught.value)
    assert remains(disk) == {"ballast"}


def test_a_disk_without_room_for_a_name_is_told(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,nr_inodes=1", str(disk)], check=False, capture_output=True)
    with suppress(OSError):
        for number in range(100):
            (disk / str(number)).touch()
        pytest.skip("the number of files cannot be limited here")
    before = remains(disk)
    with pytest.raises(OutputError, match="Free some space there"):
        publish(disk / "r.csv", "new")
    assert remains(disk) == before


def test_a_closed_folder_is_told_before_the_work(disk: Path, sample: tuple[Path, Path]) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    done = invoke(*sample, disk / "release.csv")
    assert done.exit_code == 2
    assert "Read-only file system" in done.stderr
    assert repr(str(disk)) in done.stderr.replace("\n", "")
    assert "Name an output in a folder that you may read and write." in done.stderr
    assert not any(disk.iterdir())


# The real thing: the command line on 100,000 records


def command(data: Path, policy: Path, output: Path, *options: str) -> list[str]:
    return [str(SHOAL), "anonymize", str(data), "--policy", str(policy), "--output", str(output), *options]


POLICY = """
columns:
  name: {role: identifier}
  card_number: {role: identifier}
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10, 20]}}
  sex: {role: quasi-identifier, hierarchy: flat}
  postcode: {role: quasi-identifier, hierarchy: {prefix: [3, 1]}}
  admitted: {role: other}
  discharged: {role: other}
  ethnicity: {role: other}
  marital_status: {role: other}
  insurance: {role: other}
  diagnosis: {role: sensitive}
  length_of_stay: {role: other}
models: [{k-anonymity: {k: 5}}]
suppression_limit: 5%
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("large")
    data, policy = folder / "admissions.csv", folder / "policy.yaml"
    write_csv(data, 100_000)
    policy.write_text(POLICY)
    return data, policy


def processor_seconds(process: int) -> float:
    """Return how long a process has computed, which other work on the machine does not change."""
    told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, told[11:13])) / os.sysconf("SC_CLK_TCK")


def stop(large: tuple[Path, Path], output: Path, number: int, moment: str | float) -> tuple[int, str]:
    """Send a signal when a file whose name ends so appears, or after so many seconds of processor time."""
    with subprocess.Popen(
        command(*large, output, "--force"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None:
            if isinstance(moment, str):
                with suppress(FileNotFoundError):  # a folder was moved while it was looked into
                    if any(path.name.endswith(moment) for path in output.parent.rglob("*")):
                        break
            elif processor_seconds(process.pid) > moment:
                break
            time.sleep(0.002)
        process.send_signal(number)
        _, said = process.communicate()
    return process.returncode, said


def test_a_killed_command_leaves_a_whole_release_or_none_and_the_next_tidies_up(
    large: tuple[Path, Path], output: Path
) -> None:
    parquet = output.with_suffix(".parquet")
    moments: list[tuple[Path, str | float]] = [
        (output, ".private"),
        (output, ".tmp.csv"),
        (parquet, ".tmp.parquet"),
        (output, "audit.json"),
        (output, random.uniform(0.5, 4)),
        (output, random.uniform(0.5, 4)),
    ]
    for target, moment in moments:
        code, said = stop(large, target, signal.SIGKILL, moment)
        assert code in (-signal.SIGKILL, 0), (moment, said)
        if target.exists():
            check_verified(target, large[1])
    for target in (output, parquet):
        done = invoke(*large, target, "--force")
        assert done.exit_code == 0, done.stderr
        check_verified(target, large[1])
    assert not any("tmp" in path.name for path in output.parent.rglob("*"))
    assert tells_of(private_folder(output), output)


def check_verified(release: Path, policy: Path) -> None:
    done = CliRunner().invoke(app, ["verify", str(release), "--policy", str(policy)])
    assert done.exit_code == 0, done.stderr


def test_the_database_s_word_for_ctrl_c_is_understood() -> None:
    with pytest.raises(KeyboardInterrupt), DuckDb().translate_errors():
        raise RuntimeError("Query interrupted")


def test_the_database_spills_next_to_the_output(sample: tuple[Path, Path], output: Path) -> None:
    engine = DuckDb()
    seen = []

    def progress(*_: Any) -> None:
        ((folder,),) = engine.connection.execute("SELECT current_setting('temp_directory')").fetchall()
        private = Path(folder).parent
        seen.append(private.parent == output.parent and stat.S_IMODE(private.stat().st_mode) == 0o700)

    shoal.anonymize(*sample, output=output, engine=engine, progress=progress)
    assert seen
    assert all(seen)


def test_what_the_database_puts_on_disk_is_never_in_the_current_folder() -> None:
    engine = DuckDb()
    ((folder,),) = engine.connection.execute("SELECT current_setting('temp_directory')").fetchall()
    assert stat.S_IMODE(Path(folder).parent.stat().st_mode) == 0o700


def test_an_old_codebook_is_kept_with_its_release_where_a_run_fails(
    sample: tuple[Path, Path], output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shoal.anonymize(*sample, output=output)
    before = {path: path.read_bytes() for path in output.parent.rglob("*") if path.is_file()}
    assert len(before) == 4
    real = os.replace

    def fails(source: Path, target: Path) -> None:
        if Path(source).name == "codebook.csv":
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(KeyboardInterrupt):
        shoal.anonymize(*sample, output=output, force=True)
    monkeypatch.undo()
    with pytest.raises(OutputError, match="exists"):
        shoal.anonymize(*sample, output=output)
    assert len([path for path in output.parent.rglob("*") if path.is_file()]) == 4
    assert tells_of(private_folder(output), output)
    assert not (private_folder(output) / "codebook.csv").exists()


def test_of_two_commands_at_once_the_second_is_refused(sample: tuple[Path, Path], output: Path) -> None:
    both = [
        subprocess.Popen(command(*sample, output), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], said
    assert "Use --force to replace it." in "".join(said)
    assert tells_of(private_folder(output), output)
    assert not any("tmp" in path.name for path in output.parent.iterdir())


def test_what_others_made_is_not_replaced(tmp_path: Path) -> None:
    data, policy = bundled(tmp_path)
    home = private_folder(tmp_path / "u.csv")
    home.mkdir()
    (home / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="was not written by shoal"):
        shoal.anonymize(data, policy, output=tmp_path / "u.csv", force=True)
    assert (home / "thesis.txt").exists()
    (tmp_path / "v.csv.codebook.csv").mkdir()
    with pytest.raises(OutputError, match="was not written by shoal"):
        shoal.anonymize(data, policy, output=tmp_path / "v.csv", force=True)
    assert not (tmp_path / "v.csv").exists()


def test_ctrl_c_inside_compiled_code_is_ctrl_c() -> None:
    """Numba turns an interrupt that strikes at its door into a SystemError."""

    def struck() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            message = "returned a result with an exception set"
            raise SystemError(message) from stop

    with pytest.raises(KeyboardInterrupt), interruptible():
        struck()
    with pytest.raises(SystemError, match="another"), interruptible():
        raise SystemError("another")


STOPPED_COMPARISON = """
import os, signal
from shoal.workflow.compare import journal
add, added = journal.Journal.add, []
def stop(opened, entry):
    add(opened, entry)
    added.append(entry)
    if len(added) == {rows}:
        os.kill(os.getpid(), signal.SIGINT)
journal.Journal.add = stop
from shoal.cli.app import main
main()
"""


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_ctrl_c_during_a_comparison_keeps_its_rows(tmp_path: Path, rows: int) -> None:
    data, policy = bundled(tmp_path)
    asked = ["--algorithm", "incognito", "--k", "2..400", "--output", str(tmp_path / "rows.csv")]
    code = STOPPED_COMPARISON.format(rows=rows)
    command = [sys.executable, "-c", code, "compare", str(data), "--policy", str(policy), *asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "kept" in done.stderr
