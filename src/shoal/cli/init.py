"""The commands for a new policy: a first one for a table, after two questions, and the JSON Schema."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.messages import report
from shoal.cli.options import Data, Display, EngineChoice, Force, GuessedK, Keep, Known
from shoal.cli.parsing import read_names, read_request
from shoal.columns.guesses import Guess
from shoal.columns.known_keep import Answers, check_answers
from shoal.document.terminal import print_json, say
from shoal.errors import UsageError
from shoal.files.signals import raising

if TYPE_CHECKING:
    from shoal.workflow.first_policy import FirstPolicy, Outlook


_HINT = (
    "Two questions decide the roles. Answer with names or numbers of columns, like age,sex or 1,3, or press "
    "Enter for no answer."
)
_KNOWN = "What could an outsider know about a person? These columns are made coarser"
_KEEP = "What does the analyst need? These columns are kept as far as is safe"


def ask_answers(guesses: tuple[Guess, ...]) -> Answers:
    """Show the columns, and ask which are known to outsiders and which the analyst needs."""
    width = max(len(guess.column) for guess in guesses)
    for number, guess in enumerate(guesses, 1):
        line = f"{number:>4} {guess.column:<{min(width, 30)}}  {guess.column_kind.value}; {guess.reason}"
        say(line, stderr=True)
    say(_HINT, stderr=True)
    names = [guess.column for guess in guesses]
    known = _ask(_KNOWN, names, "known")
    return check_answers(known, _ask(_KEEP, names, "keep"), names)


def _ask(question: str, names: list[str], option: str) -> list[str] | None:
    """Ask until the answer is empty or only names columns of the table."""
    while True:
        with raising():
            reply: str = typer.prompt(question, default="", show_default=False, err=True)
        try:
            chosen = [_column(name, names) for name in read_names([reply], names, option=f"--{option}")]
            if chosen:
                check_answers(**{"known": None, "keep": None} | {option: chosen}, columns=names)
        except UsageError as error:
            report(error)
        else:
            return chosen or None


def _column(reply: str, names: list[str]) -> str:
    """Return the column with this name, else the column with this number."""
    if reply not in names and reply.isdecimal() and 0 < int(reply) <= len(names):
        return names[int(reply) - 1]
    return reply


_OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The policy to write.", show_default="it is printed"),
]
PresetOption = Annotated[
    str | None,
    typer.Option(help="A published rule to follow: `safe-harbor`, `health-0.09` or `health-0.05`."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")]


def init(
    data: Data,
    reading: EngineChoice,
    display: Display,
    known: Known = None,
    keep: Keep = None,
    k: GuessedK = None,
    output: _OutputOption = None,
    preset: PresetOption = None,
    yes: YesOption = False,
    force: Force = False,
) -> None:
    """Write a first policy for a table, to edit: guessed roles with the reason, and fitting hierarchies."""
    from shoal.columns.known_keep import check_answers
    from shoal.columns.presets import check_preset
    from shoal.files.outputs import written_whole
    from shoal.workflow.first_policy import first_policy, outlook
    from shoal.workflow.inspect import guess_columns_of
    from shoal.workflow.session import session

    with display.reporting():
        check_preset(preset)
        if preset and k is not None:
            raise UsageError("is set by the preset. Leave one of them out.", option="k")
        if output:  # before any question is asked
            _check_output(output, data, force=force)
        request = read_request(known, keep, k, {})
        with session(data, reading.create()) as s:
            check_answers(request.known, request.keep, s.columns)  # before the columns are counted
            columns = guess_columns_of(s)
            if sys.stdin.isatty() and not (yes or display.as_json or known or keep):
                answers = ask_answers(columns.guesses)
                request = replace(request, known=answers.known, keep=answers.keep or None)
            first = first_policy(s, request, preset=preset, columns=columns)
            expected = None if preset else outlook(s, first, columns, request)
        if output:
            with written_whole(output) as file:
                file.write(first.text.encode())
    command = expected.command(str(data), _repeated(first, k, output)) if expected else []
    if display.as_json:
        print_json(_as_json(first, expected, command, output))
    else:
        _show(first, expected, command, data, output)


def _show(
    first: FirstPolicy, expected: Outlook | None, command: list[str], data: Path, output: Path | None
) -> None:
    """Print the policy or its path, and how much a quick search retains."""
    if output:
        for note in first.notes:
            say(f"Note: {note}", stderr=True)
        check = shlex.join(["shoal", "hierarchy", "check", str(data), "--policy", str(output)])
        say(f"Wrote {output}. Check every role, then: {check}", stderr=True)
    else:
        sys.stdout.write(first.text)
    for line in expected.sentences if expected else ():
        say(line, stderr=True)
    if command:
        say(f"  {shlex.join(command)}", stderr=True)


def _check_output(output: Path, data: Path, *, force: bool) -> None:
    from shoal.files.outputs import check_file
    from shoal.policy.yaml import named_as_table

    check_file(output, force=force, table=data)
    if named_as_table(output):
        raise UsageError(
            f"{str(output)!r} would be a table, by its extension, not a policy. Let its name end in .yaml, "
            f"such as {output.with_suffix('.yaml').name}."
        )


def _repeated(first: FirstPolicy, k: int | None, output: Path | None) -> list[str]:
    """Return the options of this command that the suggested command must repeat."""
    from shoal.workflow.first_policy import names_text

    keep = ["--keep", names_text(first.answers.keep)] if first.answers.keep else []
    options = [*keep, *([] if k is None else ["--k", str(k)])]
    return [*options, "--output", str(output), "--force"] if output else options


def _as_json(
    first: FirstPolicy, expected: Outlook | None, command: list[str], output: Path | None
) -> dict[str, Any]:
    from shoal.columns.guesses import person_key_of

    key = person_key_of(first.guesses)
    return {
        "columns": {
            guess.column: {
                "role": guess.role.value,
                "kind": guess.kind,
                "column_kind": guess.column_kind.value,
                "reason": guess.reason,
                "identifier": guess.identifier.to_dict() if guess.identifier else None,
            }
            for guess in first.guesses
        },
        "unit": key.to_dict() if key else None,
        "notes": list(first.notes),
        "unrecognized": list(first.unrecognized),
        "retained": expected.retained if expected else None,
        "command": shlex.join(command) if command else None,
        "policy": first.text,
        "output": str(output) if output else None,
    }


def policy_schema() -> None:
    """Print the JSON Schema of a policy, for editors."""
    from shoal.policy.schema import policy_schema as schema

    print_json(schema())
