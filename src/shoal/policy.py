"""Policy: what the custodian wants, with no data in it; read from YAML and written back."""

from __future__ import annotations

from collections.abc import Mapping
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
    field_validator,
)

from shoal.algorithms import ALGORITHMS
from shoal.core import builders
from shoal.core.builder import Builder
from shoal.core.contracts import Algorithm, Metric, Model, NodeSearch
from shoal.core.counts import Domain
from shoal.core.groups import released_columns
from shoal.core.hierarchy import Hierarchy
from shoal.core.listed import Csv
from shoal.core.schema import Schema
from shoal.errors import PolicyError, UnknownName
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.policies.checks import check
from shoal.policies.column import Column
from shoal.policies.shares import read_limit, share_of
from shoal.policies.wording import refusal
from shoal.policies.written import read_yaml
from shoal.registry import checked

Named = str | dict[str, dict[str, Any] | None]  # a plug-in: its name, or its name with options


class Finishing(TypedDict):
    """The options that every search for a node has."""

    refine: bool
    cells: bool


class Policy(BaseModel):
    """Roles, hierarchies, privacy models, suppression limit, metric and algorithm."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: dict[str, Column] = Field(description="Every column of the table, with its role.")
    same_level: list[list[str]] = Field(
        [], description="Columns that always have one level, such as two dates."
    )
    models: list[Named] = Field(min_length=1, description="Privacy models; a class must pass all of them.")
    suppression_limit: int | float | str = Field(
        0, description="How many records may be suppressed at most: `5%`, `0.05`, or a number of records."
    )
    suppressed: Literal["drop", "mask"] = Field("drop", description="What becomes of suppressed records.")
    metric: Named = Field("non-uniform-entropy", description="The loss to make as small as possible.")
    algorithm: Named = Field(
        "auto",
        description="The search; `auto` is `contour` where it can prove the optimum, else `exhaustive`; with "
        "`refine` or `cells` it goes on to something finer.",
    )
    label: str | None = Field(
        None,
        description="A column that a classifier should predict from the release, for `classification`, `tds` "
        "and `bottom-up`; its role is `sensitive` or `other`, and it has at least two values.",
    )
    population_size: int | None = Field(
        None, ge=1, description="The persons that the table was drawn from, for risk."
    )
    sampling_share: float | str | None = Field(
        None, description="Instead of it, the share of them that the table holds, as `5%` or `1/20`."
    )

    _folder: Path = PrivateAttr(Path())
    _files: dict[str, list[list[str]]] = PrivateAttr({})  # rows of files, where a recipe brings them

    @classmethod
    def load(cls, source: Policy | Mapping[str, Any] | str | Path) -> Policy:
        """Read a policy from a file, a mapping, or take it as it is."""
        if isinstance(source, Policy):
            return source
        if isinstance(source, Mapping):
            return cls._checked(dict(source))
        if not isinstance(source, str | Path):
            message = f"A policy is a file, a mapping or a Policy, got {type(source).__name__}."
            raise PolicyError(message)
        path = Path(source)
        policy = cls._checked(read_yaml(path))
        policy._folder = path.parent
        return policy

    @classmethod
    def _checked(cls, data: dict[str, Any]) -> Policy:
        for name in data:
            if name not in cls.model_fields:
                raise UnknownName(str(name), "policy entry", cls.model_fields)
        columns = data.get("columns")
        if not isinstance(columns, Mapping) or not columns:
            message = "Policy: name each column with its role under columns, as age: {role: other}."
            raise PolicyError(message)
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
        """Compare what is wanted, wherever it was read from."""
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
            message = f"must be a whole number, got {value}"
            raise ValueError(message)
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
        """The privacy models, built."""
        return tuple(MODELS.create(*named(model)) for model in self.models)

    @property
    def information_metric(self) -> Metric:
        """The metric, built."""
        return METRICS.create(*named(self.metric))

    @property
    def search_algorithm(self) -> Algorithm | None:
        """The algorithm, built; None leaves the choice to shoal."""
        name, options = named(self.algorithm)
        if name == "auto":
            for option in options:
                if option not in Finishing.__annotations__:
                    raise UnknownName(str(option), "option of algorithm 'auto':", Finishing.__annotations__)
            return None
        if name not in ALGORITHMS:
            raise UnknownName(name, "algorithm", ["auto", *ALGORITHMS])
        return ALGORITHMS.create(name, options)

    @property
    def finishing(self) -> Finishing:
        """What is done after a search for a node."""
        name, options = named(self.algorithm)
        if name == "auto":
            given = {option: bool(checked(name, option, value, bool)) for option, value in options.items()}
            return Finishing(refine=given.get("refine", False), cells=given.get("cells", False))
        chosen = self.search_algorithm
        if not isinstance(chosen, NodeSearch):
            return Finishing(refine=False, cells=False)
        return Finishing(refine=chosen.refine, cells=chosen.cells)

    @property
    def units(self) -> tuple[str, ...]:
        """The columns whose distinct values some model counts in each class, whatever their role."""
        return tuple(dict.fromkeys(model.unit_column for model in self.privacy_models if model.unit_column))

    @property
    def label_needed(self) -> str | None:
        """The label, where the metric or the algorithm looks at it."""
        plugins = self.information_metric, self.search_algorithm
        return self.label if any(p is not None and p.needs_label for p in plugins) else None

    @property
    def population(self) -> Path | None:
        """The table from which the input was drawn, where a model looks it up."""
        named_ = sorted({model.population_table for model in self.privacy_models if model.population_table})
        if len(named_) > 1:
            message = f"Models name several populations: {', '.join(map(repr, named_))}. Name one."
            raise PolicyError(message)
        return self._folder / named_[0] if named_ else None

    @property
    def sensitive_needed(self) -> tuple[str, ...]:
        """The sensitive columns that some model looks at."""
        available = self.roles.sensitive
        needed = {name for model in self.privacy_models for name in model.sensitive(available)}
        return tuple(name for name in available if name in needed)

    def bind(self, domains: Mapping[str, Domain]) -> tuple[Hierarchy, ...]:
        """Apply every quasi-identifier's hierarchy to the column's values."""
        return tuple(self.builder(name).bind(domains[name]) for name in self.roles.quasi_identifiers)

    def builder(self, name: str) -> Builder:
        """Return a column's hierarchy rule, with its file read."""
        builder = builders.parse(name, self.columns[name].hierarchy)
        if isinstance(builder, Csv):
            rows = tuple(tuple(row) for row in self._files.get(name, ()))
            return replace(builder, rows=rows).read(self._folder, name)
        return builder

    @property
    def files(self) -> dict[str, Path]:
        """The hierarchy files that the policy names, by column."""
        named_ = {name: column.hierarchy for name, column in self.columns.items() if column.hierarchy}
        parsed = {name: builders.parse(name, written) for name, written in named_.items()}
        return {name: self._folder / rule.csv for name, rule in parsed.items() if isinstance(rule, Csv)}

    def with_files(self, files: Mapping[str, list[list[str]]]) -> Policy:
        """Return the policy with the rows of its hierarchy files, so that the files are not needed."""
        policy = self.with_()
        policy._files = dict(files)
        return policy

    @property
    def as_bounds(self) -> tuple[str, ...]:
        """The columns whose bands are released as two numbers."""
        return tuple(name for name, column in self.columns.items() if column.release_as == "bounds")

    def released(self, name: str) -> tuple[str, ...]:
        """Name the columns that stand for a column in a release."""
        return released_columns(name, bounds=name in self.as_bounds)

    def limits(self, which: Literal["max_level", "min_level"]) -> dict[str, int]:
        """Return the columns' level limits of one kind."""
        found = {name: getattr(column, which) for name, column in self.columns.items()}
        return {name: level for name, level in found.items() if level is not None}

    def with_(self, **changes: Any) -> Policy:
        """Return the policy with some entries replaced, checked anew."""
        data = self.model_dump(mode="json", exclude_unset=True)
        policy = self._checked(data | {k: v for k, v in changes.items() if v is not None})
        policy._folder = self._folder
        policy._files = self._files
        return policy

    def written(self) -> dict[str, Any]:
        """Return the policy as plain values, without what is left to its default."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        if "suppression_limit" in self.model_fields_set:  # a search may bring another where none is named
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
        message = f"Expected one name with its options, got {', '.join(plugin) or 'nothing'}."
        raise PolicyError(message)
    ((name, options),) = plugin.items()
    return name, dict(options or {})
