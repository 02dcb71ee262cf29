"""A shell in which `shoal` is this process: what one command has imported and compiled is there for the next.

Its `shoal` is a small program that hands its arguments, folder, environment and streams through a socket and
ends with the exit code that comes back. What cannot be done here, such as an installation, is looked at only:
see `STAND_INS`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx
import yaml

from code_blocks import ROOT
from shoal.cli.app import main

SHOAL = Path(sys.executable).with_name("shoal")
CALLER = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({door!r})
    said = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(line, [len(said).to_bytes(8, "big")], [0, 1, 2])
    line.sendall(said)
    sys.exit(line.recv(1)[0])
"""


@dataclass(frozen=True)
class Ran:
    """What a script came to."""

    code: int
    printed: list[str]  # by each part
    told: str  # on stderr

    def __str__(self) -> str:
        return "\n".join([*self.printed, self.told, f"exit code {self.code}"])


@dataclass(frozen=True)
class Call:
    """A program that the shell calls."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    streams: list[int]


def run(parts: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Ran:
    """Run the parts of a script one after the other, as one shell that ends at the first failure."""
    with ExitStack() as stack:
        own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shell")))
        door = stack.enter_context(socket.socket(socket.AF_UNIX))
        door.bind(str(own / "door"))
        door.listen()
        door.settimeout(0.02)
        for name in STAND_INS:
            program = own / name
            program.write_text(CALLER.format(python=sys.executable, door=str(own / "door")), encoding="utf-8")
            program.chmod(0o755)
        script = ["set -euo pipefail", f"exec 2>'{own}/told'"]
        for number, part in enumerate(parts):
            # The last line is for `a && b`, where a failure of `a` is none to the shell.
            script += [f"exec >'{own}/{number}'", part, "test $? = 0"]
        path = os.pathsep.join([str(own), str(SHOAL.parent), os.environ["PATH"]])
        process = subprocess.Popen(
            ["bash", "-c", "\n".join(script)],
            cwd=folder,
            env={**os.environ, "BROWSER": "true", "COLUMNS": "80", **(environment or {}), "PATH": path},
            stdin=subprocess.DEVNULL,
        )
        try:
            until = time.monotonic() + 900
            while process.poll() is None and time.monotonic() < until:
                with suppress(TimeoutError):
                    _answer(door)
        finally:
            process.kill()
            process.wait()
        printed = [file for number in range(len(parts)) if (file := own / str(number)).exists()]
        told = (own / "told").read_text("utf-8")
        return Ran(process.returncode, [file.read_text("utf-8") for file in printed], told)


def _answer(door: socket.socket) -> None:
    """Be the program that is called next."""
    line, _ = door.accept()
    with line:
        line.settimeout(300)
        length, streams, _, _ = socket.recv_fds(line, 8, 3)
        try:
            said = line.makefile("rb").read(int.from_bytes(length, "big"))
            call = Call(*json.loads(said), streams)
            code = STAND_INS[Path(call.words[0]).name](call)
        finally:
            for stream in streams:
                os.close(stream)
        line.sendall(bytes([code & 255]))


def _shoal(call: Call) -> int:
    """Run a command of shoal in this process; the studio, which runs until stopped, in its own."""
    if call.words[1:2] == ["studio"]:
        return _studio(call)
    with _in_place_of(call):
        try:
            main()
        except SystemExit as done:
            return done.code if isinstance(done.code, int) else int(done.code is not None)
    return 0


def _studio(call: Call) -> int:
    """Start the studio, open the address that it prints, and end it as Ctrl-C does."""
    process = subprocess.Popen(
        [str(SHOAL), *call.words[1:]],
        cwd=call.folder,
        env=call.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    said = process.stderr.readline()
    try:
        if found := re.search(r"http://\S+", said):
            with httpx.Client(follow_redirects=True, trust_env=False, timeout=300) as browser:
                page = browser.get(found[0])
            said += f"{page.status_code}\n"
            assert page.is_success, page
    finally:
        process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=300)[1]
    os.write(call.streams[2], said.encode())
    return 0 if process.returncode == 130 else process.returncode  # 130: stopped with Ctrl-C


def _pip(call: Call) -> int:
    """Install nothing: nobody is to reach a network here. What is named of shoal must be there to install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    assert call.words[1] == "install"
    for wanted in call.words[2:]:
        found = re.fullmatch(r"shoal(?:\[([\w,]+)\])?", wanted)
        assert found, f"pip install {wanted}"
        assert set((found[1] or "").split(",")) - {""} <= extras, wanted
    return 0


def _make(call: Call) -> int:
    """Make nothing, for it would make an environment, or run these tests; but say what would be done."""
    command = ["make", "--dry-run", "--directory", ROOT, *call.words[1:]]
    _, *streams = call.streams
    return subprocess.run(command, stdout=streams[0], stderr=streams[1], check=False).returncode


def _dbt(call: Call) -> int:
    """Run nothing, for there is no dbt here; but take no other words than it does."""
    match call.words[1:]:
        case ["run", "--select", _]:
            return 0
        case ["run-operation", _, "--args", written]:
            return int(not isinstance(yaml.safe_load(written), dict))
    return 2


# Programs that are not what they seem, each with its reason.
STAND_INS: dict[str, Callable[[Call], int]] = {"shoal": _shoal, "pip": _pip, "make": _make}
if not shutil.which("dbt"):
    STAND_INS["dbt"] = _dbt


@contextmanager
def _in_place_of(call: Call) -> Iterator[None]:
    """Take over the words, folder, environment and streams of a program, and give them back."""
    folder, environment, words = Path.cwd(), dict(os.environ), sys.argv
    outer = sys.stdin, sys.stdout, sys.stderr
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    kept = [os.dup(number) for number in range(3)]
    for stream in outer[1:]:
        stream.flush()
    try:
        for number, stream in enumerate(call.streams):
            os.dup2(stream, number)
        os.chdir(call.folder)
        os.environ.clear()
        os.environ.update(call.environment)
        sys.argv = call.words
        sys.stdin, sys.stdout, sys.stderr = (_text(number) for number in range(3))
        yield
    finally:
        with suppress(BrokenPipeError):
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        sys.stdin, sys.stdout, sys.stderr = outer
        sys.argv = words
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        for number, stream in enumerate(kept):
            os.dup2(stream, number)
            os.close(stream)
        for number, handler in signals.items():
            signal.signal(number, handler)


def _text(number: int) -> IO[str]:
    return open(number, "w" if number else "r", encoding="utf-8", closefd=False)
