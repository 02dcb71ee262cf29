"""A transformer for scikit-learn: `fit` finds a recoding, `transform` applies it, row by row in place.

A transformer keeps the number and the order of rows, which a release must not: what comes out here is for a
pipeline within the custodian's walls, and `shoal.anonymize` makes what leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.anonymize import anonymize
from shoal.apply import apply
from shoal.choose import AUTO, engine_for
from shoal.core.contracts import Engine
from shoal.core.schema import Role
from shoal.engines.frames import arrow_of
from shoal.errors import Infeasible, PolicyError, UsageError
from shoal.policies.guesses import guess_column
from shoal.policy import Policy
from shoal.problem import counted, problem_of
from shoal.recipe import Recipe, recipe_of

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils import validation
    from sklearn.utils._set_output import _get_output_config
except ImportError as error:
    _message = "shoal.sklearn needs scikit-learn. Install it with: pip install 'shoal[ml]'."
    raise ImportError(_message) from error

_ROW = "row number"


class Anonymizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Recode a table so that every record looks like at least k-1 others, within a pipeline.

    `policy` (a policy, a mapping or a file) says all that is wanted. Where there is none, the other
    parameters do: `quasi_identifiers` (all columns that are not sensitive, where none are named),
    `hierarchies` (column -> rule; what is not named gets what `shoal init` would guess), `sensitive`, `k`,
    `suppression_limit`, `metric` and `algorithm`. `seconds` bounds the search.

    Rows are never dropped. `suppressed="mask"` empties the quasi-identifiers and the sensitive columns of
    records that fall short, in `fit` within the limit, in `transform` however many; `"keep"` leaves them as
    recoded in `transform`, below k.
    """

    def __init__(
        self,
        policy: Policy | Mapping[str, Any] | str | Path | None = None,
        *,
        quasi_identifiers: Sequence[str] | None = None,
        hierarchies: Mapping[str, Any] | None = None,
        k: int = 5,
        suppression_limit: float | str = 0.0,
        algorithm: str | Mapping[str, Any] = "auto",
        metric: str | Mapping[str, Any] = "non-uniform-entropy",
        suppressed: str = "mask",
        sensitive: Sequence[str] = (),
        seconds: float | None = None,
    ) -> None:
        self.policy = policy
        self.quasi_identifiers = quasi_identifiers
        self.hierarchies = hierarchies
        self.k = k
        self.suppression_limit = suppression_limit
        self.algorithm = algorithm
        self.metric = metric
        self.suppressed = suppressed
        self.sensitive = sensitive
        self.seconds = seconds

    def fit(self, X: Any, y: Any = None) -> Anonymizer:  # noqa: N803
        """Count the table and search for the recoding of least loss; y is not looked at."""
        if self.suppressed not in ("mask", "keep"):
            message = (
                f"suppressed must be 'mask' or 'keep', got {self.suppressed!r}: a transformer keeps rows. "
                "shoal.anonymize drops records."
            )
            raise ValueError(message)
        table = self._table(X, reset=True)
        engine = engine_for(AUTO, table)
        try:
            return self._found(table, engine)
        finally:
            engine.close()

    def _found(self, table: pa.Table, engine: Engine) -> Anonymizer:
        """Search, and keep what applies the recoding again."""
        opened = engine.open(table)
        policy = self._wanted(table, opened, engine)
        least = _least(policy)
        if len(table) < least:
            message = f"Found n_samples={len(table)}, fewer than the {least} records that a class must have."
            raise ValueError(message)
        release = anonymize(table, policy, seconds=self.seconds)
        if release.apart:
            message = "Algorithm 'anatomy' releases two tables, which a transformer cannot. Use another."
            raise UsageError(message)
        counts, domains = counted(opened, policy, engine)
        problem = problem_of(policy, counts, domains, None, engine.memory)
        self.recipe_ = recipe_of(policy, problem, release.evaluation, domains)
        self._columns_out = release.table.column_names
        self.release_ = replace(release, table=None)  # no row stays with a transformer
        self.levels_ = release.levels
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Recode rows as was found, in their order; values that are new follow the hierarchies' rules."""
        validation.check_is_fitted(self)
        table = self._table(X, reset=False)
        recipe = Recipe.load(self.recipe_)
        row = _free(_ROW, table.column_names)
        numbered = table.append_column(row, pa.array(np.arange(len(table))))
        wish = _relaxed(recipe, row, keep=self.suppressed == "keep")
        try:
            recoded = apply(wish, numbered).table
        except Infeasible:  # no class is left
            recoded = None
        found = self._in_order(table, recoded, recipe.policy, row)
        return _shown(found, _get_output_config("transform", self)["dense"], getattr(X, "index", None))

    def _in_order(self, table: pa.Table, recoded: pa.Table | None, policy: Policy, row: str) -> pa.Table:
        """Put the recoded rows where they were, and empty those that are not among them."""
        places = np.full(len(table), -1)
        if recoded is not None:
            places[recoded[row].to_numpy()] = np.arange(len(recoded))
            if self.suppressed == "mask":
                places = _crowded(places, table, recoded, policy)
        if recoded is None:
            blank = pa.nulls(len(table), pa.string())
            found = dict.fromkeys(self._columns_out, blank)
        else:
            taken = pa.array(places, mask=places < 0)
            found = {name: recoded[name].take(taken) for name in self._columns_out}
        for name in policy.roles.of(Role.OTHER):  # as they are, whatever became of the record
            found[name] = table[name]
        return pa.table(found)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Name the columns that come out: all but identifiers."""
        validation.check_is_fitted(self)
        given = validation._check_feature_names_in(self, input_features)
        names = dict(zip(self._names(), given, strict=True))
        return np.array([names.get(name, name) for name in self._columns_out], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _names(self) -> list[str]:
        """Name the columns that go in: as they are, or x0, x1, ..."""
        named = getattr(self, "feature_names_in_", None)
        return [f"x{place}" for place in range(self.n_features_in_)] if named is None else list(named)

    def _table(self, X: Any, *, reset: bool) -> pa.Table:  # noqa: N803
        """Check the input as scikit-learn does and turn it into a table."""
        if hasattr(X, "columns") or isinstance(X, pa.Table):
            _validated(self, X, reset=reset, as_is=True)
            table = arrow_of(X)
            if not len(table):
                message = (
                    f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required."
                )
                raise ValueError(message)
            return table.rename_columns(self._names())
        found = _validated(self, X, reset=reset, as_is=False)
        columns = [_column(found[:, place]) for place in range(found.shape[1])]
        return pa.Table.from_arrays(columns, names=self._names())

    def _wanted(self, table: pa.Table, opened: Any, engine: Engine) -> Policy:
        """Return the policy, or make one of the parameters."""
        policy = Policy.load(self._short(table, opened, engine) if self.policy is None else self.policy)
        # Rows that are dropped here are emptied in their places.
        return policy.with_(suppressed="drop")

    def _short(self, table: pa.Table, opened: Any, engine: Engine) -> dict[str, Any]:
        """Write a policy from the parameters that stand in for one."""
        names, sensitive = table.column_names, list(self.sensitive)
        quasi = self.quasi_identifiers
        quasi = [name for name in names if name not in sensitive] if quasi is None else list(quasi)
        given = dict(self.hierarchies or {})
        for kind, wanted in (("quasi_identifiers", quasi), ("sensitive", sensitive), ("hierarchies", given)):
            absent = [name for name in wanted if name not in names]
            if absent:
                message = (
                    f"{kind} names columns that the table does not have: {', '.join(map(repr, absent))}."
                )
                raise PolicyError(message)
        guessed = _guessed(opened, engine, [name for name in quasi if name not in given])
        columns: dict[str, Any] = {}
        for name in names:
            role = "quasi-identifier" if name in quasi else "sensitive" if name in sensitive else "other"
            columns[name] = {"role": role}
            rule = given.get(name, guessed.get(name))
            if rule is not None:
                columns[name]["hierarchy"] = rule
        return {
            "columns": columns,
            "models": [{"k-anonymity": {"k": self.k}}],
            "suppression_limit": self.suppression_limit,
            "algorithm": self.algorithm,
            "metric": self.metric,
        }


def _validated(estimator: Anonymizer, X: Any, *, reset: bool, as_is: bool) -> Any:  # noqa: N803
    """Let scikit-learn check the input: names and number of columns, and that an array is one."""
    if hasattr(validation, "validate_data"):
        checks = {"skip_check_array": True} if as_is else {"dtype": None, "ensure_all_finite": False}
        return validation.validate_data(estimator, X, reset=reset, **checks)
    if not as_is:  # before scikit-learn 1.6
        return estimator._validate_data(X, reset=reset, dtype=None, force_all_finite=False)
    estimator._check_feature_names(X, reset=reset)
    estimator._check_n_features(X, reset=reset)
    return X


def _guessed(opened: Any, engine: Engine, names: Sequence[str]) -> dict[str, Any]:
    """Guess a hierarchy for each column, as `shoal init` does."""
    if not names:
        return {}
    counts, domains = engine.count(opened, names)
    return {
        name: guess_column(name, counts.project([place]), domains[name]).hierarchy
        for place, name in enumerate(names)
    }


def _least(policy: Policy) -> int:
    """Return how many records every class must have."""
    return max(model.least_size for model in policy.privacy_models)


def _relaxed(recipe: Recipe, row: str, *, keep: bool) -> Recipe:
    """Let any number of records fall short, or any class be kept, and number the rows."""
    policy = recipe.policy
    written = policy.model_dump(mode="json", exclude_unset=True)["columns"]
    changes: dict[str, Any] = {"columns": {**written, row: {"role": "other"}}, "suppression_limit": "100%"}
    if recipe.levels is not None:  # nothing is left to search but what refines a node
        changes["algorithm"] = {"auto": dict(policy.finishing)}
    if keep:
        changes["models"] = [{"k-anonymity": {"k": 1}}]
    return replace(recipe, policy=policy.with_(**changes))


def _crowded(places: np.ndarray, table: pa.Table, recoded: pa.Table, policy: Policy) -> np.ndarray:
    """Empty more rows where those that are empty would be a class of too few: the smallest classes join."""
    empty = places < 0
    if not empty.any() or _crowd(empty, table, policy):
        return places
    quasi = [shown for name in policy.roles.quasi_identifiers for shown in policy.released(name)]
    named = [f"q{place}" for place in range(len(quasi))]
    held = pa.table(
        [*recoded.select(quasi).columns, pa.array(np.arange(len(recoded)))], names=[*named, "row"]
    )
    classes = held.group_by(named, use_threads=False).aggregate([("row", "list")])["row_list"].to_pylist()
    for members in sorted(classes, key=lambda members: (len(members), members)):
        empty |= np.isin(places, members)
        if _crowd(empty, table, policy):
            break
    return np.where(empty, -1, places)


def _crowd(rows: np.ndarray, table: pa.Table, policy: Policy) -> bool:
    """Tell whether rows are as many, in persons too, as every model wants in a class."""
    return all(
        rows.sum() >= model.least_size
        and (
            model.unit_column is None
            or len(table[model.unit_column].filter(pa.array(rows)).unique()) >= model.least_size
        )
        for model in policy.privacy_models
    )


def _free(name: str, taken: Sequence[str]) -> str:
    """Return a name that no column has, whatever its case."""
    known = {other.lower() for other in taken}
    while name in known:
        name += "_"
    return name


def _column(values: np.ndarray) -> pa.Array:
    """Turn a column into arrow; what is of several types becomes text, and what is no number is missing."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if value is None else str(value) for value in values.tolist()], pa.string())


def _shown(table: pa.Table, kind: str, index: Any) -> Any:
    """Return a frame of the kind that set_output asks for, or an array."""
    if kind == "pandas":
        frame = table.to_pandas()
        return frame if index is None else frame.set_index(index)
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    return _array(table.columns)


def _array(columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    """Put columns side by side: numbers where all are, else objects, None where nothing is."""
    numeric = all(pa.types.is_integer(c.type) or pa.types.is_floating(c.type) for c in columns)
    if numeric:
        return np.column_stack([column.to_numpy() for column in columns])
    found = np.empty((len(columns[0]), len(columns)), dtype=object)
    for place, column in enumerate(columns):
        found[:, place] = column.to_pylist()
    return found
