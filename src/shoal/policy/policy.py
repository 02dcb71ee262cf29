"""Policy: the custodian's settings, without data. It is read from YAML and written as YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Algorithm, Cells, Metric, Model, NodeSearch, Role, Schema
from shoal.core.counts.counts import Counts, Domain
from shoal.core.hierarchy import builders
from shoal.core.hierarchy.builder import Builder
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.hierarchy.lists import Csv
from shoal.core.recoding.groups import released_columns
from shoal.errors import PolicyError, UnknownName
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.policy.checks import check, refusal
from shoal.policy.limits import read_limit, share_of
from shoal.policy.yaml import parse_yaml, read_yaml
from shoal.registry import broken_rule, validate_option


class Column(BaseModel):
    """The policy's entry for one column."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Role = Field(
        description="`identifier`: removed; `quasi-identifier`: generalized, and counted to form classes; "
        "`sensitive`: released unchanged and checked by models; `other`: released as it is."
    )
    hierarchy: str | dict[str, Any] | None = Field(
        None, description="How to generalize; a quasi-identifier needs one."
    )
    max_level: int | None = Field(
        None, ge=0, description="The highest level of the search; by default, the hierarchy's height."
    )
    min_level: int | None = Field(None, ge=0, description="The lowest level of the search; by default, 0.")
    weight: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="The weight of the column's loss, above 0."
    )
    release_as: Literal["text", "bounds"] = Field(
        "text", description="Bands as text such as `45-49`, or as two numbers."
    )
    identifying: Literal[1, 2, 3] = Field(
        1,
        description="How well the column identifies persons, `3` best. `mu-argus` uses it to choose tests; "
        "the other searches ignore it.",
    )

    @field_validator("hierarchy", mode="before")
    @classmethod
    def _keys_are_text(cls, value: Any) -> Any:
        """Convert keys to text: YAML reads a group of a tree that is named 1.1 as a number."""
        if isinstance(value, Mapping):
            return {str(key): cls._keys_are_text(inner) for key, inner in value.items()}
        return [cls._keys_are_text(inner) for inner in value] if isinstance(value, list) else value

    @field_validator("identifying", mode="before")
    @classmethod
    def _identifying_is_a_number(cls, value: Any) -> Any:
        """Refuse all values except 1, 2 and 3, also true, which Python treats as 1."""
        if type(value) is not int or value not in (1, 2, 3):
            raise broken_rule("a whole number, 1, 2 or 3", value)
        return value

    @field_validator("max_level", "min_level", "weight", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse true, which Python treats as 1."""
        if isinstance(value, bool):
            raise broken_rule("a number" if info.field_name == "weight" else "a whole number", value)
        return value

    @model_validator(mode="after")
    def _fits_its_role(self) -> Column:
        settings = {"max_level", "min_level", "weight", "release_as", "identifying"} & self.model_fields_set
        if self.role is not Role.QUASI_IDENTIFIER and settings:
            raise ValueError(
                "max_level, min_level, weight, release_as and identifying are for quasi-identifiers"
            )
        return self


Named = str | dict[str, dict[str, Any] | None]  # a plug-in: its name, or its name with options


class Finishing(TypedDict):
    """The steps after a search for a node."""

    refine: bool
    cells: Cells
    local: int  # maximum number of labels in a cell; 0: no local recoding


# Options of `auto` and of every search for a node.
_FINISHING_OPTIONS: Mapping[str, Any] = {"refine": bool, "cells": Cells}
MOST_LABELS = 8


class Local(BaseModel):
    """The options of local recoding."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: int = Field(1, ge=1, le=MOST_LABELS)

    @field_validator("labels", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise broken_rule("a whole number", value)
        return value


class Policy(BaseModel):
    """Roles, hierarchies, privacy models, suppression limit, metric and algorithm."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: dict[str, Column] = Field(description="Every column of the table, with its role.")
    same_level: list[list[str]] = Field(
        [], description="Columns that always have the same level, such as two dates."
    )
    models: list[Named] = Field(min_length=1, description="Privacy models; a class must pass all of them.")
    suppression_limit: int | float | str = Field(
        0, description="How many records may be suppressed at most: `5%`, `0.05`, or a number of records."
    )
    suppressed: Literal["drop", "mask"] = Field("drop", description="What becomes of suppressed records.")
    metric: Named = Field("non-uniform-entropy", description="The loss to make as small as possible.")
    algorithm: Named = Field(
        "auto",
        description="The search; `auto` is `contour` where it can prove the optimum, else `exhaustive`. Its "
        "options `refine` and `cells` refine the result.",
    )
    local: bool | Local = Field(
        False,
        description="Whether each class gets its own levels after the search for a node: `true`, or "
        "`{labels: 3}` for up to three labels of one level in a cell.",
    )
    label: str | None = Field(
        None,
        description="A column that a classifier should predict from the release, for `classification`, `tds` "
        "and `bottom-up`; its role is `sensitive` or `other`, and it has at least two values.",
    )
    fail: list[Literal["revealed"]] = Field(
        [],
        description="Findings that prevent a release. `revealed`: a column that is released unchanged "
        "reveals a finer value of a generalized column.",
    )
    population_size: int | None = Field(
        None, ge=1, description="The number of persons in the population, for risk."
    )
    sampling_share: float | str | None = Field(
        None,
        description="The share of the population in the table, such as `5%` or `1/20`; instead of "
        "`population_size`.",
    )

    _folder: Path = PrivateAttr(Path())
    _file: Path | None = PrivateAttr(None)  # the file from which the policy was read
    _files: dict[str, list[list[str]]] = PrivateAttr({})  # rows of hierarchy files, from a recipe

    @classmethod
    def load(cls, source: Policy | Mapping[str, Any] | str | Path) -> Policy:
        """Read a policy from a file or a mapping; a Policy is returned unchanged."""
        if isinstance(source, Policy):
            return source
        if isinstance(source, Mapping):
            return cls._checked(dict(source))
        if not isinstance(source, str | Path):
            raise PolicyError(f"A policy is a file, a mapping or a Policy, got {type(source).__name__}.")
        path = Path(source)
        policy = cls._checked(read_yaml(path))
        policy._folder = path.parent
        policy._file = path
        return policy

    @classmethod
    def from_yaml(cls, text: str, folder: Path) -> Policy:
        """Read a policy from YAML; paths in the policy are relative to the folder."""
        policy = cls._checked(parse_yaml(text))
        policy._folder = folder
        return policy

    @classmethod
    def _checked(cls, data: dict[str, Any]) -> Policy:
        for name in data:
            if name not in cls.model_fields:
                raise UnknownName(str(name), "policy entry", cls.model_fields)
        columns = data.get("columns")
        if not isinstance(columns, Mapping) or not columns:
            raise PolicyError("Policy: list columns and roles under 'columns', such as age: {role: other}.")
        for name, column in columns.items():
            for option in column if isinstance(column, Mapping) else ():
                if option not in Column.model_fields:
                    raise UnknownName(str(option), f"entry of column {name!r}:", Column.model_fields)
        try:
            policy = cls.model_validate(data)
        except ValidationError as error:
            raise refusal(error, cls.model_fields, Column.model_fields) from None
        check(policy)
        return policy

    def __eq__(self, other: object) -> bool:
        """Compare the settings, but not the files from which they were read."""
        return isinstance(other, Policy) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]

    @field_validator("suppression_limit", mode="before")
    @classmethod
    def _limit_is_a_share_or_records(cls, value: float | str) -> float | str:
        read_limit(value)
        return value

    @field_validator("population_size", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise broken_rule("a whole number", value)
        return value

    @field_validator("sampling_share", mode="before")
    @classmethod
    def _sample_is_a_share(cls, value: float | str | None) -> float | str | None:
        if value is not None:
            share_of(value, "sampling_share")
        return value

    @property
    def roles(self) -> Schema:
        """The columns' roles."""
        return Schema({name: column.role for name, column in self.columns.items()})

    @property
    def privacy_models(self) -> tuple[Model, ...]:
        """The privacy models, as objects."""
        return tuple(MODELS.create(*named(model)) for model in self.models)

    @property
    def information_metric(self) -> Metric:
        """The metric, as an object."""
        return METRICS.create(*named(self.metric))

    @property
    def search_algorithm(self) -> Algorithm | None:
        """The algorithm, as an object; None means that shoal chooses it."""
        name, options = named(self.algorithm)
        if name == "auto":
            for option in options:
                if option not in _FINISHING_OPTIONS:
                    raise UnknownName(str(option), "option of algorithm 'auto':", _FINISHING_OPTIONS)
            return None
        if name not in ALGORITHMS:
            raise UnknownName(name, "algorithm", ["auto", *ALGORITHMS])
        return ALGORITHMS.create(name, options)

    @property
    def finishing(self) -> Finishing:
        """The steps after a search for a node."""
        name, options = named(self.algorithm)
        if name == "auto":
            kinds = _FINISHING_OPTIONS
            validated: Any = {o: validate_option(name, o, value, kinds[o]) for o, value in options.items()}
            refine, cells = validated.get("refine", False), validated.get("cells", False)
            return Finishing(refine=refine, cells=cells, local=self.local_labels)
        chosen = self.search_algorithm
        if not isinstance(chosen, NodeSearch):
            return Finishing(refine=False, cells=False, local=0)
        return Finishing(refine=chosen.refine, cells=chosen.cells, local=self.local_labels)

    @property
    def wildcards(self) -> bool:
        """Whether a blanked cell of a release matches every value."""
        return self.finishing["cells"] == "any"

    @property
    def local_labels(self) -> int:
        """How many labels a cell of local recoding may have; 0 without local recoding."""
        return self.local.labels if isinstance(self.local, Local) else int(self.local)

    @property
    def levels_by_class(self) -> bool:
        """Whether classes may get their own levels after a search for a node."""
        finishing = self.finishing
        return finishing["refine"] or finishing["local"] > 0

    @property
    def units(self) -> tuple[str, ...]:
        """The columns whose distinct values a model counts in each class. They may have any role."""
        return tuple(dict.fromkeys(model.unit_column for model in self.privacy_models if model.unit_column))

    @property
    def tested_sets(self) -> Sequence[tuple[int, ...]]:
        """The sets of quasi-identifiers (as indices) in which the search hides rare combinations."""
        algorithm = self.search_algorithm
        names = self.roles.quasi_identifiers
        return algorithm.tested_sets([self.columns[name].identifying for name in names]) if algorithm else ()

    @property
    def masks(self) -> bool:
        """Whether a release may have masked records: suppressed records with empty values."""
        algorithm = self.search_algorithm
        return self.suppressed == "mask" and (algorithm is None or algorithm.suppresses)

    @property
    def label_needed(self) -> str | None:
        """The label column, if the metric or the algorithm uses it."""
        plugins = self.information_metric, self.search_algorithm
        return self.label if any(p is not None and p.needs_label for p in plugins) else None

    @property
    def population(self) -> Path | None:
        """The table of the population from which the input was drawn, if a model uses it."""
        files = sorted({model.population_table for model in self.privacy_models if model.population_table})
        if len(files) > 1:
            raise PolicyError(f"Models name several populations: {', '.join(map(repr, files))}. Name one.")
        return self._folder / files[0] if files else None

    @property
    def sensitive_needed(self) -> tuple[str, ...]:
        """The sensitive columns that any model uses."""
        available = self.roles.sensitive
        needed = {name for model in self.privacy_models for name in model.sensitive(available)}
        return tuple(name for name in available if name in needed)

    def bind(self, domains: Mapping[str, Domain], counts: Counts | None = None) -> tuple[Hierarchy, ...]:
        """Apply each quasi-identifier's hierarchy to its column's values; `counts` has the combinations."""
        hierarchies = []
        for column, name in enumerate(self.roles.quasi_identifiers):
            builder, domain = self.builder(name), domains[name]
            needed = counts if builder.needs_counts else None
            records = None if needed is None else needed.totals(column, len(domain))
            hierarchies.append(builder.bind(domain, records))
        return tuple(hierarchies)

    def builder(self, name: str) -> Builder:
        """Return a column's hierarchy rule. If the rule names a file, the file is read."""
        builder = builders.parse(name, self.columns[name].hierarchy)
        if isinstance(builder, Csv):
            rows = tuple(tuple(row) for row in self._files.get(name, ()))
            return replace(builder, rows=rows).read(self._folder, name)
        return builder

    @property
    def files(self) -> dict[str, Path]:
        """The hierarchy files that the policy names, by column."""
        specs = {name: column.hierarchy for name, column in self.columns.items() if column.hierarchy}
        parsed = {name: builders.parse(name, spec) for name, spec in specs.items()}
        return {name: self._folder / rule.csv for name, rule in parsed.items() if isinstance(rule, Csv)}

    @property
    def read_files(self) -> dict[Path, str]:
        """The file from which the policy was read and the files that it names, each with a description."""
        files = {} if self._file is None else {self._file: "the policy"}
        files |= {path: f"the hierarchy of {name!r}" for name, path in self.files.items()}
        return files | ({self.population: "the population"} if self.population else {})

    def with_files(self, files: Mapping[str, list[list[str]]]) -> Policy:
        """Return the policy with the rows of its hierarchy files, so that it does not read the files."""
        policy = self.with_()
        policy._files = dict(files)
        return policy

    @property
    def as_bounds(self) -> tuple[str, ...]:
        """The columns whose bands are released as two columns with the lower and upper bounds."""
        return tuple(name for name, column in self.columns.items() if column.release_as == "bounds")

    def released(self, name: str) -> tuple[str, ...]:
        """Return the names of the columns that replace a column in a release."""
        return released_columns(name, bounds=name in self.as_bounds)

    def limits(self, which: Literal["max_level", "min_level"]) -> dict[str, int]:
        """Return the columns' level limits of one kind."""
        levels = {name: getattr(column, which) for name, column in self.columns.items()}
        return {name: level for name, level in levels.items() if level is not None}

    def with_(self, **changes: Any) -> Policy:
        """Return the policy with some entries replaced, and check it."""
        data = self.model_dump(mode="json", exclude_unset=True)
        policy = self._checked(data | {k: v for k, v in changes.items() if v is not None})
        policy._folder = self._folder
        policy._file = self._file
        policy._files = self._files
        return policy

    def dropping(self, names: Iterable[str]) -> Policy:
        """Return the policy without some columns: their role becomes identifier."""
        drop = set(names)
        for name in drop:
            if name not in self.columns:
                raise UnknownName(name, "column", self.columns, field="drop")
        columns = self.written()["columns"]
        together = [[name for name in group if name not in drop] for group in self.same_level]
        return self.with_(
            columns={
                name: {"role": "identifier"} if name in drop else column for name, column in columns.items()
            },
            same_level=[group for group in together if len(group) > 1],
        )

    def written(self) -> dict[str, Any]:
        """Return the policy as plain values, without defaults."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        if "suppression_limit" in self.model_fields_set:  # else, the search may have its own default
            data["suppression_limit"] = self.suppression_limit
        return data

    def to_yaml(self) -> str:
        """Write the policy as YAML that reads back as the same policy."""
        return yaml.safe_dump(self.written(), sort_keys=False, allow_unicode=True)


def named(plugin: Named) -> tuple[str, dict[str, Any]]:
    """Return a plug-in's name and options as the policy writes them."""
    if isinstance(plugin, str):
        return plugin, {}
    if len(plugin) != 1:
        raise PolicyError(f"Expected one name with its options, got {', '.join(plugin) or 'nothing'}.")
    ((name, options),) = plugin.items()
    return name, dict(options or {})


def plugin_text(plugin: Named) -> str:
    """Write a plug-in with its options as the command line reads it.

    >>> plugin_text({"coverage": {"aggregate": "geometric"}})
    'coverage:aggregate=geometric'
    >>> plugin_text({"composite": {"parts": [{"precision": 1}, {"height": 2}]}})
    'composite:parts=[{"precision": 1}, {"height": 2}]'
    """
    name, options = named(plugin)
    pairs = [f"{option}={v if isinstance(v, str) else json.dumps(v)}" for option, v in options.items()]
    return f"{name}:{','.join(pairs)}" if pairs else name


def split_options(text: str) -> list[str]:
    """Split at commas, except within a value that begins with a bracket.

    >>> split_options("parts=[{precision: 1}, {height: 2}],k=5")
    ['parts=[{precision: 1}, {height: 2}]', 'k=5']
    """
    parts: list[str] = []
    for part in text.split(","):
        if parts and _is_open(parts[-1]):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return parts


def _is_open(part: str) -> bool:
    """Return whether a value begins with a bracket and opens more brackets than it closes."""
    value = part.partition("=")[2].strip()
    if not value.startswith(("[", "{")):
        return False
    return sum(map(value.count, "[{")) > sum(map(value.count, "]}"))
