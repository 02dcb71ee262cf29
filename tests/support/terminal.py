"""A command in a terminal of its own: it is told a line whenever it asks for one."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress

CTRL_C, CTRL_D = b"\x03", b"\x04"


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Press Ctrl-C, and again much later: one that comes before the line is being read waits for a key.

    A second one that strikes while the process ends would kill it.
    """
    for _ in range(6):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
            return


def in_a_terminal(command: Sequence[str], lines: Sequence[bytes]) -> tuple[int, str]:
    """Return the exit code, and all that was said."""
    main, other = pty.openpty()
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other)
    os.close(other)
    said: list[bytes] = []
    asked = threading.Semaphore(0)

    def listen() -> None:
        told = 0
        while True:
            try:
                said.append(os.read(main, 65536))
            except OSError:  # the other side is gone
                return
            now = b"".join(said).count(b"shoal> ")
            asked.release(now - told) if now > told else None
            told = now

    listener = threading.Thread(target=listen)
    listener.start()
    for line in lines:
        assert asked.acquire(timeout=300)
        if line == CTRL_C:
            interrupt(process)
        else:
            os.write(main, line)
    code = process.wait(300)
    listener.join(300)
    os.close(main)
    return code, b"".join(said).decode()


class Conversation:
    """A command in a terminal: waits until the screen shows a text, types, and sends signals."""

    def __init__(self, command: Sequence[str]) -> None:
        self.main, other = pty.openpty()
        self.process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other)
        os.close(other)
        self.screen = b""

    def wait_for(self, text: str) -> None:
        """Read until the screen has shown a text."""
        while text.encode() not in self.screen:
            assert self._read(), self.screen.decode()

    def _read(self) -> bool:
        assert select.select([self.main], [], [], 600)[0], self.screen.decode()
        try:
            self.screen += os.read(self.main, 65536)
        except OSError:  # the other side is gone
            return False
        return True

    def type(self, text: str) -> None:
        os.write(self.main, text.encode())

    def end(self) -> tuple[int, str]:
        """Return the exit code and all that was shown."""
        while self._read():
            pass
        os.close(self.main)
        return self.process.wait(300), self.screen.decode()
