"""The draft of a policy: the columns of a table and the settings that apply to all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from shoal.columns.guesses import person_key_of
from shoal.columns.presets import FIRST_METRIC, PRESETS, preset_notes, preset_text
from shoal.core.progress import Progress
from shoal.errors import PolicyError, ShoalError, UnknownName
from shoal.files.yaml import load_yaml
from shoal.policy.policy import Column, Policy, named
from shoal.web.errors import NotReady, Refused, error_field
from shoal.web.workspace.table import NO_COLUMNS, NO_TABLE, Decisions, WorkspaceTable

T = TypeVar("T")
SETTINGS = (
    "models", "suppression_limit", "metric", "algorithm", "local", "suppressed", "label", "same_level",
    "population_size", "sampling_share",
)  # fmt: skip


@dataclass(frozen=True)
class CachedResult(Generic[T]):
    """A result and the key of the state that it was computed from."""

    key: object = None
    result: T | None = None

    def get(self, key: object) -> T | None:
        """Return the result if it was computed from the state with this key, else None."""
        return self.result if self.result is not None and self.key == key else None


@dataclass(frozen=True)
class Snapshot:
    """The state of a draft at one time, which can be restored."""

    table: Decisions
    settings: Mapping[str, Any]
    populations: frozenset[str]
    preset: str | None = None
    suggested: bool = False


def raise_if_cancelled(progress: Progress | None) -> None:
    """Raise an exception if the job was cancelled. Call this before a result is stored."""
    if progress:
        progress("keep", 0, None)


class PolicyDraft:
    """A table and settings, from which a policy is built."""

    def __init__(self, table: WorkspaceTable) -> None:
        self.table = table
        self._settings: dict[str, Any] = {}
        self._populations: set[str] = set()  # files named by the policy given on the command line
        self._followed: tuple[int, str | None] = (0, None)  # a version of the draft, and its preset
        self._suggested = 0  # the version that has the suggested roles and hierarchies

    def reset(self) -> None:
        """Restore the initial settings; the lock must be held."""
        self._settings, self._populations = {"metric": FIRST_METRIC}, set()
        self._suggested = self.table.changes.version

    @property
    def is_suggested(self) -> bool:
        """Whether nothing has changed since the table was opened."""
        return self._suggested == self.table.changes.version

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the draft; the lock must be held."""
        return Snapshot(
            self.table.decisions,
            dict(self._settings),
            frozenset(self._populations),
            self.preset,
            self.is_suggested,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the draft from a snapshot about the same table; the lock must be held."""
        self.table.decide(snapshot.table)
        self._settings, self._populations = dict(snapshot.settings), set(snapshot.populations)
        self._followed = (self.table.changes.version, snapshot.preset)
        if snapshot.suggested:
            self._suggested = self.table.changes.version

    def settings(self) -> dict[str, Any]:
        """Return all entries of the policy except its columns."""
        return self._defaults() | self._settings

    def _defaults(self) -> dict[str, Any]:
        sensitive = bool(self.table.inspection and self.table.with_role("sensitive"))
        models: list[Any] = [{"k-anonymity": {"k": 5, **self._unit()}}]
        models += [{"distinct-l-diversity": {"l": 2}}] if sensitive else []
        return {
            "models": models,
            "suppression_limit": "5%",
            "metric": "non-uniform-entropy",
            "algorithm": "auto",
            "local": False,
            "suppressed": "drop",
            "label": None,
            "same_level": [],
            "population_size": None,
            "sampling_share": None,
        }

    def _unit(self) -> dict[str, str]:
        """Return the option `unit` of k-anonymity if a person may have several rows, else nothing."""
        if self.table.inspection is None:
            return {}
        key = person_key_of(self.table.inspection.columns, self.table.roles)
        return {"unit": key.column} if key else {}

    def change(self, **settings: Any) -> None:
        """Change some settings. If one is invalid, none is changed. None restores the default."""
        for name in settings:
            if name not in SETTINGS:
                raise UnknownName(name, "setting", SETTINGS)
        self._check_change(settings)
        with self.table.changes.lock:
            self._settings = self._settings | {n: value for n, value in settings.items() if value is not None}
            for name in (name for name, value in settings.items() if value is None):
                self._settings.pop(name, None)
            self.table.changes.add()

    def _check_change(self, settings: Mapping[str, Any]) -> None:
        """Build the policy to check changed settings. An error names the setting that caused it."""
        try:
            _ = self._build(settings)
        except ShoalError as error:
            if error.field in SETTINGS:
                raise
            for name, value in settings.items():
                with _setting_error(name):
                    _ = self._build({name: value})
            error.field = next(iter(settings))
            raise

    def adopt(self, policy: Policy | str | Path) -> None:
        """Replace the draft with a policy about the columns of the table. The policy's files are read now."""
        loaded = Policy.load(policy)
        population = loaded.population
        names = self.table.loaded.names
        missing = [name for name in names if name not in loaded.columns]
        unexpected = [name for name in loaded.columns if name not in names]
        if missing or unexpected:
            problem = f"lacks {', '.join(map(repr, missing))}" if missing else f"also names {unexpected[0]!r}"
            raise PolicyError(
                f"The policy is not for this table: it {problem}. Name each of its columns with a role."
            )
        written = loaded.model_dump(mode="json", exclude_unset=True)
        with self.table.changes.lock:
            self.table.adopt(loaded, written.pop("columns"))
            self._settings = {name: value for name, value in written.items() if name in SETTINGS}
            if population is not None:
                path = {"population": str(population.resolve())}
                models = [named(model) for model in loaded.models]
                self._settings["models"] = [{n: o | path if "population" in o else o} for n, o in models]
                self._populations.add(path["population"])
            self.table.changes.add()

    def adopt_yaml(self, text: str) -> None:
        """Replace the draft with a policy in YAML. Its hierarchy files must have been uploaded before."""
        loaded = Policy.from_yaml(text, self.table.folder)
        self._check_models(loaded.models)
        for name in loaded.files:
            if name not in self.table.decisions.hierarchy_files:
                raise PolicyError(f"Hierarchy of {name!r}: its file is not here. Upload it first.")
        self.adopt(loaded.with_files(self.table.decisions.hierarchy_files))

    def adopt_offer(self, policy: Policy) -> None:
        """Adopt the models, suppression limit and highest levels of a policy; the lock must be held."""
        self.restore(self.snapshot_with_offer(policy))

    def snapshot_with_offer(self, policy: Policy) -> Snapshot:
        """Return the snapshot that `adopt_offer` restores; the lock must be held."""
        written, snapshot = policy.model_dump(mode="json", exclude_unset=True), self.snapshot()
        columns = dict(snapshot.table.columns)
        for name in self.table.quasi_identifiers:
            max_level = written["columns"][name].get("max_level")
            columns[name] = {**columns[name], **({} if max_level is None else {"max_level": max_level})}
        settings: dict[str, Any] = {
            name: written[name] for name in ("models", "suppression_limit") if name in written
        }
        return replace(
            snapshot,
            table=replace(snapshot.table, columns=columns),
            settings={**snapshot.settings, **settings},
            preset=None,
            suggested=False,
        )

    def follow_preset(self, preset: str | None) -> None:
        """Replace the draft with the policy of a preset, or with the suggested policy if `preset` is None."""
        with error_field("preset"):
            text = preset_text(preset, self.table.loaded.columns)
        with self.table.changes.lock:
            self.adopt(Policy.load(load_yaml(text)))
            self._followed = (self.table.changes.version, preset)

    @property
    def preset(self) -> str | None:
        """The preset that the draft was made from; None if the draft has changed since then."""
        version, preset = self._followed
        return preset if version == self.table.changes.version else None

    def policy(self) -> Policy:
        """Return the policy. Raise NotReady if something is missing."""
        missing = self.missing()
        if missing:
            raise NotReady(missing)
        return self.table.changes.derive("policy", lambda: self._build({}))

    def build(self) -> Policy:
        """Build the policy. The models are checked, but the hierarchies are not."""
        self._check_models(self.settings()["models"])
        return self._build({})

    def to_yaml(self) -> str:
        """Return the policy as YAML."""
        return yaml.safe_dump(self.policy().written(), sort_keys=False, allow_unicode=True)

    def notes(self) -> list[str]:
        """Return notes about doubtful columns, with their current roles."""
        units = [options["unit"] for _, options in map(named, self.settings()["models"]) if "unit" in options]
        return preset_notes(self.preset, self.table.loaded.columns, self.table.roles, units)

    def missing(self) -> str | None:
        """Describe what is missing for a policy, or return None."""
        return self.table.changes.derive("missing", self._missing)

    def _missing(self) -> str | None:
        if self.table.inspection is None:
            return NO_TABLE
        if not self.table.quasi_identifiers:
            return NO_COLUMNS
        for name in self.table.quasi_identifiers:
            problem = self.table.check_hierarchy(name).problem
            if problem:
                return problem
        try:
            _ = self._build({})
        except ShoalError as error:
            return str(error)
        return None

    # A result is valid as long as the key of the state that it depends on does not change.

    def columns_key(self) -> object:
        """Return the key of results that depend on the table and its quasi-identifiers."""
        return (self.table.revision, self.table.quasi_identifiers) if self.table.inspection else None

    def lattice_key(self) -> object:
        """Return the key of results that depend on the hierarchies, but not on the limits."""
        return self.table.changes.derive("lattice key", self._lattice_key)

    def _lattice_key(self) -> object:
        if self.missing():
            return None
        policy, names = self.policy(), self.table.quasi_identifiers
        parts = [(policy.columns[name].hierarchy, policy.columns[name].weight) for name in names]
        files = {name: self.table.decisions.hierarchy_files.get(name) for name in names}
        _, options = named(policy.metric)
        state = (names, parts, files, self.table.with_role("sensitive"), policy.same_level)
        metric = [policy.metric] if options else []
        return (self.table.revision, json.dumps(state, default=str), json.dumps(metric))

    def policy_key(self) -> object:
        """Return the key of results that depend on the whole policy."""
        return self.table.changes.derive("policy key", self._policy_key)

    def _policy_key(self) -> object:
        if self.missing():
            return None
        files = json.dumps(self.table.decisions.hierarchy_files)
        return (self.table.revision, json.dumps(self.policy().written()), files)

    # Building the policy.

    @property
    def populations(self) -> tuple[str, ...]:
        """The population files that the policy given on the command line names."""
        return tuple(sorted(self._populations))

    def _build(self, changes: Mapping[str, Any]) -> Policy:
        """Build the policy with some settings changed; None restores the default."""
        old = {name: value for name, value in self._settings.items() if name not in changes}
        changed = self._defaults() | old | {n: value for n, value in changes.items() if value is not None}
        settings = {name: value for name, value in changed.items() if value is not None}
        if "models" in settings:
            self._check_models(settings["models"])
        names = self.table.quasi_identifiers
        groups = [[name for name in group if name in names] for group in _groups(settings.get("same_level"))]
        settings["same_level"] = [group for group in groups if len(group) > 1]
        columns = {name: self._column(name) for name in self.table.columns}
        return Policy.load({"columns": columns, **settings}).with_files(self.table.decisions.hierarchy_files)

    def _column(self, name: str) -> dict[str, Any]:
        """Return a column with the entries that its role may have."""
        column = self.table.columns[name]
        if column["role"] == "quasi-identifier":
            return {entry: value for entry, value in column.items() if entry in Column.model_fields}
        # A model may use the hierarchy of a sensitive column.
        if column["role"] == "sensitive" and name in self.table.decisions.chosen:
            return {"role": "sensitive", "hierarchy": column["hierarchy"]}
        return {"role": column["role"]}

    def _check_models(self, models: Any) -> None:
        """Reject a population file that the policy given on the command line does not name."""
        if _populations(models) - self._populations:
            raise Refused(
                "A population is a file and can only be named in the policy that shoal studio is given.",
                "models",
            )


@dataclass(frozen=True)
class PresetAnswer:
    """A published rule that a policy can follow."""

    name: str
    about: str


def presets() -> list[PresetAnswer]:
    """Describe each published rule."""
    return [PresetAnswer(name=name, about=make.__doc__ or "") for name, make in PRESETS.items()]


@contextmanager
def _setting_error(name: str) -> Iterator[None]:
    """Set the field of errors raised in the block to a setting, unless the field is already a setting."""
    try:
        yield
    except ShoalError as error:
        if error.field not in SETTINGS:
            error.field = name
        raise


def _groups(groups: Any) -> list[list[Any]]:
    """Check the lists of columns that always have the same level."""
    if groups is None:
        return []
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        raise Refused("same_level is a list of groups of columns: [[admitted, discharged]].", "same_level")
    return groups


def _populations(models: Any) -> set[str]:
    paths = set()
    for model in models if isinstance(models, list) else ():
        for options in model.values() if isinstance(model, Mapping) else ():
            if isinstance(options, Mapping) and options.get("population") is not None:
                paths.add(str(options["population"]))
    return paths
