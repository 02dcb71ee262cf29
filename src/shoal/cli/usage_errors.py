"""Messages for usage errors, with the nearest option or command and an example."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, get_args, get_type_hints

import typer
from typer.core import TyperGroup

from shoal.cli.messages import output_closed, report
from shoal.errors import UnknownName, UsageError
from shoal.files.signals import installed
from shoal.registry import expected_value
from shoal.wording import nearest, quote

_COMMANDS = {
    "report": "`shoal anonymize --report` writes one beside the release.",
    "help": "`shoal --help` lists the commands, and `shoal anonymize --help` what one takes.",
    "version": "`shoal --version` prints the version.",
}
# For each option name: the model that has this option, and an example of its value.
_MODELS = {
    "k": ("k-anonymity", "5"),
    "l": ("distinct-l-diversity", "2"),
    "t": ("t-closeness", "0.2"),
}
_ENTRIES = {
    "limit": "suppression_limit",
    "suppression-limit": "suppression_limit",
    "metric": "metric",
    "algorithm": "algorithm",
    "model": "models",
}
_TWO_TABLES = (
    "`shoal compare` compares searches on one table. Two tables: `shoal utility DATA RELEASE --policy "
    "POLICY` or `shoal risk DATA --policy POLICY --release RELEASE`."
)


def instead_of_command(name: str) -> str | None:
    """Return a message that names the alternative to a command that does not exist, or None.

    >>> instead_of_command("report")
    'There is no command report: `shoal anonymize --report` writes one beside the release.'
    """
    return f"There is no command {name}: {_COMMANDS[name]}" if name in _COMMANDS else None


def instead_of_option(option: str, typed: str | None, options: Collection[str]) -> str:
    """Return a hint where to set the value of an option that does not exist, or an empty string.

    >>> instead_of_option("--k", "10", ["--policy"])
    ' k is set in the policy, under models: k-anonymity: {k: 10}.'
    >>> instead_of_option("--limit", "5%", ["--policy"])
    ' suppression_limit is set in the policy.'
    """
    name = option.strip("-")
    if name in _MODELS and {"--model", "--policy"} & set(options):
        model, example = _MODELS[name]
        value = typed if typed and re.fullmatch(r"[0-9]+(\.[0-9]+)?", typed) else example
        written = f" {name} is set in the policy, under models: {model}: {{{name}: {value}}}."
        alternative = (
            f" Or write --model {model}:{name}={value}; these options replace all models of the policy."
        )
        return written + alternative * ("--model" in options)
    if name in _ENTRIES and "--policy" in options and not any(item.endswith(f"-{name}") for item in options):
        return f" {_ENTRIES[name]} is set in the policy."
    return ""


def with_one_dash(words: Sequence[str], options: Collection[str]) -> str | None:
    """Return the first word that needs a second dash to be an option, or None.

    >>> with_one_dash(["-policy", "p.yaml"], ["--policy", "-p"]), with_one_dash(["-p", "x"], ["--policy"])
    ('-policy', None)
    """
    names = [word.partition("=")[0] for word in words]
    return next((name for name in names if len(name) > 2 and name[1] != "-" and f"-{name}" in options), None)


def two_tables(name: str, words: Sequence[str]) -> str | None:
    """Return a message on how to compare two tables, if `compare` was given two."""
    after = list(words[1:3])
    are_two_tables = len(after) == 2 and not any(word.startswith("-") for word in after)
    return _TWO_TABLES if name == "shoal compare" and are_two_tables else None


_EXAMPLES = {"port": 8080, "population_size": 1_000_000, "seconds": 60}  # 5 for any other option


class CommandGroup(TyperGroup):
    """The commands. Usage errors are reported like all other errors, also as JSON."""

    def make_context(self, info_name: str | None, args: list[str], *extra: Any, **options: Any) -> Any:
        """Parse the arguments before the command."""
        self._words = list(args)
        with _reporting_parser_errors(self, self._words):
            return super().make_context(info_name, args, *extra, **options)

    def invoke(self, ctx: Any) -> Any:
        """Parse the arguments after the command, and run it."""
        with _reporting_parser_errors(self, self._words):
            _refuse_one_dash(*_called(self, self._words), self._words)
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                raise typer.Exit(output_closed()) from None
            except KeyboardInterrupt:
                if installed() is None:
                    raise
                raise typer.Abort from None  # the parser would convert a KeyboardInterrupt into an exit code


@contextmanager
def _reporting_parser_errors(group: Any, words: Sequence[str]) -> Iterator[None]:
    """Report the parser's errors. They are recognized by attributes: the classes differ between versions."""
    try:
        yield
    except Exception as error:
        if not hasattr(error, "format_message") or type(error).__name__ == "NoArgsIsHelpError":
            raise
        refusal = _refusal(error, *_called(group, words), words)
        raise typer.Exit(report(refusal, as_json="--json" in words)) from None


def _refuse_one_dash(command: Any, name: str, words: Sequence[str]) -> None:
    """Refuse -policy p.yaml, which the parser would read as a policy named olicy."""
    options = [option for parameter in getattr(command, "params", ()) for option in parameter.opts]
    if word := with_one_dash(words, [*options, "--help"]):
        message = f"There is no option {word}. Did you mean -{word}? `{name} --help` lists what it takes."
        raise typer.Exit(report(UsageError(message), as_json="--json" in words))


