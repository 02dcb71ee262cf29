"""Signals at any point: a release is complete or absent, and exit code, message and JSON say which."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

import shoal
import shoal.cli.app as cli
from shoal.core.targets import Target
from shoal.engines.duckdb.engine import DuckDb
from shoal.files import signals
from shoal.workflow.release.recovery import matches_release
from shoal.workflow.release.stage import FileStage

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and fork of POSIX")

POLICY = """
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10]}}
  town: {role: quasi-identifier, hierarchy: flat}
  illness: {role: sensitive}
models: [{k-anonymity: {k: 2}}]
"""
INPUTS = {"table.csv", "latin.csv", "policy.yaml"}
CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
RELEASE = ["anonymize", "table.csv", "--policy", "policy.yaml", "--output", "o.csv"]
BEFORE = [
    "import:shoal.cli.app",
    "import:shoal.workflow.release.anonymize",
    "phase:count",
    "phase:search",
    "phase:recode",
    "phase:verify",
    "destructor",
    "callback",
    "before:shoal.workflow.release.anonymize.recipe_of",
    "before:shoal.workflow.release.publish.Draft.commit",
    "before:shoal.workflow.release.stage.FileStage.write",
    "after:shoal.workflow.release.stage.FileStage.write",
    "before:shoal.workflow.release.stage.FileStage.digest",
    "long query",
    "long computation",
]
AFTER = [
    "before:os.link",
    "after:os.link",
    "before:shoal.workflow.release.publish.unpack",
    "after:shoal.workflow.release.publish.unpack",
    "after:shoal.workflow.release.publish.Draft.commit",
    "before:shoal.workflow.release.publish.recover_stage",
    "before:shoal.cli.anonymize.print_json",
]


def write_inputs(folder: Path) -> None:
    folder.mkdir(parents=True)
    rows = "".join(f"{20 + number % 40},T{number % 3},Grippe\n" for number in range(400))
    (folder / "table.csv").write_text("age,town,illness\n" + rows, encoding="utf-8")
    (folder / "latin.csv").write_text(
        "age,town,illness\n" + rows.replace("Grippe", "Hüfte"), encoding="latin-1"
    )
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")


def run_cases(tmp_path: Path, cases: list[tuple[str, list[str], list[str]]]) -> list[dict[str, Any]]:
    """Run commands that send themselves signals at points; say what became of each."""
    asked = []
    for number, (point, names, words) in enumerate(cases):
        folder = tmp_path / str(number)
        write_inputs(folder)
        temporary = str(tmp_path / f"temporary{number}")
        asked.append(
            {"point": point, "signals": names, "words": words, "folder": str(folder), "temporary": temporary}
        )
    cases = Path(__file__).parents[1] / "support" / "signal_cases.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(cases)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = []
    for case, (code, stdout, stderr) in zip(asked, json.loads(done.stdout), strict=True):
        assert "Traceback" not in stderr, (case, stderr)
        assert not any(Path(case["temporary"]).iterdir()), case
        left = {path.name for path in Path(case["folder"]).iterdir()} - INPUTS
        results.append({**case, "code": code, "stdout": stdout, "stderr": stderr, "left": left})
    return results


def test_before_the_commit_nothing_is_released_and_the_exit_code_says_so(tmp_path: Path) -> None:
    cases = []
    for number, point in enumerate(BEFORE):
        name = list(CODES)[number % 3]
        words = [word.replace("table", "latin") for word in RELEASE] if point == "callback" else RELEASE
        cases.append((point, [name], [*words, "--json"]))
    for result in run_cases(tmp_path, cases):
        (name,) = result["signals"]
        assert result["code"] == CODES[name], result
        assert result["left"] == set(), result
        message = f"{name} ended the command. Nothing was released."
        answer = json.loads(result["stdout"])
        assert (answer["error"], answer["signal"], answer["message"]) == ("Interrupted", name, message)
        assert message in result["stderr"]


def test_once_the_commit_has_begun_the_release_is_complete_and_the_exit_code_is_0(tmp_path: Path) -> None:
    cases = [(point, [list(CODES)[number % 3]], [*RELEASE, "--json"]) for number, point in enumerate(AFTER)]
    for result in run_cases(tmp_path, cases):
        assert result["code"] == 0, result
        assert_whole(result)
        message = f"The release was complete before {result['signals'][0]} arrived."
        assert message in result["stderr"], result
        answer = json.loads(result["stdout"])
        assert answer["verified"]
        if result["point"] != AFTER[-1]:
            assert answer["message"] == message
            assert answer["signal"] == result["signals"][0]


def assert_whole(result: dict[str, Any]) -> None:
    assert result["left"] == {"o.csv", "o.csv.private", "o.csv.codebook.csv"}, result
    output = Path(result["folder"], "o.csv")
    stage = FileStage(Target(str(output), "file", ".csv"), output, DuckDb())
    assert matches_release(Path(f"{output}.private"), stage), result


def test_any_error_of_an_interrupted_query_is_the_end_by_the_signal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The database's own error comes from statements whose errors are not translated, such as SET."""

    def interrupted(**_: object) -> None:
        handlers.number = signal.SIGTERM
        raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    monkeypatch.setattr(cli, "app", interrupted)
    handlers = signals.install(lambda _: None)
    try:
        with pytest.raises(SystemExit) as done:
            cli.main()
    finally:
        signals.uninstall()
    assert done.value.code == CODES["SIGTERM"]
    assert capfd.readouterr().err == "SIGTERM ended the command. Nothing was written.\n"


