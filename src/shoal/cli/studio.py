"""The command that opens the custodian's workspace in a browser."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from shoal.cli.messages import reporting
from shoal.document.terminal import say
from shoal.errors import UsageError
from shoal.files.signals import raising

_NameArgument = Annotated[
    str, typer.Argument(help="The user's name: lower-case letters, digits and `.`, `_`, `@`, `-`.")
]
UsersOption = Annotated[
    Path,
    typer.Option("--users", help="The file of users, one `name:password-hash` per line; created if missing."),
]
PasswordStdinOption = Annotated[
    bool,
    typer.Option("--password-stdin", help="Read the password from the first line of standard input."),
]


def add_user(
    name: _NameArgument,
    users: UsersOption,
    password_stdin: PasswordStdinOption = False,
) -> None:
    """Add a user of the studio, or change a user's password, which is asked for twice."""
    from shoal.web.server import users as file

    with reporting(as_json=False):
        file.check_name(name)
        with raising():
            password = _read_password() if password_stdin else _ask_password()
        replaced = file.add_user(users, name, password)
        say(f"{name} has a new password." if replaced else f"{name} was added to {users}.")


def _read_password() -> str:
    return sys.stdin.readline().rstrip("\r\n")


def _ask_password() -> str:
    if not sys.stdin.isatty():
        raise UsageError(
            "The password is asked for in a terminal. Use --password-stdin to read it from a pipe."
        )
    first = str(typer.prompt("Password", hide_input=True, err=True))
    if str(typer.prompt("The same again", hide_input=True, err=True)) != first:
        raise UsageError("The two passwords differ. Run the command again.")
    return first


class StudioCommand(TyperCommand):
    """The command `shoal studio` with its subcommand `add-user`. A table of that name is ./add-user."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        below = typer.Typer(add_completion=False)
        below.command("add-user")(add_user)
        self.commands: dict[str, Any] = {"add-user": typer.main.get_command(below)}

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments of the subcommand if it is the first argument."""
        if args and args[0] in self.commands:
            name = args.pop(0)
            return self.commands[name].make_context(f"{info_name} {name}", args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


COMMAND = {"cls": StudioCommand}
_NEEDS = ("fastapi", "uvicorn", "nicegui")


DataArgument = Annotated[Path | None, typer.Argument(help="The table to begin with.")]
_PolicyOption = Annotated[
    Path | None,
    typer.Option("--policy", "-p", help="The policy to begin with, a YAML file; it needs `DATA`."),
]
PortOption = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="The port to listen on.", show_default="a free one"),
]
HostOption = Annotated[
    str,
    typer.Option(
        help="The address to listen on; other addresses than this machine's need `--users`, or a password in "
        "the variable `SHOAL_STUDIO_PASSWORD`."
    ),
]
OriginOption = Annotated[
    list[str] | None,
    typer.Option(
        help="The address at which browsers reach the studio, such as `https://studio.example.org`, if it "
        "differs from the address listened on; then only this one is served; may be repeated."
    ),
]
ProxyOption = Annotated[
    list[str] | None,
    typer.Option(
        help="The IP address or network of a reverse proxy whose X-Forwarded headers are believed. It "
        "may be repeated."
    ),
]
StudioUsersOption = Annotated[
    Path | None,
    typer.Option(
        help="A file of users, one `name:password-hash` per line, each with workspaces of their own; "
        "`shoal studio add-user NAME` adds one."
    ),
]
IdleMinutesOption = Annotated[
    int,
    typer.Option(min=1, max=525_600, help="Sign users out after this many minutes without activity."),
]
MaxUploadMibOption = Annotated[
    int, typer.Option(min=1, max=1 << 20, help="The maximum size of an uploaded file, in MiB.")
]
MaxUnpackedMibOption = Annotated[
    int, typer.Option(min=1, max=1 << 20, help="The maximum size of a file when decompressed, in MiB.")
]
MaxColumnsOption = Annotated[
    int, typer.Option(min=1, max=1_000_000, help="The maximum number of columns of a table.")
]
MaxWorkspacesOption = Annotated[
    int, typer.Option(min=1, max=10_000, help="The maximum number of workspaces per user.")
]
ExpireMinutesOption = Annotated[
    int,
    typer.Option(
        min=2, max=525_600, help="Delete a workspace and its files after this many minutes without use."
    ),
]
_FolderOption = Annotated[
    Path | None,
    typer.Option(help="A folder from which tables may be chosen; without it, tables are uploaded."),
]
ProjectsOption = Annotated[
    Path | None,
    typer.Option(help="A folder for saved projects, with a subfolder per user. They are kept until deleted."),
]
SourcesOption = Annotated[
    Path | None,
    typer.Option(
        help="A YAML file of tables in databases that may be chosen, with their addresses. Only its owner "
        "may read it. The rows stay in the databases."
    ),
]
BrowserOption = Annotated[bool, typer.Option(help="Open the address in a browser.")]


def _check(data: Path | None, policy: Path | None) -> None:
    missing = [name for name in _NEEDS if find_spec(name) is None]
    if missing:
        raise UsageError(f"The studio needs {', '.join(missing)}. Install it with: pip install 'shoal[web]'.")
    if policy is not None and data is None:
        raise UsageError("A policy is about a table. Name the table too: shoal studio DATA --policy P.")


def studio(
    data: DataArgument = None,
    policy: _PolicyOption = None,
    port: PortOption = None,
    host: HostOption = "127.0.0.1",
    origin: OriginOption = None,
    proxy: ProxyOption = None,
    users: StudioUsersOption = None,
    idle_minutes: IdleMinutesOption = 480,
    max_upload_mib: MaxUploadMibOption = 1024,
    max_unpacked_mib: MaxUnpackedMibOption = 4096,
    max_columns: MaxColumnsOption = 5000,
    max_workspaces: MaxWorkspacesOption = 32,
    expire_minutes: ExpireMinutesOption = 1440,
    folder: _FolderOption = None,
    projects: ProjectsOption = None,
    sources: SourcesOption = None,
    browser: BrowserOption = True,
) -> None:
    """Open the studio: all steps from a table to its release, in a browser, on this machine.

    `shoal studio add-user NAME` adds a user to the file of `--users`.
    """
    with reporting(as_json=False):
        _check(data, policy)
        from shoal.web.app import serve
        from shoal.web.pages.studio import mount

        serve(
            data,
            policy,
            host=host,
            port=port,
            folder=folder,
            projects=projects,
            sources=sources,
            open_browser=browser,
            password=os.environ.get("SHOAL_STUDIO_PASSWORD") or None,
            mount=mount,
            origins=origin or (),
            proxies=proxy or (),
            users=users,
            idle_minutes=idle_minutes,
            upload_limit=max_upload_mib << 20,
            unpacked_limit=max_unpacked_mib << 20,
            column_limit=max_columns,
            max_workspaces=max_workspaces,
            expire_minutes=expire_minutes,
        )
