"""A negotiation in the terminal: output of answers, and a prompt that changes one setting at a time."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from shoal.cli.messages import report
from shoal.cli.parsing import read_limit, read_line
from shoal.document.document import Fact
from shoal.document.terminal import say, show
from shoal.errors import OutputError, ShoalError, UnknownName, UsageError
from shoal.wording import match_trimmed

DATA, POLICY = "DATA", "POLICY"  # placeholders in commands if a file name is unknown


def show_negotiation(negotiation: Any, data: str, policy: str, *, interactive: bool = False) -> None:
    """Show the answer or the suggestions, and the command that makes a release with one of them."""
    document = negotiation.document()
    suggestions = negotiation.suggestions
    if negotiation.exact:
        command = command_line(negotiation.exact, data, policy)
        document = replace(document, facts=[*document.facts, Fact("next", "next", command)])
    show(document)
    if not negotiation.settled and not negotiation.exact and negotiation.profile.problem is None:
        say("With --data and --policy the node at the highest levels allowed is counted too.")
    if suggestions and interactive:
        say("Type take 1, or another number, to adopt one.")
    elif suggestions:
        say(f"To use one: {_command(data, policy)} NODE, where NODE is")
        for number, (_, offer) in enumerate(suggestions, 1):
            say(f"{number}  {shlex.quote(_node(offer))}")
    if not interactive and (negotiation.exact or suggestions) and {data, policy} & {DATA, POLICY}:
        say("DATA and POLICY are those of the profile; --data and --policy fill in their names.")


def command_line(offer: Any, data: str, policy: str) -> str:
    """Return the command that releases a table at an offer's node."""
    return f"{_command(data, policy)} {shlex.quote(_node(offer))}"


def _command(data: str, policy: str) -> str:
    return shlex.join(["shoal", "anonymize", data, "--policy", policy, "--output", "OUT", "--node"])


def _node(offer: Any) -> str:
    # With levels alone, the other settings come from the policy file, which may require less privacy than the
    # offer.
    values = offer.to_dict()
    names = ("node", "k", "l", "diversity", "c", "limit", "share", "sensitive")
    return json.dumps({name: values[name] for name in names if name in values}, ensure_ascii=False)


def changes(before: Any, after: Any) -> str:
    """Return a sentence about how the answer changed."""
    if before.exact is None or after.exact is None:
        old, new = (_briefly(answer.exact) if answer.exact else "none" for answer in (before, after))
        return f"Changed: {old} -> {new}." if old != new else "There is still no answer."
    old, new = before.exact, after.exact
    pairs = [(name, old.node[name], level) for name, level in new.node.items()]
    pairs += [("height", old.height, new.height), ("suppressed", old.suppressed, new.suppressed)]
    if old.loss is not None and new.loss is not None:
        pairs.append(("loss", round(old.loss, 6), round(new.loss, 6)))
    moved = [f"{name} {former:,} -> {latter:,}" for name, former, latter in pairs if former != latter]
    return f"Changed: {', '.join(moved)}." if moved else "The answer is the same."


def _briefly(offer: Any) -> str:
    return f"{_levels(offer.node)} (height {offer.height}, {offer.suppressed:,} suppressed)"


def _levels(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in levels.items())


_HELP = """\
k 10                 the least number of records that look alike
l 3 [COLUMN]         the least number of distinct values of a sensitive column among them
k 10 l 3 [COLUMN]    both together
limit 5%             how many records may be suppressed: a share, or a number
COLUMN 2             the highest level of a column (level COLUMN 2 if it is named like a command)
prefer loss [METRIC] the least loss instead of the least height; prefer height goes back
take 1               adopt a suggestion, by its number or by what it relaxes
undo, reset          go back to the previous request, or to that of the policy
show                 show the request and its answer again
json FILE            write the answer
help, quit"""

_Settings = Mapping[str, Any]