def test_a_second_signal_ends_the_process_but_not_in_the_middle_of_a_commit(tmp_path: Path) -> None:
    cases = [
        ("long computation", ["SIGINT", "SIGTERM"], RELEASE),
        ("before:os.link", ["SIGINT", "SIGTERM", "SIGHUP"], RELEASE),
    ]
    before, during = run_cases(tmp_path, cases)
    assert before["code"] in (130, 143)
    assert before["left"] == set()
    assert "Nothing was released." in before["stderr"]
    assert during["code"] == 0
    assert_whole(during)
    assert "The release was complete before" in during["stderr"]


def test_other_commands_say_that_nothing_was_written(tmp_path: Path) -> None:
    policy = ["--policy", "policy.yaml"]
    cases: list[tuple[str, list[str], list[str]]] = [
        ("phase:count", ["SIGTERM"], ["profile", "table.csv", *policy, "--output", "p.profile", "--json"]),
        ("phase:count", ["SIGTERM"], ["compare", "table.csv", *policy, "--output", "c.csv", "--json"]),
        ("import:shoal.workflow.compare.compare", ["SIGTERM"], ["compare", "table.csv", *policy, "--json"]),
        (
            "before:shoal.files.outputs.placing",
            ["SIGTERM"],
            ["compare", "table.csv", *policy, "--output", "c.csv", "--json"],
        ),
        ("import:shoal.workflow.inspect", ["SIGTERM"], ["init", "table.csv", "--json"]),
        ("import:shoal.workflow.risk.risk", ["SIGTERM"], ["risk", "table.csv", *policy, "--json"]),
        ("import:shoal.workflow.diagnosis.diagnose", ["SIGTERM"], ["diagnose", "table.csv", "--json"]),
    ]
    for result in run_cases(tmp_path, cases):
        assert result["code"] == 143, result
        assert result["left"] <= {"c.csv.part"}, result
        message = json.loads(result["stdout"])["message"]
        assert message in result["stderr"]
        if (result["point"], result["words"][0]) == ("phase:count", "compare"):
            # It depends on whether the interrupt reaches a query.
            assert message.startswith(("Stopped: 0 of 12 rows are kept in 'c.csv.part'", "Stopped before"))
        else:
            assert "Nothing was written." in message, result


SENT_AT_THE_END = """
import atexit, os, sys, threading
import shoal.cli.anonymize as command
from shoal.files.signals import Handlers
number, moment = int(sys.argv.pop(1)), sys.argv.pop(1)

def send(*_, kill=os.kill, process=os.getpid(), write=os.write):
    write(2, b"sent\\n")
    kill(process, number)

def after(owner, name):
    real = getattr(owner, name)
    setattr(owner, name, lambda *arguments: (real(*arguments), send())[0])

def as_the_main_thread_ends():
    threading.main_thread().join()
    send()

class Last:
    def __del__(self, send=send):
        send()

match moment:
    case "the result is printed":
        after(command, "print_json")
    case "signals are ignored":
        after(Handlers, "ignore")
    case "the main thread has ended":
        threading.Thread(target=as_the_main_thread_ends).start()
    case "the last exit function":
        atexit.register(send)
    case "modules are removed":
        kept = Last()
from shoal.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "moment",
    [
        "the result is printed",
        "signals are ignored",
        "the main thread has ended",
        "the last exit function",
        "modules are removed",
    ],
)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_after_the_result_is_printed_changes_nothing(tmp_path: Path, name: str, moment: str) -> None:
    folder = tmp_path / "work"
    write_inputs(folder)
    number = str(int(getattr(signal, name)))
    done = subprocess.run(
        [sys.executable, "-c", SENT_AT_THE_END, number, moment, *RELEASE, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines().count("sent") == 1
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["verified"]


def test_a_profile_keeps_what_is_tabulated(tmp_path: Path) -> None:
    words = ["profile", "table.csv", "--policy", "policy.yaml", "--output", "p.profile", "--json"]
    (result,) = run_cases(
        tmp_path, [("after:shoal.workflow.profile.tabulate.Tabulation._count", ["SIGTERM"], words)]
    )
    assert result["code"] == 143, result
    assert result["left"] == {"p.profile"}
    assert json.loads(result["stdout"])["stopped"]


# In a program of somebody else


def test_the_commit_of_a_library_is_not_cut_in_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert threading.current_thread() is threading.main_thread()
    write_inputs(tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    real = os.link

    def link(*arguments: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        real(*arguments)

    monkeypatch.setattr(os, "link", link)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        shoal.anonymize("table.csv", "policy.yaml", output="o.csv")
    assert signal.getsignal(signal.SIGINT) is handler
    left = {path.name for path in Path.cwd().iterdir()} - INPUTS
    assert_whole({"left": left, "folder": str(Path.cwd())})


def test_a_commit_in_another_thread_leaves_signals_alone() -> None:
    handler = signal.getsignal(signal.SIGINT)
    inside: list[Any] = []

    def work() -> None:
        with signals.commit():
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(300)
    assert inside == [handler]


def test_an_ignored_signal_stays_ignored() -> None:
    script = (
        "import signal; from shoal.files.signals import install;"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "install(print); assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN;"
        "assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=300, check=False).returncode == 0


@pytest.mark.parametrize("as_json", [False, True])
def test_an_output_that_nobody_reads_is_no_error(tmp_path: Path, as_json: bool) -> None:
    """As after `| head`: 0 where the release is in place, 141 where there was only something to print."""
    write_inputs(tmp_path / "work")
    codes = []
    for words in ([*RELEASE, *["--json"] * as_json], ["list"]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [sys.executable, "-m", "shoal", *words],
            cwd=tmp_path / "work",
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
        os.close(write)
        assert not done.stderr.strip() or "Note:" in done.stderr, done.stderr
        codes.append(done.returncode)
    assert codes == [0, 141]
