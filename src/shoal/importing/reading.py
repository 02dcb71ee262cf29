"""Reading a project of ARX: each setting becomes an entry of a policy, or a line that says why not."""

from __future__ import annotations

from typing import Any

from shoal.errors import DataError
from shoal.importing.columns import Columns
from shoal.importing.project import DATA, Project, Settings, printable
from shoal.importing.settings import Translation
from shoal.importing.words import Notes
from shoal.policy import Policy


class Reading:
    """A project on its way to a policy."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.notes = Notes()
        self.tell = self.notes.tell
        self.files: dict[str, list[list[str]]] = {}  # hierarchies
        self.version = ""
        self.separator = ";"

    @property
    def has_data(self) -> bool:
        """Whether the project holds its data."""
        return self.project.has(DATA)

    def policy(self) -> Policy:
        """Read everything there is."""
        self.about()
        prefix = self.prefix()
        attributes = self.project.attributes(prefix) or []
        names = [one.name for one in attributes]
        if not names:
            message = f"{str(self.project.path)!r} defines no columns. Load data in ARX and save it again."
            raise DataError(message)
        if len(set(names)) < len(names):
            message = f"{str(self.project.path)!r} defines a column twice. Rename one in ARX and save again."
            raise DataError(message)
        settings = self.project.settings(prefix)
        if settings is None:
            self.tell("config.xml", "the project has none, so that no model is known.", "Add models:.")
            settings = Settings()
        reader = Columns(self.project, self.separator, self.notes)
        columns = {one.name: reader.column(one) for one in attributes}
        self.files = reader.files
        translation = Translation(settings, columns, self.notes)
        data = translation.models() | translation.metric(attributes) | translation.suppression()
        translation.weights(data["metric"])
        translation.types(attributes, data["models"])
        translation.rest(self.project)
        return Policy.load({"columns": columns, **data}).with_files(reader.rows)

    def about(self) -> None:
        """Read which version wrote the project, and how its files separate."""
        about = self.project.xml("metadata.xml")
        if about is None:
            self.tell("metadata.xml", "the project has none.", "It is read as one of ARX 3.9.")
        else:
            self.version = printable(about.findtext("version", "").strip(), 20)
            vocabulary = about.findtext("vocabulary", "").strip()
            if vocabulary not in ("1.0", "2.0"):
                reason = f"vocabulary {printable(vocabulary, 20)!r} is not known; that of ARX 3.9 is 2.0."
                self.tell("metadata.xml", reason, "What is alike is read.")
        project = self.project.xml("project.xml")
        separator = "" if project is None else project.findtext("separator", "")
        self.separator = separator if len(separator) == 1 and separator not in '"\r\n' else ";"

    def prefix(self) -> str:
        """Choose between the settings at hand and those of the last output."""
        if not self.project.has("input/definition.xml"):
            if self.project.has("output/definition.xml"):
                self.tell("input/", "the project has no settings at hand.", "Those of its output are read.")
                return "output/"
            message = f"{str(self.project.path)!r} is no project of ARX: it has no input/definition.xml."
            raise DataError(message)
        for part in ("settings", "attributes"):
            read = getattr(self.project, part)
            there = read("output/")
            if there is not None and _apart(there, "output/") != _apart(read("input/"), "input/"):
                reason = "the project's last output was made with other settings than those at hand."
                self.tell(f"the {part} of the last output", reason, "Those at hand (input/) are read.")
        return "input/"


def _apart(found: Any, prefix: str) -> str:
    """Write what was read without the place it was read from."""
    return repr(found).replace(repr(prefix)[:-1], "'")
