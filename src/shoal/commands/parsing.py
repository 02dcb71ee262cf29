"""How words that no command takes are answered: in our words, with what is nearest and an example."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, get_args, get_type_hints

import typer
from typer.core import TyperGroup

from shoal.commands.messages import report
from shoal.commands.pointers import instead_of_command, instead_of_option, two_tables, with_one_dash
from shoal.errors import UnknownName, UsageError, nearest
from shoal.options import wanted

_EXAMPLES = {"port": 8080, "population_size": 1_000_000, "seconds": 60}  # others: 5


class Commands(TyperGroup):
    """The commands; what their parser refuses is told as other errors are, also as JSON."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **options: Any) -> Any:
        """Parse what stands before the command."""
        self._words = list(args)
        with _in_our_words(self, self._words):
            return super().make_context(info_name, args, *more, **options)

    def invoke(self, ctx: Any) -> Any:
        """Parse what stands after the command, and run it."""
        with _in_our_words(self, self._words):
            _refuse_one_dash(*_called(self, self._words), self._words)
            return super().invoke(ctx)


@contextmanager
def _in_our_words(group: Any, words: Sequence[str]) -> Iterator[None]:
    """Tell what the parser refuses, whose errors have other classes in other versions."""
    try:
        yield
    except Exception as error:
        if not hasattr(error, "format_message") or type(error).__name__ == "NoArgsIsHelpError":
            raise
        told = _refusal(error, *_called(group, words), words)
        raise typer.Exit(report(told, as_json="--json" in words)) from None


def _refuse_one_dash(command: Any, name: str, words: Sequence[str]) -> None:
    """Refuse -policy p.yaml, of which the parser makes a policy called olicy."""
    options = [option for one in getattr(command, "params", ()) for option in one.opts]
    if found := with_one_dash(words, [*options, "--help"]):
        message = f"There is no option {found}. Did you mean -{found}? `{name} --help` lists what it takes."
        raise typer.Exit(report(UsageError(message), as_json="--json" in words))


def _called(group: Any, words: Sequence[str]) -> tuple[Any, str]:
    """Return the command that words call, as far as there is one, and what it is called by."""
    name = "shoal"
    for word in words:
        if word not in getattr(group, "commands", ()):
            break
        group, name = group.commands[word], f"{name} {word}"
    return group, name


def _refusal(error: Any, command: Any, name: str, words: Sequence[str]) -> UsageError:
    """Word an error of the parser."""
    said, param, option = (
        error.format_message(),
        getattr(error, "param", None),
        getattr(error, "option_name", None),
    )
    known = getattr(command, "commands", None)
    lists = f"`{name} --help` lists what it takes."
    if known and (typed := re.search(r"command '(.*?)'\.", said)):
        pointer = instead_of_command(typed[1])
        return UsageError(pointer) if pointer else UnknownName(typed[1], "command", known)
    if pointer := two_tables(name, words):
        return UsageError(f"{pointer} {lists}")
    if type(error).__name__ == "MissingParameter":
        return UsageError(f"{_name(param)} is missing{_meaning(param)}. {lists}")
    if param is not None and hasattr(param, "opts"):
        return UsageError(_wrong_value(command.callback, param, words))
    if taker := next((own for own, one in (known or {}).items() if _takes(one, option)), None):
        return UsageError(f"{option} goes after the command, as `{name} {taker} {option}`.")
    if option and "o such option" in said:
        there = [own for one in command.params for own in one.opts]
        elsewhere = instead_of_option(option, _given([option], words), there)
        told = elsewhere or _meant(option, command.params)
        return UsageError(f"There is no option {option}.{told} {lists}")
    if option:
        own = next((one for one in command.params if option in one.opts), None)
        if own is None or getattr(own, "is_flag", False):
            return UsageError(f"{option} takes no value. Write {option} alone.")
        return UsageError(f"{option} lacks its value{_meaning(own)}. {lists}")
    if extra := re.search(r"extra argument.*\((.*)\)$", said):
        return UsageError(
            f"{extra[1]!r} is too much: `{name}` takes {_arguments(command.params)}. Put quotes "
            f"around what holds spaces, and commas between names. {lists}"
        )
    return UsageError(f"{said} {lists}")


def _takes(command: Any, option: str | None) -> bool:
    return any(option in one.opts for one in command.params)


def _wrong_value(callback: Any, param: Any, words: Sequence[str]) -> str:
    """Say what an option takes, with an example, and what it got."""
    told = get_type_hints(callback, include_extras=True).get(param.name, str)
    kind, *notes = get_args(told) if hasattr(told, "__metadata__") else (told,)
    name, given = _name(param), _given(param.opts, words)
    low, high = (next((getattr(note, end, None) for note in notes), None) for end in ("min", "max"))
    between = "" if low is None or high is None else f" from {low} to {high}"
    must = f"{name} takes {wanted(kind)}{between}, as {name} {_EXAMPLES.get(param.name, 5)}"
    return f"{must}." if given is None else f"{must}; got {given!r}.{_point(kind, given)}"


def _point(kind: Any, given: str) -> str:
    """Ask for a decimal point where a comma was written."""
    if float in (kind, *get_args(kind)) and re.fullmatch(r"\d+,\d+", given):
        return f" Write {given.replace(',', '.')}."
    return ""


def _given(options: Sequence[str], words: Sequence[str]) -> str | None:
    """Return what was written for an option, the last time."""
    found = None
    for place, word in enumerate(words):
        if word in options:
            found = words[place + 1] if place + 1 < len(words) else None
        elif word.partition("=")[0] in options:
            found = word.partition("=")[2]
    return found


def _meant(option: str, params: Sequence[Any]) -> str:
    """Ask for the options of which a word was written, or for the one that is nearest.

    >>> from types import SimpleNamespace as Option
    >>> there = [Option(opts=["--columns"]), Option(opts=["--suppression-limit"])]
    >>> _meant("--colums", there), _meant("--limit", there), _meant("--xyz", there)
    (' Did you mean --columns?', ' Did you mean --suppression-limit?', '')
    """
    names = [name for one in params for name in one.opts if name.startswith("--")]
    parts = set(option.strip("-").split("-"))
    close = [name for name in names if parts <= set(name.strip("-").split("-"))]
    alike = nearest(option, names)
    close = close or [alike] * (alike is not None)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def _name(param: Any) -> str:
    """Name an option by its longest spelling, and an argument as the help does."""
    options = [name for name in param.opts if name.startswith("-")]
    return max(options, key=len) if options else str(param.name).upper()


def _meaning(param: Any) -> str:
    said = (getattr(param, "help", None) or "").rstrip(".").replace("`", "")
    return f": {said[:1].lower()}{said[1:]}" if said else ""


def _arguments(params: Sequence[Any]) -> str:
    names = [_name(one) for one in params if not any(name.startswith("-") for name in one.opts)]
    return " ".join(names) or "options only"
