"""The command that opens the custodian's desk in a browser."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from shoal.commands.messages import reporting
from shoal.errors import UsageError

_NEEDS = ("fastapi", "uvicorn", "nicegui")


def studio(
    data: Annotated[Path | None, typer.Argument(help="The table to begin with.")] = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", help="The policy to begin with, a YAML file; it needs `DATA`."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="The port to listen on.", show_default="a free one"),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on; others than this machine's need a password in the variable "
            "`SHOAL_STUDIO_PASSWORD`."
        ),
    ] = "127.0.0.1",
    folder: Annotated[
        Path | None,
        typer.Option(help="A folder below which tables may be chosen; without it they are uploaded."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the address in a browser.")] = True,
) -> None:
    """Open the studio: the whole way from a table to its release, in a browser, on this machine."""
    with reporting(as_json=False):
        absent = [name for name in _NEEDS if find_spec(name) is None]
        if absent:
            message = f"The studio needs {', '.join(absent)}. Install it with: pip install 'shoal[web]'."
            raise UsageError(message)
        if policy is not None and data is None:
            message = "A policy is about a table. Name the table too: shoal studio DATA --policy P."
            raise UsageError(message)
        from shoal.web.pages import mount
        from shoal.web.serve import serve

        serve(
            data,
            policy,
            host=host,
            port=port,
            folder=folder,
            open_browser=browser,
            password=os.environ.get("SHOAL_STUDIO_PASSWORD") or None,
            mount=mount,
        )
