"""Recipes, which store a recoding so that it can be applied to new data, and the audits of releases."""

from __future__ import annotations

import hashlib
import hmac
import platform
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts.counts import Domain
from shoal.core.evaluation import Evaluation
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.hierarchy.lists import Csv
from shoal.core.problem import Problem
from shoal.core.recoding.groups import CellValue, level_labels
from shoal.core.recoding.recoding import Recoding
from shoal.engines.names import TABLE_FILES
from shoal.errors import PolicyError, ShoalError, UsageError
from shoal.files.outputs import check_path
from shoal.files.yaml import LoadError, load_json, read_bytes
from shoal.policy.policy import Policy, named
from shoal.wording import quote
from shoal.workflow.problem import Reference, reference_of

if TYPE_CHECKING:
    from shoal.core.recoding.matching import Saved
    from shoal.workflow.verify import Verification

_FORMAT = 1
_MAX_BYTES = 256_000_000  # a million regions of eight columns take about 40 MB
_WHERE = "Give recipe.json, from the private folder of a release."


@dataclass(frozen=True)
class Recipe:
    """A policy and the recoding that was found for it."""

    policy: Policy
    levels: dict[str, int] | None  # None if the recoding is not based on a node
    regions: Saved | None
    reference: Reference  # how often each sensitive value occurred in the whole input
    masked: int | None = None  # number of masked records in the release; None if unknown

    @classmethod
    def load(cls, source: Recipe | Mapping[str, Any] | str | Path) -> Recipe:
        """Read a recipe from its file or from the private folder that contains it."""
        if isinstance(source, Recipe):
            return source
        if not isinstance(source, Mapping | str | Path):
            raise UsageError(
                f"A recipe is a file or its content, got {type(source).__name__}. A release in memory has "
                "none: name an output, and keep its private folder."
            )
        data = source if isinstance(source, Mapping) else _read(Path(source))
        if data.get("recipe") != _FORMAT:
            raise PolicyError(_no_recipe(data))
        levels, files = data.get("levels", ()), data.get("hierarchy_files")
        if not isinstance(levels, Mapping | None) or not isinstance(files, Mapping):
            raise PolicyError(_damaged("it lacks its levels or its hierarchies"))
        if not isinstance(data.get("policy"), Mapping):  # a string would be opened as a path
            raise PolicyError(_damaged("its policy is not a mapping"))
        try:
            policy = Policy.load(data["policy"])
        except ShoalError:  # its message quotes the policy; a damaged policy may contain values
            raise PolicyError(_damaged("its policy is not valid")) from None
        if not all(_is_table(files.get(name)) for name in _files_needed(policy)):
            raise PolicyError(_damaged("it lacks the rows of a hierarchy file"))
        policy = policy.with_files(files)
        quasi = policy.roles.quasi_identifiers
        if levels is not None and (
            set(levels) != set(quasi) or not all(type(n) is int for n in levels.values())
        ):
            raise PolicyError(_damaged("its levels are not those of its policy's quasi-identifiers"))
        regions = _regions(data["regions"], quasi) if data.get("regions") is not None else None
        if levels is None and regions is None and data.get("fixes") != "nothing":
            raise PolicyError(_damaged("it has neither levels nor regions"))
        levels = None if levels is None else dict(levels)
        reference = _reference(data.get("reference") or {}, data.get("records"))
        masked = data.get("masked")
        if masked is not None and (type(masked) is not int or masked < 0):
            raise PolicyError(_damaged("it does not say how many records are masked"))
        return cls(policy, levels, regions, reference, masked)


def _files_needed(policy: Policy) -> list[str]:
    needed = (*policy.roles.quasi_identifiers, *policy.sensitive_needed)
    return [name for name in policy.files if name in needed]


def _is_table(rows: Any) -> bool:
    return (
        isinstance(rows, list | tuple)
        and len(rows) > 0
        and all(isinstance(row, list | tuple) and len(row) == len(rows[0]) > 0 for row in rows)
        and all(isinstance(cell, str) for row in rows for cell in row)
    )


