"""Where to look instead: words that no command takes, though people expect them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_COMMANDS = {
    "report": "`shoal anonymize --report` writes one beside the release.",
    "help": "`shoal --help` lists the commands, and `shoal anonymize --help` what one takes.",
    "version": "`shoal --version` says which shoal this is.",
}
# The model that has an option of this name, with an example of it.
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
    """Say what does what a command of this name would.

    >>> instead_of_command("report")
    'There is no command report: `shoal anonymize --report` writes one beside the release.'
    """
    return f"There is no command {name}: {_COMMANDS[name]}" if name in _COMMANDS else None


def instead_of_option(option: str, given: str | None, there: Collection[str]) -> str:
    """Say where an option's value goes in a command that has others.

    >>> instead_of_option("--k", "10", ["--policy"])
    ' k stands in the policy, under models: k-anonymity: {k: 10}.'
    >>> instead_of_option("--limit", "5%", ["--policy"])
    ' suppression_limit stands in the policy.'
    """
    name = option.strip("-")
    if name in _MODELS and {"--model", "--policy"} & set(there):
        model, example = _MODELS[name]
        value = given if given and re.fullmatch(r"[0-9]+(\.[0-9]+)?", given) else example
        written = f" {name} stands in the policy, under models: {model}: {{{name}: {value}}}."
        alone = f" Or write --model {model}:{name}={value}; models given so replace all of the policy's."
        return written + alone * ("--model" in there)
    if name in _ENTRIES and "--policy" in there and not any(one.endswith(f"-{name}") for one in there):
        return f" {_ENTRIES[name]} stands in the policy."
    return ""


def with_one_dash(words: Sequence[str], there: Collection[str]) -> str | None:
    """Return the first word that is an option but for a second dash.

    >>> with_one_dash(["-policy", "p.yaml"], ["--policy", "-p"]), with_one_dash(["-p", "x"], ["--policy"])
    ('-policy', None)
    """
    names = [word.partition("=")[0] for word in words]
    return next((name for name in names if len(name) > 2 and name[1] != "-" and f"-{name}" in there), None)


def two_tables(name: str, words: Sequence[str]) -> str | None:
    """Say what compares two tables, where compare was given two."""
    after = list(words[1:3])
    several = len(after) == 2 and not any(word.startswith("-") for word in after)
    return _TWO_TABLES if name == "shoal compare" and several else None
