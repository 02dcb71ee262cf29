"""Policy: what the custodian wants, with no data in it; read from YAML and written back."""

from __future__ import annotations

import re
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
    model_validator,
)

from shoal.algorithms import ALGORITHMS
from shoal.core import builders
from shoal.core.builder import Builder
from shoal.core.contracts import Algorithm, Metric, Model, NodeSearch
from shoal.core.counts import Domain
from shoal.core.groups import released_columns
from shoal.core.hierarchy import Hierarchy
from shoal.core.listed import Csv
from shoal.core.numbers import Banded
from shoal.core.schema import Role, Schema
from shoal.errors import PolicyError, UnknownName
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.registry import checked
from shoal.shares import read_limit, share_of

Named = str | dict[str, dict[str, Any] | None]  # a plug-in: its name, or its name with options


class Finishing(TypedDict):
    """The options that every search for a node has."""

    refine: bool
    cells: bool


class Column(BaseModel):
    """One column's part of the policy."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Role
    hierarchy: str | dict[str, Any] | None = None
    max_level: int | None = Field(None, ge=0)
    min_level: int | None = Field(None, ge=0)
    weight: float = Field(1.0, gt=0, allow_inf_nan=False)
    release_as: Literal["text", "bounds"] = "text"
    identifying: Literal[1, 2, 3] = 1  # 3: most

    @field_validator("hierarchy", mode="before")
    @classmethod
    def _keys_are_text(cls, value: Any) -> Any:
        """Let 1.1 as a group of a tree be the text that it is in YAML and JSON."""
        if isinstance(value, Mapping):
            return {str(key): cls._keys_are_text(inner) for key, inner in value.items()}
        return [cls._keys_are_text(inner) for inner in value] if isinstance(value, list) else value

    @field_validator("identifying", mode="before")
    @classmethod
    def _identifying_is_a_number(cls, value: Any) -> Any:
        """Refuse what is not a number, and true, which Python takes for 1."""
        if type(value) is not int or value not in (1, 2, 3):
            message = f"a whole number 1, 2 or 3, got {value!r}"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _fits_its_role(self) -> Column:
        asked = {"max_level", "min_level", "weight", "release_as", "identifying"} & self.model_fields_set
        if self.role is not Role.QUASI_IDENTIFIER and asked:
            message = "max_level, min_level, weight, release_as and identifying are for quasi-identifiers"
            raise ValueError(message)
        return self


class Policy(BaseModel):
    """Roles, hierarchies, privacy models, suppression limit, metric and algorithm."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: dict[str, Column]
    same_level: list[list[str]] = []
    models: list[Named] = Field(min_length=1)
    suppression_limit: int | float | str = 0
    suppressed: Literal["drop", "mask"] = "drop"
    metric: Named = "non-uniform-entropy"
    algorithm: Named = "auto"
    label: str | None = None
    population_size: int | None = Field(default=None, ge=1)  # persons that the table was drawn from
    sampling_share: float | str | None = None  # or the share of them that it holds

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
        try:
            data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
        except OSError as error:
            message = f"Cannot read the policy {str(path)!r}: {error.strerror}."
            raise PolicyError(message) from None
        except (yaml.YAMLError, UnicodeDecodeError, ValueError, TypeError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f" at line {mark.line + 1}" if mark else ""
            what = getattr(error, "problem", None) or "it is not UTF-8 text, or a key is a list"
            message = f"The policy {str(path)!r} is not valid YAML{where}: {what}."
            raise PolicyError(message) from None
        if not isinstance(data, dict):
            message = f"The policy {str(path)!r} must be a mapping that begins with 'columns:'."
            raise PolicyError(message)
        policy = cls._checked(data)
        policy._folder = path.parent
        return policy

    @classmethod
    def _checked(cls, data: dict[str, Any]) -> Policy:
        for name in data:
            if name not in cls.model_fields:
                raise UnknownName(str(name), "policy entry", cls.model_fields)
        columns = data.get("columns")
        if not isinstance(columns, Mapping) or not columns:
            message = (
                "Policy, columns: name each column with its role, as age: {role: quasi-identifier, ...}."
            )
            raise PolicyError(message)
        for name, column in columns.items():
            for option in column if isinstance(column, Mapping) else ():
                if option not in Column.model_fields:
                    raise UnknownName(str(option), f"entry of column {name!r}:", Column.model_fields)
        try:
            policy = cls.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "policy"
            message = f"Policy, {where}: {first['msg'].removeprefix('Value error, ')}."
            raise PolicyError(message) from None
        policy._check()
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

    @field_validator("sampling_share", mode="before")
    @classmethod
    def _sample_is_a_share(cls, value: float | str | None) -> float | str | None:
        if value is not None:
            share_of(value, "sampling_share")
        return value

    def _check(self) -> None:
        if self.population_size is not None and self.sampling_share is not None:
            message = "population_size and sampling_share say the same. Name one of them."
            raise PolicyError(message)
        if not self.roles.quasi_identifiers:
            message = (
                "The policy names no quasi-identifier. Give at least one column the role quasi-identifier."
            )
            raise PolicyError(message)
        for name, column in self.columns.items():
            if column.role is Role.QUASI_IDENTIFIER and column.hierarchy is None:
                message = f"Column {name!r} is a quasi-identifier and needs a hierarchy, such as 'flat'."
                raise PolicyError(message)
            rule = None if column.hierarchy is None else builders.parse(name, column.hierarchy)
            if column.release_as == "bounds" and not isinstance(rule, Banded):
                message = f"Column {name!r}: release_as bounds is for hierarchies of intervals or cuts."
                raise PolicyError(message)
        if self.as_bounds and self.suppressed == "mask":
            message = (
                "suppressed: mask cannot be told from bounds that are empty. Use release_as: text, or drop."
            )
            raise PolicyError(message)
        for name in self.as_bounds:
            taken = [shown for shown in self.released(name) if shown in self.columns]
            if taken:
                message = (
                    f"Column {taken[0]!r} has a name that release_as bounds of {name!r} needs. Rename it."
                )
                raise PolicyError(message)
        self._check_models()
        self._check_search()

    def _check_search(self) -> None:
        self._check_label()
        if all(self.finishing.values()):
            message = "refine recodes what cells would blank. Ask for one of them."
            raise PolicyError(message)
        if self.finishing["cells"] and (self.as_bounds or self.suppressed == "mask"):
            message = (
                "cells cannot be told from bounds that are empty, nor from masked records. Use "
                "release_as: text, and suppressed: drop."
            )
            raise PolicyError(message)

    def _check_label(self) -> None:
        metric = "Metric", self.metric, self.information_metric
        algorithm = "Algorithm", self.algorithm, self.search_algorithm
        for kind, written, plugin in (metric, algorithm):
            if self.label is None and plugin is not None and plugin.needs_label:
                message = (
                    f"{kind} {named(written)[0]!r} is about a column that is to be predicted. Name it in the "
                    "policy, as label: COLUMN."
                )
                raise PolicyError(message)
        if self.label is None:
            return
        if self.label not in self.columns:
            raise UnknownName(self.label, "column for label:", self.columns)
        role = self.columns[self.label].role
        if role in (Role.QUASI_IDENTIFIER, Role.IDENTIFIER):
            message = (
                f"Column {self.label!r} has the role {role.value} and cannot be the label, which is released "
                "as it is. Give it the role sensitive or other."
            )
            raise PolicyError(message)

    def _check_models(self) -> None:
        for model in self.privacy_models:
            for name in model.sensitive(self.roles.sensitive):
                if model.needs_hierarchy and self.columns[name].hierarchy is None:
                    message = f"Column {name!r}: a model measures distances along its hierarchy. Give it one."
                    raise PolicyError(message)
        for unit in self.units:
            if unit not in self.columns:
                raise UnknownName(unit, "column for unit:", self.columns)
            if unit in self.roles.quasi_identifiers:
                message = f"Column {unit!r} is a quasi-identifier and cannot tell persons apart as unit."
                raise PolicyError(message)
        _ = self.population  # refuses several

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


class _Loader(yaml.SafeLoader):
    """YAML that reads what is written: no is a word, 007 a code, 14:05 a time; and no key stands twice."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - yaml's own name; filled below

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key given twice instead of keeping the last."""
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name!r} stands twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


_FLOAT = r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?"
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", [*"-+0123456789"]),
    ("float", _FLOAT, [*"-+.0123456789"]),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


def named(plugin: Named) -> tuple[str, dict[str, Any]]:
    """Return a plug-in's name and options as the policy writes them."""
    if isinstance(plugin, str):
        return plugin, {}
    if len(plugin) != 1:
        message = f"Expected one name with its options, got {', '.join(plugin) or 'nothing'}."
        raise PolicyError(message)
    ((name, options),) = plugin.items()
    return name, dict(options or {})
