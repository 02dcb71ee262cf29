"""The commands that a policy begins with: a first one for a table, and the schema of all."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from shoal.commands.messages import reporting
from shoal.commands.options import AsJson, Data, EngineName, Force, Reveal, SparkMaster
from shoal.commands.reading import read_engine
from shoal.display import print_json, say
from shoal.errors import UsageError, nearest


def init(
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The policy to write.", show_default="it is printed"),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="A published rule to follow: `safe-harbor`, `health-0.09` or `health-0.05`."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    force: Force = False,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Write a first policy for a table, to edit: guessed roles with the reason, and fitting hierarchies."""
    from shoal.init import ask_roles, guess
    from shoal.outputs import cannot, check_file
    from shoal.policies.presets import check_preset, preset_notes, preset_text
    from shoal.policies.written import named_as_table

    with reporting(as_json, reveal):
        check_preset(preset)
        if output:  # before anybody is asked
            check_file(output, force=force, table=data)
            if named_as_table(output):
                message = (
                    f"{str(output)!r} would be a table, by its ending, and no policy. Let its name end in "
                    f".yaml, as {output.with_suffix('.yaml').name}."
                )
                raise UsageError(message)
        found = guess(data, engine=read_engine(engine, spark_master))
        if sys.stdin.isatty() and not yes and not as_json:
            say(_ROLES, stderr=True)
            found = ask_roles(found, _ask)
        text = preset_text(preset, found)
        if output:
            try:
                output.write_text(text, encoding="utf-8")
            except OSError as error:
                raise cannot(output, error) from None
    if as_json:
        columns = {
            one.column: {
                "role": one.role.value,
                "kind": one.kind,
                "reason": one.reason,
                "identifier": one.identifier.to_dict() if one.identifier else None,
            }
            for one in found
        }
        notes = preset_notes(preset, found)
        written = str(output) if output else None
        print_json({"columns": columns, "notes": notes, "policy": text, "output": written})
    elif output:
        for note in preset_notes(preset, found):
            say(f"Note: {note}", stderr=True)
        check = shlex.join(["shoal", "hierarchy", "check", str(data), "--policy", str(output)])
        say(f"Wrote {output}. Check every role, then: {check}", stderr=True)
    else:
        sys.stdout.write(text)


_ROLES = """Every column has a role. Enter takes the guess; a first letter will do.
  identifier        points at one person: removed
  quasi-identifier  could be known from elsewhere: made coarser
  sensitive         must not be learnt of a person: kept, and protected by models
  other             kept as it is"""


def _ask(question: str, default: str, choices: Sequence[str]) -> str:
    while True:
        found: str = typer.prompt(f"{question} [{', '.join(choices)}]", default=default, err=True).strip()
        meant = [choice for choice in choices if found and choice.startswith(found.lower())]
        if len(meant) == 1:
            return meant[0]
        like = nearest(found, choices)
        hint = f" Did you mean {like!r}?" if like and not meant else ""
        typer.echo(f"{found!r} is no role.{hint} Choose one of {', '.join(choices)}.", err=True)


def policy_schema() -> None:
    """Print the JSON Schema of a policy, for editors."""
    from shoal.policy_schema import policy_schema as schema

    print_json(schema())