def _regions(data: Any, quasi: tuple[str, ...]) -> Saved:
    try:
        columns = {name: data["columns"][name] for name in quasi}
        classes = None if data["classes"] is None else np.array(data["classes"], np.int64).T
        covers = {name: list(column["covers"]) for name, column in columns.items()}
        labels = {name: column["labels"] for name, column in columns.items()}
        known = np.array([len(covers[name]) for name in quasi])
        good = classes is None or (
            classes.shape[0] == len(quasi) and ((classes >= 0) & (classes < known[:, None])).all()
        )
        good &= all(_is_cover(cover) for column in covers.values() for cover in column)
        good &= all(
            len(shown) == len(covers[name]) for name in quasi for shown in (labels[name] or {}).values()
        )
    except (TypeError, KeyError, ValueError, AttributeError, IndexError):
        good = False
    if not good:
        raise PolicyError(_damaged("its regions are not those of its policy's quasi-identifiers"))
    from shoal.core.recoding.matching import Saved

    return Saved(labels, covers, classes)


def _is_cover(cover: Any) -> bool:
    if "blank" in cover:
        return True
    if "values" in cover:
        return all(isinstance(value, str | None) for value in cover["values"])
    if "level" in cover:
        labels = cover["labels"] if "labels" in cover else [cover["label"]]
        named = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
        return type(cover["level"]) is int and cover["level"] >= 0 and named
    if "from" in cover and not isinstance(cover["to"], str | int | float):
        return False
    low, high = cover.get("ends", (0, 0))
    return (
        isinstance(cover["missing"], bool) and isinstance(low, int | float) and isinstance(high, int | float)
    )


def _reference(data: object, records: object) -> Reference:
    """Parse the counts of sensitive values: for each column, pairs of a text (or None) and a count.

    The values must be distinct, and the counts must sum to the number of records.
    """
    try:
        reference = {name: [(text, number) for text, number in pairs] for name, pairs in data.items()}  # type: ignore[attr-defined]
        good = all(
            isinstance(text, str | None) and type(number) is int and number > 0
            for pairs in reference.values()
            for text, number in pairs
        )
        for pairs in reference.values():
            good &= len(dict(pairs)) == len(pairs) and sum(number for _, number in pairs) == records
    except (AttributeError, TypeError, ValueError):
        good = False
    if not good:
        raise PolicyError(_damaged("it does not say how often sensitive values occurred"))
    return reference


def _damaged(what: str) -> str:
    return f"The recipe is damaged: {what}. Use an intact copy, or anonymize again."


def _no_recipe(data: Mapping[str, Any]) -> str:
    if "recipe" in data:
        return f"The recipe is of another version; shoal {version('shoal')} cannot read it. Anonymize again."
    return f"This is not a recipe. {_WHERE}"


def _read(path: Path) -> dict[str, Any]:
    check_path(path)
    path = path / "recipe.json" if path.is_dir() else path
    try:
        data = load_json(read_bytes(path, _MAX_BYTES), max_bytes=_MAX_BYTES)
    except OSError as error:
        raise PolicyError(f"Cannot read the recipe {quote(path)}: {error.strerror}.") from None
    except LoadError as error:
        message = f"{quote(path)} is not a recipe, or is damaged: it is {error}. {_WHERE}"
        if path.suffix.lower() in TABLE_FILES:
            message = f"{quote(path)} is a table, by its extension, and not a recipe. Are the two swapped?"
        if (private := path.with_name(f"{path.name}.private")).is_dir():
            message = f"{quote(path)} is a release. Its recipe is in {quote(private)}."
        raise PolicyError(message) from None
    if not isinstance(data, dict):
        raise PolicyError(f"{quote(path)} is not a recipe, or is damaged: it is not an object. {_WHERE}")
    return data