def _called(group: Any, words: Sequence[str]) -> tuple[Any, str]:
    """Return the command that `words` name, or else the innermost group, with its full name."""
    name = "shoal"
    for word in words:
        if word not in getattr(group, "commands", ()):
            break
        group, name = group.commands[word], f"{name} {word}"
    return group, name


def _refusal(error: Any, command: Any, name: str, words: Sequence[str]) -> UsageError:
    message, param, option = (
        error.format_message(),
        getattr(error, "param", None),
        getattr(error, "option_name", None),
    )
    known = getattr(command, "commands", None)
    lists = f"`{name} --help` lists what it takes."
    if known and (typed := re.search(r"command '(.*?)'\.", message)):
        pointer = instead_of_command(typed[1])
        return UsageError(pointer) if pointer else UnknownName(typed[1], "command", known)
    if pointer := two_tables(name, words):
        return UsageError(f"{pointer} {lists}")
    if type(error).__name__ == "MissingParameter":
        return UsageError(f"{_name(param)} is missing{_meaning(param)}. {lists}")
    if param is not None and hasattr(param, "opts"):
        return UsageError(_wrong_value(command.callback, param, words))
    if taker := next((key for key, child in (known or {}).items() if _takes(child, option)), None):
        return UsageError(f"{option} goes after the command: `{name} {taker} {option}`.")
    if option and "o such option" in message:
        known_options = [known_option for candidate in command.params for known_option in candidate.opts]
        elsewhere = instead_of_option(option, _typed_value([option], words), known_options)
        suggestion = elsewhere or _suggestion(option, command.params)
        return UsageError(f"There is no option {option}.{suggestion} {lists}")
    if option:
        parameter = next((candidate for candidate in command.params if option in candidate.opts), None)
        if parameter is None or getattr(parameter, "is_flag", False):
            return UsageError(f"{option} takes no value. Write {option} alone.")
        return UsageError(f"{option} lacks its value{_meaning(parameter)}. {lists}")
    if extra := re.search(r"extra argument.*\((.*)\)$", message):
        return UsageError(
            f"{quote(extra[1])} is unexpected: `{name}` takes {_arguments(command.params)}. Put quotes "
            f"around text with spaces, and commas between names. {lists}"
        )
    return UsageError(f"{message} {lists}")


def _takes(command: Any, option: str | None) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def _wrong_value(callback: Any, param: Any, words: Sequence[str]) -> str:
    """Return a message with the values that an option accepts, an example, and the given value."""
    annotation = get_type_hints(callback, include_extras=True).get(param.name, str)
    kind, *notes = get_args(annotation) if hasattr(annotation, "__metadata__") else (annotation,)
    name, typed = _name(param), _typed_value(param.opts, words)
    low, high = (next((getattr(note, end, None) for note in notes), None) for end in ("min", "max"))
    between = "" if low is None or high is None else f" from {low} to {high}"
    must = f"{name} takes {expected_value(kind)}{between}, such as {name} {_EXAMPLES.get(param.name, 5)}"
    return f"{must}." if typed is None else f"{must}; got {quote(typed)}.{_decimal_point_hint(kind, typed)}"


def _decimal_point_hint(kind: Any, typed: str) -> str:
    """Return a hint to write a decimal point instead of a comma."""
    if float in (kind, *get_args(kind)) and re.fullmatch(r"\d+,\d+", typed):
        return f" Write {typed.replace(',', '.')}."
    return ""


def _typed_value(options: Sequence[str], words: Sequence[str]) -> str | None:
    value = None
    for index, word in enumerate(words):
        if word in options:
            value = words[index + 1] if index + 1 < len(words) else None
        elif word.partition("=")[0] in options:
            value = word.partition("=")[2]
    return value


def _suggestion(option: str, params: Sequence[Any]) -> str:
    """Return a question that suggests the options that contain the word, or else the most similar option.

    >>> from types import SimpleNamespace as Option
    >>> there = [Option(opts=["--columns"]), Option(opts=["--suppression-limit"])]
    >>> _suggestion("--colums", there), _suggestion("--limit", there), _suggestion("--xyz", there)
    (' Did you mean --columns?', ' Did you mean --suppression-limit?', '')
    """
    names = [name for parameter in params for name in parameter.opts if name.startswith("--")]
    parts = set(option.strip("-").split("-"))
    close = [name for name in names if parts <= set(name.strip("-").split("-"))]
    most_similar = nearest(option, names)
    close = close or [most_similar] * (most_similar is not None)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def _name(param: Any) -> str:
    """Return an option's longest name, or an argument's name in capitals as in the help."""
    options = [name for name in param.opts if name.startswith("-")]
    return max(options, key=len) if options else str(param.name).upper()


def _meaning(param: Any) -> str:
    help_text = (getattr(param, "help", None) or "").rstrip(".").replace("`", "")
    return f": {help_text[:1].lower()}{help_text[1:]}" if help_text else ""


def _arguments(params: Sequence[Any]) -> str:
    names = [_name(param) for param in params if not any(name.startswith("-") for name in param.opts)]
    return " ".join(names) or "options only"
