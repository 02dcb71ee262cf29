"""A negotiation in the terminal: one wish is changed at a time, and the answer appears at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from shoal.commands.messages import report
from shoal.commands.negotiations import changes, offers, raised_levels, show_negotiation
from shoal.commands.reading import read_limit, typed
from shoal.display import say
from shoal.errors import OutputError, ShoalError, UnknownName, UsageError, meant

_HELP = """\
k 10                 records that look alike, at least
l 3 [COLUMN]         distinct values of a sensitive column among them, at least
limit 5%             records that may be suppressed: a share, or a number
COLUMN 2             the highest level of a column (level COLUMN 2, where its name is a command's)
prefer loss [METRIC] the least loss instead of the least height; prefer height goes back
take 1               adopt a suggestion, by its number or by what it relaxes
undo, reset          the request before, and that of the policy
show                 the request and its answer again
json FILE            write the answer
help, quit"""

Wishes = Mapping[str, Any]


class Prompt:
    """A request that changes, the answers to it, and the way back."""

    def __init__(
        self, profile: Any, wishes: Wishes, data: str, policy: str, read: Callable[[], str] = typed
    ) -> None:
        """Begin with some wishes; `read` gives the next line or raises EOFError."""
        self.profile = profile
        self.first = dict(wishes)
        self.where = (data, policy)
        self.read = read
        self.wishes = dict(wishes)
        self.before: list[dict[str, Any]] = []
        self.answer: Any = None  # none before the request is complete
        self.commands: dict[str, Callable[[str], None]] = {
            "k": lambda text: self.ask(k=_number(text), l=None, sensitive=None),
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
        """Talk until the other side has enough; return the exit code."""
        self.begin()
        while True:
            try:
                line = self.read().strip()
            except (EOFError, KeyboardInterrupt) as end:
                say("")
                return 130 if isinstance(end, KeyboardInterrupt) else 0
            word, _, rest = line.partition(" ")
            if word in ("quit", "exit", "q"):
                return 0
            try:
                if line:
                    self.obey(line, word, rest.strip())
            except ShoalError as error:
                report(error)

    def begin(self) -> None:
        """Say what the profile holds and answer the first request."""
        lattice = self.profile.lattice
        held = f"{len(self.profile.numbers):,} of {lattice.size:,} nodes, {self.profile.records:,} records"
        tops = ", ".join(
            f"{name} 0..{top}" for name, top in zip(lattice.columns, lattice.heights, strict=True)
        )
        say(f"{held}. Levels: {tops}.")
        say("Change one wish at a time; help lists the commands.")
        try:
            self.answer = self.profile.negotiate(**self.wishes)
        except UsageError as error:
            if not self._undecided():
                raise
            report(error)
            say(f"As: l {self.profile.wish.least} {self.profile.sensitive[0]}.")
            return
        self.show()

    def _undecided(self) -> bool:
        """Tell whether the policy asks for l and does not say of which column."""
        wish, several = self.profile.wish, len(self.profile.sensitive) > 1
        told = wish.sensitive or self.wishes.get("sensitive")
        return wish.model == "l" and several and not told

    def obey(self, line: str, word: str, rest: str) -> None:
        """Do what a line says."""
        if word in self.commands:
            self.commands[word](rest)
        elif meant(line.rpartition(" ")[0], self.profile.lattice.columns) in self.profile.lattice.columns:
            self.level(line)
        else:
            name = meant(line, self.profile.lattice.columns)
            name = name if name in self.profile.lattice.columns else word
            if name in self.profile.lattice.columns:
                message = f"{name!r} takes a level, as: {name} 1."
                raise UsageError(message)
            known = [*self.commands, "quit", *self.profile.lattice.columns]
            raise UnknownName(word, "command or column", known)

    def ask(self, **changed: Any) -> None:
        """Change the request and show what became of the answer."""
        self._ask(self.wishes | changed)

    def _ask(self, wishes: dict[str, Any]) -> None:
        answer = self.profile.negotiate(**wishes)  # raises before anything is changed
        self.before.append(self.wishes)
        self._move(wishes, answer)

    def _move(self, wishes: dict[str, Any], answer: Any) -> None:
        told = changes(self.answer, answer) if self.answer else ""
        self.wishes, self.answer = wishes, answer
        self.show()
        if told:
            say(told)

    def show(self) -> None:
        """Show the request with its answer or suggestions."""
        show_negotiation(self._answered(), self.profile, *self.where, talking=True)

    def _answered(self) -> Any:
        return self.answer or self.profile.negotiate(**self.wishes)  # which says what is missing

    def diversity(self, text: str) -> None:
        """Ask for an l, of a column where there are several."""
        number, _, column = text.partition(" ")
        in_use = self.answer.request.sensitive if self.answer else None
        self.ask(k=None, l=_number(number), sensitive=column.strip() or in_use)

    def level(self, text: str) -> None:
        """Allow a column, and those that move with it, some level at most."""
        name, _, level = text.rpartition(" ")
        name = meant(name.strip(), self.profile.lattice.columns)
        self.ask(max_level=self._max_level() | dict.fromkeys(self._together(name), _number(level)))

    def _max_level(self) -> dict[str, Any]:
        return dict(self._answered().request.max_level)

    def _together(self, name: str) -> list[str]:
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
        listed = offers(self._answered())
        if not listed:
            message = "There is no suggestion to take. Ask for something else first, as: k 3."
            raise UsageError(message)
        by_name = {str(number): (kind, offer) for number, (kind, offer) in enumerate(listed, 1)}
        by_name |= {kind: (kind, offer) for kind, offer in reversed(listed)}
        if text not in by_name:
            raise UnknownName(text, "suggestion", by_name)
        kind, offer = by_name[text]
        if kind == "suppression":
            by_height = self._loss_unknown(offer)
            self.ask(suppression_limit=offer.limit, **by_height)
            if by_height:
                say("Now prefers height: this loss is not known where records are suppressed.")
        elif kind == "privacy":
            self.ask(**{offer.model: offer.least})
        else:
            self.ask(max_level=self._max_level() | raised_levels(self.answer.request, offer))

    def _loss_unknown(self, offer: Any) -> dict[str, Any]:
        """Return what a suggestion must change where the loss preferred needs a limit of 0."""
        from shoal.profiling.separable import metric_of

        metric = self.answer.request.metric
        known = not metric or metric_of(metric).separable.given(offer.limit > 0)
        return {} if known else {"prefer": "height", "metric": None}

    def undo(self, _: str) -> None:
        """Go back to the request before."""
        if not self.before:
            message = "There is nothing to undo."
            raise UsageError(message)
        wishes = self.before[-1]
        answer = self.profile.negotiate(**wishes)  # raises before anything is changed
        self.before.pop()
        self._move(wishes, answer)

    def write(self, text: str) -> None:
        """Write the present answer to a new file."""
        if not text:
            message = "json takes the file to write, as: json answer.json."
            raise UsageError(message)
        from shoal.outputs import cannot, write_private

        path = Path(text).expanduser()
        told = json.dumps(self._answered().to_dict(), ensure_ascii=False, indent=2) + "\n"
        try:
            write_private(path, told)
        except FileExistsError:
            message = f"{str(path)!r} exists. Name another file."
            raise OutputError(message) from None
        except OSError as error:
            raise cannot(path, error) from None
        say(f"Wrote {path}.")


def _number(text: str) -> int | str:
    """Read a whole number; what else there is, the library refuses in its own words."""
    try:
        return int(text)
    except ValueError:
        return text