def recipe_of(
    policy: Policy,
    problem: Problem,
    evaluation: Evaluation,
    domains: Mapping[str, Domain],
    masked: int | None = None,
) -> dict[str, Any]:
    """Return the recipe as plain values, with which the recoding can be applied and verified later."""
    needed = (*policy.roles.quasi_identifiers, *policy.sensitive_needed)
    rules = {name: policy.builder(name) for name in needed if policy.columns[name].hierarchy is not None}
    reference = reference_of(problem.counts, domains)
    written = policy.written()
    if policy.population is not None:  # the recipe may be read from another folder
        location = {"population": str(policy.population.resolve())}
        models = [named(model) for model in policy.models]
        written["models"] = [{n: o | location if "population" in o else o} for n, o in models]
    records = dict(zip(problem.lattice.columns, problem.value_counts, strict=True))
    records |= {name: np.array([n for _, n in pairs], np.int64) for name, pairs in reference.items()}
    for name, rule in rules.items():
        # New data must not change the labels, so what defines their style is stored.
        if options := rule.stored(domains[name], records[name]):
            written["columns"][name]["hierarchy"] |= options
    key = secrets.token_hex(32)
    # If a sensitive column is released separately, the regions are random and useless for new data.
    recoding, node = evaluation.recoding, evaluation.node
    regions = None if node or (recoding and recoding.separate_column) else recoding
    return {
        "recipe": _FORMAT,
        "shoal": version("shoal"),
        "python": platform.python_version(),
        "policy": written,
        "hierarchy_files": {name: tuple(rule.rows) for name, rule in rules.items() if isinstance(rule, Csv)},
        "levels": dict(zip(problem.lattice.columns, node, strict=True)) if node else None,
        "regions": None if regions is None else _written(regions),
        "fixes": "levels" if node else "nothing" if regions is None else "regions",
        "records": problem.records,
        "suppression_limit": problem.limit,
        "masked": masked,
        "reference": reference,
        "fingerprints": {"key": key, "input": fingerprint(key, problem, domains)},
    }


def _written(recoding: Recoding) -> dict[str, Any]:
    from shoal.core.recoding.matching import saved

    regions = saved(recoding)
    names = regions.covers
    columns = {name: {"labels": regions.labels[name], "covers": regions.covers[name]} for name in names}
    classes = None if regions.classes is None else regions.classes.T.tolist()
    return {"columns": columns, "classes": classes}


def fingerprint(key: str, problem: Problem, domains: Mapping[str, Domain]) -> str:
    """Return a digest of the input's counts; only someone who has the key can compute it."""
    digest = hmac.new(bytes.fromhex(key), digestmod=hashlib.sha256)
    for name, domain in domains.items():
        digest.update(repr((name, domain.texts)).encode())
    for part in problem.counts.fingerprint_parts():
        digest.update(part)
    return digest.hexdigest()


