"""The command line: every command, and how it ends. Results go to stdout; progress and messages to stderr."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from typing import Annotated

import typer

from shoal.commands.anonymize import anonymize
from shoal.commands.apply import apply
from shoal.commands.arx import import_arx
from shoal.commands.attack import attack
from shoal.commands.compare import compare
from shoal.commands.demo import demo
from shoal.commands.diagnose import diagnose
from shoal.commands.hierarchy import hierarchy_app
from shoal.commands.init import init, policy_schema
from shoal.commands.listing import list_
from shoal.commands.measure import measure
from shoal.commands.messages import report
from shoal.commands.negotiate import negotiate
from shoal.commands.parsing import Commands
from shoal.commands.profile import profile
from shoal.commands.risk import risk
from shoal.commands.studio import studio
from shoal.commands.utility import utility
from shoal.commands.verify import verify
from shoal.display import say
from shoal.errors import ShoalError, interruptible

app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)

# In the order in which they are likely to be used; --help keeps it.
app.command()(demo)
app.command()(init)
app.command()(policy_schema)
app.add_typer(hierarchy_app, name="hierarchy")
app.command()(diagnose)
app.command()(measure)
app.command()(anonymize)
app.command()(verify)
app.command()(apply)
app.command()(profile)
app.command()(negotiate)
app.command()(compare)
app.command()(risk)
app.command()(attack)
app.command()(utility)
app.command()(studio)
app.command()(import_arx)
app.command(name="list")(list_)


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        say(f"shoal {version('shoal')}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say which shoal this is."),
    ] = False,
) -> None:
    """De-identify tables of people's records: every record looks like at least k-1 others."""


def main() -> None:
    """Run the command line, and end it even where work cannot be stopped."""
    try:
        _run()
    except SystemExit as done:
        if any(thread.name.startswith("shoal-") for thread in threading.enumerate()):
            # Work of the studio that is deep in a count: a database would print what it still holds.
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(done.code if isinstance(done.code, int) else 0)
        raise


def _run() -> None:
    """Run the command line; deliberate errors become one line and an exit code."""
    stopped = _stop_politely()
    try:
        with interruptible():
            code = app(standalone_mode=False)
        sys.exit(stopped[0] if stopped else code)
    except KeyboardInterrupt:
        sys.exit(stopped[0] if stopped else 130)
    except ShoalError as error:
        sys.exit(report(error))
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        # What the parser shows itself: the help where no command was named.
        if not hasattr(error, "exit_code"):
            raise
        if hasattr(error, "show"):
            error.show()
        sys.exit(error.exit_code)


def _stop_politely() -> list[int]:
    """Let a polite kill, or a terminal that closes, end as Ctrl-C does; hold the exit code for it."""
    stopped: list[int] = []

    def stop(number: int, _: object) -> None:
        stopped.append(128 + number)
        raise KeyboardInterrupt

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores one
            signal.signal(number, stop)
    return stopped
