"""Step 5, release: the policy in words, the run, its verification, and the files."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio.to_thread
from nicegui.elements.mixins.text_element import TextElement

from shoal.catalogue import catalogue
from shoal.errors import ShoalError, so_many
from shoal.policy import named
from shoal.release import Release
from shoal.releasing.notes import SAFER
from shoal.reporting.words import percent
from shoal.risk import risk_of
from shoal.spreadsheet import is_text_table
from shoal.verify import ModelCheck
from shoal.web import look
from shoal.web.desk import FORMATS
from shoal.web.risk_card import show_risk
from shoal.web.room import Room, Worker

_SAFER = "Tick 'Safe for spreadsheets' below before you download it."
_FILES = {
    "release": ("Release", "the table to give away"),
    "codebook": ("Codebook", "what each label means; may go with the release"),
    "policy": ("Policy", "what was asked for, to run again"),
    "report": ("Report", "what was done and why it is safe, one HTML page; keep it private"),
    "recipe": ("Recipe", "how values were recoded; keep it private"),
    "audit": ("Audit", "what was done, step by step; keep it private"),
    "sensitive-table": ("Sensitive table", "the sensitive values, by group"),
}


def show(room: Room) -> None:
    """Show the step."""
    _Release(room)


class _Release:
    """The plan on the left, what came of it on the right."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.said: dict[str, Any] = room.seat.said.setdefault(
            "release", {"form": "csv", "safe": False, "semicolons": False}
        )
        desk = room.desk
        with look.box("split halves", style="align-items: start"):
            with look.card("What the release will do"):
                with look.box("tight", "ul", style="padding-left: 18px; gap: 7px"):
                    for sentence in desk.words():
                        look.tag("li", sentence)
                self.negotiated()
                if desk.node is not None:
                    look.button(
                        "Let the search choose the levels",
                        self.forget,
                        "small",
                        style="align-self: flex-start",
                    )
                self.wishes()
                self.policy()
                with look.box("line", style="align-items: flex-end"):
                    with look.box("", style="width: 130px"):
                        look.choice(
                            "Format", FORMATS, self.said["form"], lambda form: self.said.update(form=form)
                        )
                    look.button("Release", self.start, "primary")
                self.worker = Worker(room, "release", lambda _: room.refresh())
            with look.box("stack"):
                found = desk.released
                if found is None:
                    with look.box("card empty"):
                        look.tag("p", "Nothing is released yet.", "muted")
                else:
                    self.outcome(found)

    def negotiated(self) -> None:
        """Say what was negotiated and not taken, and where to take it."""
        told = self.room.desk.untaken() if self.room.seat.dials else None
        if told:
            with look.box("told warn tight", role="status", data_part="untaken"):
                look.tag("span", f"{told} To release what you negotiated, press 'Take this' there.")
                look.button(
                    "Go to Negotiate",
                    lambda: self.room.go("negotiate"),
                    "small",
                    style="align-self: flex-start",
                )

    def wishes(self) -> None:
        """Offer what else a policy says."""
        wishes, known = self.room.desk.wishes(), catalogue()
        algorithms = ["auto", *known["algorithms"]]
        gone = {"drop": "left out", "mask": "kept, but blanked"}
        with look.box("split three-up"):
            for name, label, options in (
                ("algorithm", "Algorithm", {one: one for one in algorithms}),
                ("metric", "Loss by", {one: one for one in known["metrics"]}),
                ("suppressed", "Suppressed records are", gone),
            ):
                chosen = wishes[name] if isinstance(wishes[name], str) else named(wishes[name])[0]
                look.choice(label, options, chosen, partial(self.wish, name))
        self.unwished = look.no_fault()

    def wish(self, name: str, value: str) -> None:
        """Take one of them, or say why not."""
        try:
            self.room.desk.wish(**{name: value})
        except ShoalError as error:
            look.fault(self.unwished, str(error))
            return
        self.room.refresh()

    def policy(self) -> None:
        """Show the policy as a file that can be changed."""
        text = {"now": self.room.desk.policy_text()}

        async def adopt() -> None:
            try:
                await anyio.to_thread.run_sync(self.room.desk.adopt_yaml, text["now"])
            except ShoalError as error:
                look.fault(wrong, str(error), field)
                return
            self.room.seat.dials.clear()
            self.room.refresh()

        with look.box("", "details"):
            look.tag("summary", "The policy as a file, with all models and options")
            with look.box("tight", style="gap: 8px; padding-top: 8px"):
                field, wrong = look.entry(
                    "Policy", text["now"], lambda typed: text.update(now=typed), area=True, rows=16
                )
                look.button("Use this policy", adopt, "small", style="align-self: flex-start")

    def start(self) -> None:
        """Release in the format chosen."""
        form = self.said["form"]
        self.worker.start(lambda tell: self.room.desk.release(form, progress=tell))

    def forget(self) -> None:
        """Leave the node to the search."""
        self.room.desk.choose_node(None)
        self.room.refresh()

    def outcome(self, found: Release) -> None:
        """Show the verification and the files."""
        proof = found.verification
        with look.card("Verification", "The release was read back and counted afresh."):
            if proof.verified:
                look.told("\u2713 Verified: every model holds in the release.", "good")
            elif proof.reasons:
                look.told("Not verified: " + " ".join(proof.reasons), "bad")
            else:
                look.told("Not fully verified: " + " ".join(proof.unchecked), "warn")
            for note in found.notes:
                look.told(f"Note: {note.replace(SAFER, _SAFER)}", "warn")
            rows = [(_model(check), _passed(check.passed)) for check in proof.models]
            look.table(["Model", ""], rows)
            with look.box("cards three"):
                look.tile(f"{proof.records:,}", "records released", f"of {found.records:,}")
                share = percent(found.suppressed / found.records)
                look.tile(f"{found.suppressed:,}", "records suppressed", share)
                look.tile(f"{proof.smallest_class:,}", "smallest class", so_many(proof.classes, "class"))
            levels = found.levels
            if levels:
                by = "as chosen" if self.room.desk.node else f"found by {found.algorithm}"
                told = ", ".join(f"{name} {level}" for name, level in levels.items())
                look.tag("p", f"Levels: {told}; {by}.", "muted small")
        with look.card("Files"):
            self.files()
        if not found.apart:
            with look.card("Risk", "How likely a record is found, in the terms of regulators."):
                show_risk(risk_of(found))

    def files(self) -> None:
        """Offer the downloads."""
        files = self.room.desk.files()
        safe = "release" in files and is_text_table(files["release"])
        self.links: dict[str, TextElement] = {}  # of text tables
        with look.box("tight", style="gap: 8px"):
            for name in (name for name in _FILES if name in files):
                title, about = _FILES[name]
                with look.box("line", style="flex-wrap: nowrap"):
                    with look.box("", style="width: 130px; flex: none"):
                        link = look.tag(
                            "a",
                            title,
                            "btn small primary" if name == "release" else "btn small",
                            href=self.address(name, is_text_table(files[name])),
                            download="",
                            data_file=name,
                        )
                    if is_text_table(files[name]):
                        self.links[name] = link
                    look.tag("span", about, "muted small")
        if safe:
            look.check("Safe for spreadsheets", self.said["safe"], partial(self.download, "safe"))
            look.tag(
                "p",
                "Cells that begin with =, +, - or @ get an apostrophe, so that no program runs them. "
                "Negative numbers become text.",
                "muted small",
            )
        if safe and files["release"].suffix == ".csv":
            part = partial(self.download, "semicolons")
            look.check("Semicolons and a byte order mark", self.said["semicolons"], part)
            look.tag("p", "As Excel in much of Europe expects of a CSV.", "muted small")

    def download(self, wish: str, on: bool) -> None:
        """Download text tables as wished, or as they are; the boxes stay, as one may just be ticked."""
        self.said[wish] = on
        for name, link in self.links.items():
            link._props["href"] = self.address(name, text=True)
            link.update()

    def address(self, name: str, text: bool) -> str:
        """Return where a file is downloaded."""
        wished = [f"{wish}=true" for wish in ("semicolons", "safe") if self.said[wish] and text]
        asked = f"?{'&'.join(wished)}" if wished else ""
        return f"/api/desks/{self.room.seat.desk}/files/{name}{asked}"


def _model(check: ModelCheck) -> str:
    return check.model + "".join(f", {option} {value}" for option, value in check.options.items())


def _passed(passed: bool | None) -> str:
    return "not checked" if passed is None else "holds" if passed else "broken"
