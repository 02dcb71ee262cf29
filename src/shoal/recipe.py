"""Recipes: what the custodian keeps to apply a recoding again, and the audit of what was done."""

from __future__ import annotations

import hashlib
import hmac
import json
import platform
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.counts import Domain
from shoal.core.evaluation import Evaluation
from shoal.core.listed import Csv
from shoal.core.matching import Saved, saved
from shoal.core.numbers import Banded
from shoal.core.problem import Problem
from shoal.engines.names import TABLE_FILES
from shoal.errors import PolicyError
from shoal.policy import Policy, named
from shoal.sensitive import Reference, reference_of

if TYPE_CHECKING:
    from shoal.verify import Verification

_FORMAT = 1
_WHERE = "Give recipe.json, from the private folder of a release."


@dataclass(frozen=True)
class Recipe:
    """A policy and the levels that were found for it."""

    policy: Policy
    levels: dict[str, int] | None  # None where the recoding began with no node
    regions: Saved | None
    reference: Reference  # how often each sensitive value occurred in the whole input

    @classmethod
    def load(cls, source: Recipe | Mapping[str, Any] | str | Path) -> Recipe:
        """Read a recipe from its file or from the private folder that holds it."""
        if isinstance(source, Recipe):
            return source
        data = source if isinstance(source, Mapping) else _read(Path(source))
        if data.get("recipe") != _FORMAT:
            raise PolicyError(_no_recipe(data))
        levels, files = data.get("levels", ()), data.get("hierarchy_files")
        if not isinstance(levels, Mapping | None) or not isinstance(files, Mapping):
            raise PolicyError(_damaged("it lacks its levels or its hierarchies"))
        policy = Policy.load(data.get("policy")).with_files(files)  # type: ignore[arg-type]
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
        return cls(policy, levels, regions, reference)


def _regions(data: Any, quasi: tuple[str, ...]) -> Saved:
    """Check what was saved of a recoding by regions."""
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
    return Saved(labels, covers, classes)


def _is_cover(cover: Any) -> bool:
    """Tell whether this says what a group stands for."""
    if "blank" in cover:
        return True
    if "values" in cover:
        return all(isinstance(value, str | None) for value in cover["values"])
    if "level" in cover:
        return type(cover["level"]) is int and cover["level"] >= 0 and isinstance(cover["label"], str)
    low, high = cover.get("ends", (0, 0))
    return (
        isinstance(cover["missing"], bool) and isinstance(low, int | float) and isinstance(high, int | float)
    )


def _reference(data: object, records: object) -> Reference:
    """Check how often sensitive values occurred: column -> pairs of a text, or none, and a number.

    Each value stands once, and together they are in all records.
    """
    try:
        found = {name: [(text, number) for text, number in pairs] for name, pairs in data.items()}  # type: ignore[attr-defined]
        good = all(
            isinstance(text, str | None) and type(number) is int and number > 0
            for pairs in found.values()
            for text, number in pairs
        )
        for pairs in found.values():
            good &= len(dict(pairs)) == len(pairs) and sum(number for _, number in pairs) == records
    except (AttributeError, TypeError, ValueError):
        good = False
    if not good:
        raise PolicyError(_damaged("it does not tell how often sensitive values occurred"))
    return found


def _damaged(what: str) -> str:
    return f"The recipe is damaged: {what}. Take a copy that is whole, or anonymize anew."


def _no_recipe(data: Mapping[str, Any]) -> str:
    """Say of what is no recipe of this version where one is."""
    if "recipe" in data:
        return f"The recipe is of another version; shoal {version('shoal')} cannot read it. Anonymize anew."
    return f"This is no recipe. {_WHERE}"


def _read(path: Path) -> dict[str, Any]:
    path = path / "recipe.json" if path.is_dir() else path
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"Cannot read the recipe {str(path)!r}: {error.strerror}."
        raise PolicyError(message) from None
    except ValueError:
        message = f"{str(path)!r} is no recipe, or is damaged: it is not JSON. {_WHERE}"
        if path.suffix.lower() in TABLE_FILES:
            message = f"{str(path)!r} is a table, by its ending, and no recipe. Are the two swapped?"
        if (private := path.with_name(f"{path.name}.private")).is_dir():
            message = f"{str(path)!r} is a release. Its recipe is in {str(private)!r}."
        raise PolicyError(message) from None
    if not isinstance(data, dict):
        message = f"{str(path)!r} is no recipe, or is damaged: it is not an object. {_WHERE}"
        raise PolicyError(message)
    return data


def recipe_of(
    policy: Policy, problem: Problem, found: Evaluation, domains: Mapping[str, Domain]
) -> dict[str, Any]:
    """Write down a recoding so that it can be applied to new data and verified without the old."""
    needed = (*policy.roles.quasi_identifiers, *policy.sensitive_needed)
    rules = {name: policy.builder(name) for name in needed if policy.columns[name].hierarchy is not None}
    written = policy.written()
    if policy.population is not None:  # the recipe may be read from another folder
        place = {"population": str(policy.population.resolve())}
        models = [named(model) for model in policy.models]
        written["models"] = [{n: o | place if "population" in o else o} for n, o in models]
    for name, rule in rules.items():
        if isinstance(rule, Banded):  # new data must not change the style of the labels
            settled = rule.settled(domains[name].texts)
            written["columns"][name]["hierarchy"]["fractions"] = settled.fractions
    key = secrets.token_hex(32)
    # Groups of a sensitive column that is released apart are left to chance, each time anew.
    lasting = None if found.node or (found.recoding and found.recoding.apart) else found.recoding
    return {
        "recipe": _FORMAT,
        "shoal": version("shoal"),
        "python": platform.python_version(),
        "policy": written,
        "hierarchy_files": {name: rule.rows for name, rule in rules.items() if isinstance(rule, Csv)},
        "levels": dict(zip(problem.lattice.columns, found.node, strict=True)) if found.node else None,
        "regions": None if lasting is None else _written(saved(lasting)),
        "fixes": "levels" if found.node else "nothing" if lasting is None else "regions",
        "records": problem.records,
        "suppression_limit": problem.limit,
        "reference": reference_of(problem.counts, domains),
        "fingerprints": {"key": key, "input": fingerprint(key, problem, domains)},
    }


def _written(regions: Saved) -> dict[str, Any]:
    """Write regions as plain values."""
    names = regions.covers
    columns = {name: {"labels": regions.labels[name], "covers": regions.covers[name]} for name in names}
    classes = None if regions.classes is None else regions.classes.T.tolist()
    return {"columns": columns, "classes": classes}


def fingerprint(key: str, problem: Problem, domains: Mapping[str, Domain]) -> str:
    """Fingerprint the counted input under a key, so that the same input can be recognized by its keeper."""
    digest = hmac.new(bytes.fromhex(key), digestmod=hashlib.sha256)
    for name, domain in domains.items():
        digest.update(repr((name, domain.texts)).encode())
    for part in problem.counts.parts():
        digest.update(part)
    return digest.hexdigest()


def audit_of(result: Mapping[str, Any], verification: Verification) -> dict[str, Any]:
    """Write down what was done, proven and lost."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "result": {name: value for name, value in result.items() if name != "recipe"},
        "verification": verification.to_dict(),
        "packages": packages(),
    }


def packages() -> dict[str, str]:
    """Return the versions of what a result depends on."""
    return {name: version(name) for name in ("shoal", "numpy", "numba", "duckdb", "ibis-framework")}