class Prompt:
    """A request that is changed step by step, its answers, and an undo history."""

    def __init__(
        self, profile: Any, settings: _Settings, data: str, policy: str, read: Callable[[], str] = read_line
    ) -> None:
        """Begin with some settings; `read` returns the next line or raises EOFError."""
        self.profile = profile
        self.first = dict(settings)
        self.where = (data, policy)
        self.read = read
        self.settings = dict(settings)
        self.before: list[dict[str, Any]] = []
        self.answer: Any = None  # None until the request is complete
        self.commands: dict[str, Callable[[str], None]] = {
            "k": self.anonymity,
            "l": self.diversity,
            "limit": lambda text: self.ask(suppression_limit=read_limit(text)),
            "level": self.level,
            "prefer": self.prefer,
            "take": self.take,
            "undo": self.undo,
            "reset": lambda _: self._ask(self.first),
            "show": lambda _: self.show(),
            "json": self.write,
            "help": lambda _: say(_HELP),
        }

    def run(self) -> int:
        """Read and execute commands until the user quits; return the exit code."""
        self.begin()
        while True:
            try:
                line = self.read().strip()
            except (EOFError, KeyboardInterrupt) as end:
                say("")
                return 130 if isinstance(end, KeyboardInterrupt) else 0
            word, _, arguments = line.partition(" ")
            if word in ("quit", "exit", "q"):
                return 0
            try:
                if line:
                    self.execute(line, word, arguments.strip())
            except ShoalError as error:
                report(error)

    def begin(self) -> None:
        """Describe the profile and answer the first request."""
        lattice = self.profile.lattice
        size = f"{len(self.profile.numbers):,} of {lattice.size:,} nodes, {self.profile.records:,} records"
        tops = ", ".join(
            f"{name} 0..{top}" for name, top in zip(lattice.columns, lattice.heights, strict=True)
        )
        say(f"{size}. Levels: {tops}.")
        say("Change one setting at a time; help lists the commands.")
        try:
            self.answer = self.profile.negotiate(**self.settings)
        except UsageError as error:
            if not self._lacks_column_of_l():
                raise
            report(error)
            say(f"As: l {self.profile.defaults.least} {self.profile.sensitive[0]}.")
            return
        self.show()

    def _lacks_column_of_l(self) -> bool:
        """Return whether the policy asks for l without naming the column."""
        defaults, has_several = self.profile.defaults, len(self.profile.sensitive) > 1
        column = defaults.sensitive or self.settings.get("sensitive")
        return defaults.model == "l" and has_several and not column

    def execute(self, line: str, word: str, arguments: str) -> None:
        """Execute a line."""
        if word in self.commands:
            self.commands[word](arguments)
        elif (
            match_trimmed(line.rpartition(" ")[0], self.profile.lattice.columns)
            in self.profile.lattice.columns
        ):
            self.level(line)
        else:
            name = match_trimmed(line, self.profile.lattice.columns)
            name = name if name in self.profile.lattice.columns else word
            if name in self.profile.lattice.columns:
                raise UsageError(f"{name!r} takes a level, such as: {name} 1.")
            known = [*self.commands, "quit", *self.profile.lattice.columns]
            raise UnknownName(word, "command or column", known)

    def ask(self, **changed: Any) -> None:
        """Change the request, and show the new answer and how it changed."""
        self._ask(self.settings | changed)

    def _ask(self, settings: dict[str, Any]) -> None:
        answer = self.profile.negotiate(**settings)  # raises before anything is changed
        self.before.append(self.settings)
        self._adopt(settings, answer)

    def _adopt(self, settings: dict[str, Any], answer: Any) -> None:
        summary = changes(self.answer, answer) if self.answer else ""
        self.settings, self.answer = settings, answer
        self.show()
        if summary:
            say(summary)

    def show(self) -> None:
        """Show the request with its answer or suggestions."""
        show_negotiation(self._answered(), *self.where, interactive=True)

    def _answered(self) -> Any:
        return self.answer or self.profile.negotiate(**self.settings)  # raises if a setting is missing

    def anonymity(self, text: str) -> None:
        """Request a k, alone or with an l."""
        number, _, remaining = text.partition(" ")
        word, _, remaining = remaining.strip().partition(" ")
        if word == "l":
            self.diversity(remaining.strip(), k=_number(number))
        else:
            self.ask(k=_number(text), l=None, sensitive=None, diversity=None, c=None)

    def diversity(self, text: str, k: float | str | None = None) -> None:
        """Request an l, for a column if several are sensitive. The kind of l stays the same."""
        number, _, column = text.partition(" ")
        before = self.answer.request.privacy if self.answer else None
        kind: dict[str, Any] = {"diversity": None, "c": None}
        if before is not None and before.l is not None:
            kind = {"diversity": before.diversity, "c": before.c}
        sensitive = column.strip() or (before.sensitive if before else None)
        self.ask(k=k, l=_number(number), sensitive=sensitive, **kind)

    def level(self, text: str) -> None:
        """Set the highest level of a column, and of the columns that share its level."""
        name, _, level = text.rpartition(" ")
        name = match_trimmed(name.strip(), self.profile.lattice.columns)
        self.ask(
            max_level=self._max_level() | dict.fromkeys(self._columns_at_one_level(name), _number(level))
        )

    def _max_level(self) -> dict[str, Any]:
        return dict(self._answered().request.max_level)

    def _columns_at_one_level(self, name: str) -> list[str]:
        lattice = self.profile.lattice
        for axis in lattice.axes:
            names = [lattice.columns[column] for column in axis]
            if name in names:
                return names
        return [name]

    def prefer(self, text: str) -> None:
        """Choose by height or by a loss."""
        what, _, metric = text.partition(" ")
        self.ask(prefer=what, metric=metric.strip() or None)

    def take(self, text: str) -> None:
        """Adopt a suggestion."""
        suggestions = self._answered().suggestions
        if not suggestions:
            raise UsageError("There is no suggestion to take. Ask for something else first, such as: k 3.")
        by_name = {str(number): (kind, offer) for number, (kind, offer) in enumerate(suggestions, 1)}
        by_name |= {kind: (kind, offer) for kind, offer in reversed(suggestions)}
        if text not in by_name:
            raise UnknownName(text, "suggestion", by_name)
        kind, offer = by_name[text]
        if kind == "suppression":
            by_height = self._loss_unknown(offer)
            self.ask(suppression_limit=offer.limit, **by_height)
            if by_height:
                say("Now prefers height: this loss is not known if records are suppressed.")
        elif kind in ("privacy", "k", "l"):
            self.ask(**asdict(offer.privacy))
        else:
            from shoal.workflow.profile.negotiate import raised_levels

            self.ask(max_level=self._max_level() | raised_levels(self.answer.request, offer))

    def _loss_unknown(self, offer: Any) -> dict[str, Any]:
        """Return settings that replace the metric, if its loss is known only for a suppression limit of 0."""
        from shoal.workflow.profile.source import metric_of

        metric = self.answer.request.metric
        known = not metric or metric_of(metric).separable.given(offer.limit > 0)
        return {} if known else {"prefer": "height", "metric": None}

    def undo(self, _: str) -> None:
        """Go back to the previous request."""
        if not self.before:
            raise UsageError("There is nothing to undo.")
        settings = self.before[-1]
        answer = self.profile.negotiate(**settings)  # raises before anything is changed
        self.before.pop()
        self._adopt(settings, answer)

    def write(self, text: str) -> None:
        """Write the current answer to a new file."""
        if not text:
            raise UsageError("json takes the file to write, such as: json answer.json.")
        from shoal.files.outputs import cannot_write, write_private

        path = Path(text).expanduser()
        content = json.dumps(self._answered().to_dict(), ensure_ascii=False, indent=2) + "\n"
        try:
            write_private(path, content)
        except FileExistsError:
            raise OutputError(f"{str(path)!r} exists. Name another file.") from None
        except OSError as error:
            raise cannot_write(path, error) from None
        say(f"Wrote {path}.")


def _number(text: str) -> float | str:
    """Read a number. Return other text unchanged: the library refuses it with a message."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
