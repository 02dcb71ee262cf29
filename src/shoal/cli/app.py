"""The command line: its commands, signals and exit codes. Results go to stdout, messages to stderr."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from shoal.cli.messages import announce, output_closed, report, report_complete, report_end, report_stop
from shoal.cli.options import with_groups
from shoal.cli.usage_errors import CommandGroup
from shoal.document.terminal import say
from shoal.errors import ShoalError, interruptible
from shoal.files.signals import Handlers, install, installed, interrupted, stopping, uninstall

# In the order of --help: the commands that most users need come first.
_COMMANDS = {
    "demo": "demo:demo",
    "init": "init:init",
    "policy-schema": "init:policy_schema",
    "hierarchy": "hierarchy:hierarchy_app",
    "diagnose": "diagnose:diagnose",
    "measure": "assess:measure",
    "anonymize": "anonymize:anonymize",
    "verify": "verify:verify",
    "apply": "anonymize:apply",
    "profile": "profile:profile",
    "negotiate": "negotiate:negotiate",
    "compare": "compare:compare",
    "risk": "assess:risk",
    "attack": "assess:attack",
    "utility": "assess:utility",
    "studio": "studio:studio",
    "import-arx": "import_arx:import_arx",
    "list": "list:list_",
}


class _Commands(Mapping[str, Any]):
    """The commands by name. A command's module is imported when the command is called or listed."""

    def __getitem__(self, name: str) -> Any:
        return _command(name, _COMMANDS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


@cache
def _command(name: str, location: str) -> Any:
    """Import a command or a group of commands. Its module may define options for the command in `COMMAND`."""
    module_name, _, attribute = location.partition(":")
    module = import_module(f"shoal.cli.{module_name}")
    commands = getattr(module, attribute)
    if not isinstance(commands, typer.Typer):
        function, commands = commands, typer.Typer(add_completion=False)
        commands.command(name, **getattr(module, "COMMAND", {}))(with_groups(function))
    command = typer.main.get_command(commands)
    command.name = name
    return command


class _LazyGroup(CommandGroup):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands: Any = _Commands()


app = typer.Typer(cls=_LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        say(f"shoal {version('shoal')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version of shoal."),
    ] = False,
) -> None:
    """De-identify tables of people's records by a policy, and report what the result guarantees."""


def main() -> None:
    """Run the command line, then end the process, even if some threads or queries still run."""
    embedded = "shoal.web.app" in sys.modules  # a studio in this process continues after the command
    try:
        with _handled() as handlers:
            code = _run(handlers)
            handlers.ignore()  # the result is complete: signals at exit have no effect
            sys.exit(code)
    except SystemExit as done:
        at_work = any(thread.name.startswith("shoal-") for thread in threading.enumerate())
        if not embedded and (at_work or "shoal.web.app" in sys.modules):
            # A studio may still have connections and running jobs. A normal shutdown of Python would print
            # their database messages on stderr.
            atexit._run_exitfuncs()
            with suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(done.code if isinstance(done.code, int) else 0)
        raise


@contextmanager
def _handled() -> Iterator[Handlers]:
    """Handle signals in the block. Handlers that `__main__` has installed remain until the process ends."""
    handlers = installed()
    if handlers is not None:
        yield handlers
        return
    try:
        yield install(report_end, announce)
    finally:
        uninstall()


def _run(handlers: Handlers) -> int:
    """Run the command line and return the exit code. Errors of shoal are printed in one line."""
    try:
        code = _called()
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return report_stop(handlers)
    except BrokenPipeError:
        return output_closed()
    if handlers.number is None:
        return code
    if handlers.committed:
        report_complete(handlers)
        return code
    return handlers.code if handlers.raised else code


def _called() -> int:
    try:
        with interruptible():
            return app(standalone_mode=False) or 0
    except ShoalError as error:
        return report(error)
    except typer.Abort:
        raise
    except Exception as error:
        # Parser errors that the parser prints itself, such as the help if no command is given.
        if not hasattr(error, "exit_code"):
            if stopping():  # a query that was interrupted may fail in any statement
                raise interrupted() from None
            raise
        if hasattr(error, "show"):
            error.show()
        return int(error.exit_code)