def audit_of(result: Mapping[str, Any], verification: Verification) -> dict[str, Any]:
    """Return the audit: time, result, verification and versions."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "result": {name: value for name, value in result.items() if name not in ("recipe", "policy")},
        "verification": verification.to_dict(),
        "packages": packages(),
    }


@cache
def packages() -> dict[str, str]:
    """Return the versions of the packages that a result depends on."""
    return {name: version(name) for name in ("shoal", "numpy", "numba", "duckdb", "ibis-framework")}


_Text = str | None
# For each column, the released cells of a row: one label, two bounds, or the unchanged text.
RecodedRow = tuple[tuple[CellValue, ...], ...]
_CELLS = 10_000_000  # maximum number of cells (rows times classes) that are compared at once


@dataclass
class RowRecoder:
    """Recodes each row independently of the others; a row that no class covers becomes None."""

    policy: Policy  # its label styles do not depend on the data
    levels: Mapping[str, int] | None
    regions: Saved | None
    order: IntArray | None  # the indexes of the classes, narrowest first
    _labels: dict[tuple[str, _Text], tuple[CellValue, ...]] = field(default_factory=dict, repr=False)
    _covers: dict[tuple[str, _Text], Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Exclude the caches, because they contain values of the data."""
        return self.__dict__ | {"_labels": {}, "_covers": {}}

    def rows(self, texts: Mapping[str, Sequence[_Text]]) -> list[RecodedRow | None]:
        """Recode each row of a table given by columns."""
        columns = list(texts.values())
        if self.regions is None:
            return [
                tuple(self._at_level(name, text) for name, text in zip(texts, row, strict=True))
                for row in zip(*columns, strict=True)
            ]
        if self.regions.classes is None:
            return [self._by_cuts(dict(zip(texts, row, strict=True))) for row in zip(*columns, strict=True)]
        return self._by_classes(texts)

    def as_is(self, name: str) -> bool:
        """Return whether a column is released unchanged."""
        if self.regions is not None:
            return self.regions.labels[name] is None
        return self._level(name) == 0 and name not in self.policy.as_bounds

    def _level(self, name: str) -> int:
        return (self.levels or {})[name]

    def _at_level(self, name: str, text: _Text) -> tuple[CellValue, ...]:
        if (name, text) not in self._labels:
            bound = self._bound(name, text)  # raises for a value that the rule does not cover
            labels = level_labels(bound, self._level(name), bounds=name in self.policy.as_bounds)
            code = bound.groups(self._level(name))[0]
            shown = (text,) if labels is None else tuple(values[code] for values in labels.values())
            self._labels[name, text] = shown
        return self._labels[name, text]

    def _by_cuts(self, row: Mapping[str, _Text]) -> RecodedRow | None:
        """Recode each value to the first group that covers it."""
        cells = []
        for name, text in row.items():
            groups = np.flatnonzero(self._covering(name, text))
            if not len(groups):
                return None
            cells.append(self._shown(name, text, int(groups[0])))
        return tuple(cells)

    def _by_classes(self, texts: Mapping[str, Sequence[_Text]]) -> list[RecodedRow | None]:
        """Recode each row to the narrowest class that covers all its values."""
        if self.regions is None or self.regions.classes is None or self.order is None:
            raise TypeError
        classes = self.regions.classes[:, self.order]
        size = len(next(iter(texts.values())))
        result: list[RecodedRow | None] = []
        step = max(1, _CELLS // max(1, classes.shape[1]))
        for start in range(0, size, step):
            part = {name: column[start : start + step] for name, column in texts.items()}
            inside = np.ones((len(next(iter(part.values()))), classes.shape[1]), np.bool_)
            for (name, column), groups in zip(part.items(), classes, strict=True):
                inside &= np.stack([self._covering(name, text) for text in column])[:, groups]
            first = np.where(inside.any(axis=1), inside.argmax(axis=1), -1).tolist()
            for index, row in zip(first, zip(*part.values(), strict=True), strict=True):
                cells = zip(part, row, classes[:, index].tolist(), strict=True)
                result.append(None if index < 0 else tuple(self._shown(*cell) for cell in cells))
        return result

    def _shown(self, name: str, text: _Text, group: int) -> tuple[CellValue, ...]:
        labels = self.regions.labels[name] if self.regions else None
        return (text,) if labels is None else tuple(shown[group] for shown in labels.values())

    def _covering(self, name: str, text: _Text) -> Any:
        if self.regions is None:
            raise TypeError
        if (name, text) not in self._covers:
            from shoal.core.recoding.matching import covering

            self._covers[name, text] = covering(self._bound(name, text), self.regions.covers[name])
        return self._covers[name, text]

    def _bound(self, name: str, text: _Text) -> Hierarchy:
        """Return the hierarchy that a column's rule builds from one value alone."""
        return self.policy.builder(name).bind(Domain(name, (text,), (text,)))


def row_recoder(
    policy: Policy, problem: Problem, evaluation: Evaluation, regions: Saved | None
) -> RowRecoder | str:
    """Return a recoder for single rows, or the reason why rows cannot be recoded independently."""
    recoding = evaluation.recoding
    if recoding is None:
        levels = dict(zip(problem.lattice.columns, evaluation.node, strict=True))
        return RowRecoder(policy, levels, None, None)
    if evaluation.node:
        return "its cells are generalized or blanked depending on how many records share their values"
    if recoding.regions is None or regions is None or recoding.regions.split:
        return "it divides equal records at random"
    order = None
    if regions.classes is not None:
        released_groups = recoding.regions.groups[:, ~recoding.regions.suppressed]
        columns = zip(recoding.column_groups, problem.hierarchies, released_groups, strict=True)
        shares = [column_groups.shares(hierarchy)[codes] for column_groups, hierarchy, codes in columns]
        order = np.argsort(np.sum(shares, axis=0), kind="stable")
    return RowRecoder(policy, None, regions, order)
