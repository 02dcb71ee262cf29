"""The plan: a table, and what its custodian has said of it so far, as far as a policy and short of one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from shoal.errors import PolicyError, ShoalError, UnknownName
from shoal.inspection import Inspection
from shoal.policies.column import Column
from shoal.policies.presets import PRESETS, preset_notes, preset_text
from shoal.policy import Policy, named
from shoal.sample import bundled
from shoal.web.answers import PresetAnswer
from shoal.web.columns import NO_COLUMNS, NO_TABLE, Columns, Progress
from shoal.web.refusals import NotReady, Refused, beside

ENTRIES = ("models", "suppression_limit", "metric", "algorithm", "suppressed", "label", "same_level")


class Plan(Columns):
    """Columns and wishes, and the policy that they make."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._entries: dict[str, Any] = {}
        self._populations: set[str] = set()  # files that the policy given with the command names
        self._followed: tuple[int, str | None] = (0, None)  # which version follows which preset

    def _forget(self) -> None:
        super()._forget()
        self._entries, self._populations = {}, set()

    def open_sample(self, progress: Progress | None = None) -> Inspection:
        """Take the bundled sample, with its policy."""
        data, policy = bundled(self.folder / "sample", force=True)
        found = self.open(data, "admissions.csv", progress)
        self.adopt(Policy.load(policy))
        self.fit()
        return found

    def wishes(self) -> dict[str, Any]:
        """Return the policy's entries besides its columns."""
        sensitive = bool(self.inspection and self.of_role("sensitive"))
        models: list[Any] = [{"k-anonymity": {"k": 5}}]
        models += [{"distinct-l-diversity": {"l": 2}}] if sensitive else []
        usual = {
            "models": models,
            "suppression_limit": "5%",
            "metric": "non-uniform-entropy",
            "algorithm": "auto",
            "suppressed": "drop",
            "label": None,
            "same_level": [],
        }
        return usual | self._entries

    def wish(self, **entries: Any) -> None:
        """Change some of the policy's entries; None is the usual. All are taken, or none."""
        for entry, value in entries.items():
            if entry not in ENTRIES:
                raise UnknownName(entry, "wish", ENTRIES)
            with beside(entry):
                _ = self._made({entry: value})
        _ = self._made(entries)
        with self.lock:
            self._entries = self._entries | {name: v for name, v in entries.items() if v is not None}
            for name in (name for name, value in entries.items() if value is None):
                self._entries.pop(name, None)
            self._version += 1

    def adopt(self, policy: Policy | str | Path) -> None:
        """Take a whole policy; its files are read now. It must name the table's own columns."""
        loaded = Policy.load(policy)
        population = loaded.population
        absent = [name for name in self.opened.names if name not in loaded.columns]
        strange = [name for name in loaded.columns if name not in self.opened.names]
        if absent or strange:
            told = f"lacks {', '.join(map(repr, absent))}" if absent else f"names {strange[0]!r} besides"
            message = f"The policy is not of this table: it {told}. Name each of its columns with a role."
            raise PolicyError(message)
        files = {name: [list(row) for row in _rows(loaded, name)] for name in loaded.files}
        written = loaded.model_dump(mode="json", exclude_unset=True)
        with self.lock:
            for name, column in written.pop("columns").items():
                usual = {"hierarchy": self._columns[name].get("hierarchy", "flat")}
                self._columns[name] = usual | column
            self._entries = {name: value for name, value in written.items() if name in ENTRIES}
            if population is not None:
                place = {"population": str(population.resolve())}
                models = [named(model) for model in loaded.models]
                self._entries["models"] = [{n: o | place if "population" in o else o} for n, o in models]
                self._populations.add(place["population"])
            self._chosen = {name for name, column in loaded.columns.items() if column.hierarchy is not None}
            self._file_notes = {name: n for name, n in self._file_notes.items() if self._same(name, files)}
            self._files = files
            self._version += 1

    def adopt_yaml(self, text: str) -> None:
        """Take a policy from its text; hierarchies in files must have been uploaded before."""
        path = self.folder / f"policy-{secrets.token_hex(4)}.yaml"
        try:
            path.write_text(text, encoding="utf-8", errors="replace")
            try:
                loaded = Policy.load(path)
            except PolicyError as error:
                raise PolicyError(str(error).replace(f" {str(path)!r}", "")) from None
        finally:
            path.unlink(missing_ok=True)
        self._check_models(loaded.models)
        for name in loaded.files:
            if name not in self._files:
                message = f"Hierarchy of {name!r}: its file is not here. Upload it first."
                raise PolicyError(message)
        self.adopt(loaded.with_files(self._files))
        self.fit()

    def follow(self, preset: str | None) -> None:
        """Begin anew with the policy that a published rule makes of the columns; None: what they suggest."""
        with beside("preset"):
            text = preset_text(preset, self.opened.columns)
        with self.lock:
            self.adopt(Policy.load(yaml.safe_load(text)))
            self._followed = (self._version, preset)
        self.fit()

    @property
    def preset(self) -> str | None:
        """The published rule that was followed, as long as nothing was changed since."""
        version, preset = self._followed
        return preset if version == self._version else None

    def policy(self) -> Policy:
        """Return the policy that all this makes; refused where something is missing."""
        missing = self.missing()
        if missing:
            raise NotReady(missing)
        return self._once("policy", lambda: self._made({}))

    def policy_text(self) -> str:
        """Return the policy as YAML."""
        return yaml.safe_dump(self.policy().written(), sort_keys=False, allow_unicode=True)

    def choose_settings(self, column: str, **settings: Any) -> None:
        """Set levels, weight and form of a quasi-identifier; the lowest level is not above the highest."""
        both = self.settings(column) | settings
        low, high = both.get("min_level"), both.get("max_level")
        if low is not None and high is not None and low > high:
            message = (
                f"min_level {low} of {column!r} is above its max_level {high}. Lower it, or raise max_level."
            )
            raise Refused(message, "min_level" if "min_level" in settings else "max_level")
        super().choose_settings(column, **settings)

    def fit(self, column: str | None = None) -> None:
        """Try a column's hierarchy, or all quasi-identifiers', here and now, so that no page waits for it."""
        if column is not None:
            self._fit(column)
            return
        for name in self.quasi_identifiers if self.inspection else ():
            self._fit(name)  # without the lock: meanwhile others may look
        self.missing()

    def notes(self) -> list[str]:
        """Say what is doubtful about the columns, in the roles that they have now."""
        roles = {name: column["role"] for name, column in self._columns.items()}
        return preset_notes(self.preset, self.opened.columns, roles)

    def missing(self) -> str | None:
        """Say what is missing for a policy, in words."""
        return self._once("missing", self._missing)

    def _missing(self) -> str | None:
        if self.inspection is None:
            return NO_TABLE
        if not self.quasi_identifiers:
            return NO_COLUMNS
        for name in self.quasi_identifiers:
            problem = self._fit(name).problem
            if problem:
                return problem
        try:
            _ = self._made({})
        except ShoalError as error:
            return str(error)
        return None

    def _same(self, name: str, files: Mapping[str, Any]) -> bool:
        """Tell whether a hierarchy's file is the one that was uploaded."""
        return files.get(name) == self._files.get(name)

    # What results depend on.

    def _about_columns(self) -> object:
        return (self.revision, self.quasi_identifiers) if self.inspection else None

    def _about_lattice(self) -> object:
        return self._once("about lattice", self._of_lattice)

    def _of_lattice(self) -> object:
        if self.inspection is None or self.missing():
            return None
        made = self.policy()
        parts = [(made.columns[name].hierarchy, made.columns[name].weight) for name in self.quasi_identifiers]
        files = {name: self._files.get(name) for name in self.quasi_identifiers}
        _, options = named(made.metric)
        about = (self.quasi_identifiers, parts, files, self.of_role("sensitive"), made.same_level)
        return (self.revision, json.dumps(about, default=str), json.dumps([made.metric] if options else []))

    def _about_policy(self) -> object:
        return self._once("about policy", self._of_policy)

    def _of_policy(self) -> object:
        if self.inspection is None or self.missing():
            return None
        return (self.revision, self.policy().to_yaml(), json.dumps(self._files))

    # How it is written.

    def _made(self, changes: Mapping[str, Any]) -> Policy:
        """Make the policy with some entries changed."""
        changed = self.wishes() | {name: value for name, value in changes.items() if value is not None}
        entries = {name: value for name, value in changed.items() if value is not None}
        if "models" in entries:
            self._check_models(entries["models"])
        quasi = self.quasi_identifiers
        groups = [[name for name in group if name in quasi] for group in _lists(entries.get("same_level"))]
        entries["same_level"] = [group for group in groups if len(group) > 1]
        columns = {name: self._written(name) for name in self._columns}
        return Policy.load({"columns": columns, **entries}).with_files(self._files)

    def _written(self, name: str) -> dict[str, Any]:
        """Write a column's entry with what its role has."""
        column = self._columns[name]
        if column["role"] == "quasi-identifier":
            return {entry: value for entry, value in column.items() if entry in Column.model_fields}
        if column["role"] == "sensitive" and name in self._chosen:  # a model may measure along it
            return {"role": "sensitive", "hierarchy": column["hierarchy"]}
        return {"role": column["role"]}

    def _check_models(self, models: Any) -> None:
        """Refuse a population, which is a file, unless it came with the command."""
        if _populations(models) - self._populations:
            message = "A population is a file and can only be named in the policy that shoal studio is given."
            raise Refused(message, "models")


def published() -> list[PresetAnswer]:
    """Tell of each published rule what it does."""
    return [PresetAnswer(name=name, about=make.__doc__ or "") for name, make in PRESETS.items()]


def _rows(policy: Policy, name: str) -> Sequence[Sequence[str]]:
    rows: Sequence[Sequence[str]] = getattr(policy.builder(name), "rows", ())
    return rows


def _lists(groups: Any) -> list[list[Any]]:
    """Take the groups of columns that share their level; what is no list of lists is refused."""
    if groups is None:
        return []
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        message = "same_level is a list of groups of columns, as [[admitted, discharged]]."
        raise Refused(message, "same_level")
    return groups


def _populations(models: Any) -> set[str]:
    found = set()
    for model in models if isinstance(models, list) else ():
        for options in model.values() if isinstance(model, Mapping) else ():
            if isinstance(options, Mapping) and options.get("population") is not None:
                found.add(str(options["population"]))
    return found
