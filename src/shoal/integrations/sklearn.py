"""A transformer for scikit-learn: `fit` finds a recoding, `transform` applies it to each row separately.

The output keeps the number and the order of rows, so it can be joined with the input row by row. It is meant
for a pipeline within the custodian's organization. Use `shoal.anonymize` for data that leaves it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.guesses import guess_column
from shoal.core.contracts import Engine, ReleaseColumns, Role
from shoal.engines.frames import Frame, arrow_of, library_of, text_column
from shoal.engines.relational.relations import POSITION, texts_of
from shoal.engines.unchanged import release_frame
from shoal.errors import HierarchyError, PolicyError, UsageError
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.release.anonymize import anonymize, apply
from shoal.workflow.release.recipe import Recipe, RecodedRow, RowRecoder, fingerprint, recipe_of, row_recoder
from shoal.workflow.session import Session, session

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils import validation
    from sklearn.utils._set_output import _get_output_config
except ImportError as error:
    raise ImportError(
        "shoal.sklearn needs scikit-learn. Install it with: pip install 'shoal[ml]'."
    ) from error

_ROW = "row number"


class Anonymizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Recode tables in a pipeline, with a recoding that satisfies a policy's models on the fitted data.

    `policy` (a policy, a mapping or a file) has all settings of the release. Without it, the other
    parameters apply: `quasi_identifiers` (default: all columns that are not sensitive),
    `hierarchies` (column -> rule; for other columns the rule that `shoal init` guesses), `sensitive`, `k`,
    `suppression_limit`, `metric` and `algorithm`. `seconds` bounds the search (None: no limit).

    Rows are never dropped, and the result of a row does not depend on other rows. With `suppressed="mask"`, a
    row keeps its recoded values only if its class was kept in `fit`. In all other rows, quasi-identifiers and
    sensitive columns become missing. With `"keep"`, they become missing only in rows that the recoding does
    not cover. The class sizes in new data are not checked.

    Some recodings depend on the whole table: those of mu-argus, of mondrian with `relaxed`, and those that
    `refine` or `cells` changed. Then `transform` raises UsageError for data other than the fitted data.
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
        seconds: float | None = 20.0,
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
        """Count the table and search for the recoding of least loss; y is ignored."""
        if self.suppressed not in ("mask", "keep"):
            raise ValueError(
                f"suppressed must be 'mask' or 'keep', got {self.suppressed!r}: a transformer keeps rows. "
                "shoal.anonymize drops records."
            )
        table = self._table(X, reset=True)
        with session(table) as s:
            return self._learn(table, s)

    def _learn(self, table: pa.Table, s: Session) -> Anonymizer:
        """Search for a recoding, and store the attributes that `transform` needs."""
        policy = self._policy_of(table, s.table.table, s.engine)
        least = max(model.least_size for model in policy.privacy_models)
        if len(table) < least:
            raise ValueError(
                f"Found n_samples={len(table)}, fewer than the {least} records that a class must have."
            )
        release = anonymize(table, policy, seconds=self.seconds)
        if release.separate_column:
            raise UsageError(
                "Algorithm 'anatomy' releases two tables, which a transformer cannot. Use another."
            )
        counts, domains = counted(s.table, policy)
        problem = problem_of(policy, counts, domains, None, s.engine.memory)
        self.recipe_ = recipe_of(policy, problem, release.evaluation, domains)
        recipe = Recipe.load(self.recipe_)
        self._as_is = release.as_is
        self._schema = release.table.schema
        self._recoder = row_recoder(recipe.policy, problem, release.evaluation, recipe.regions)
        if isinstance(self._recoder, RowRecoder):
            self._learn_classes(table, release.table, policy, self._recoder)
        self.release_ = replace(release, table=None)  # the transformer keeps no rows
        self.levels_ = release.levels
        return self

    def _learn_classes(
        self, table: pa.Table, released: pa.Table, policy: Policy, recoder: RowRecoder
    ) -> None:
        """Store the classes of the release; leave out the smallest if too few records would be masked."""
        rows = recoder.rows(_texts(table, policy))
        classes = Counter(_released_rows(released, policy, recoder))
        if Counter(row for row in rows if row in classes) != classes:
            self._recoder = "the group of a value depends on the other values of its column"
            return
        empty = np.array([row not in classes for row in rows])
        for smallest in sorted(classes, key=lambda row: (classes[row], repr(row))):
            if not empty.any() or _are_enough(empty, table, policy):
                break
            del classes[smallest]
            empty |= np.array([row == smallest for row in rows])
        self._classes = frozenset(classes)

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Recode each row with the fitted recoding; new values follow the rules of the hierarchies."""
        validation.check_is_fitted(self)
        table = self._table(X, reset=False)
        policy = Recipe.load(self.recipe_).policy
        if isinstance(self._recoder, RowRecoder):
            return self._shown(X, table, *self._row_by_row(table, policy, self._recoder))
        return self._shown(X, table, *self._transform_fitted(table, policy, self._recoder))

    def _row_by_row(
        self, table: pa.Table, policy: Policy, recoder: RowRecoder
    ) -> tuple[dict[str, pa.Array], dict[str, np.ndarray]]:
        """Return the recoded columns, and for each unchanged column, the rows that become missing."""
        rows = recoder.rows(_texts(table, policy))
        if self.suppressed == "mask":
            rows = [row if row in self._classes else None for row in rows]
        changed = {}
        for position, name in enumerate(policy.roles.quasi_identifiers):
            for side, column in enumerate(() if recoder.as_is(name) else policy.released(name)):
                values = [None if row is None else row[position][side] for row in rows]
                changed[column] = pa.array(values, self._schema.field(column).type)
        empty = np.array([row is None for row in rows])
        return changed, dict.fromkeys((*self._as_is, *policy.roles.sensitive), empty)

    def _normalized(self, name: str, column: pa.ChunkedArray, empty: np.ndarray) -> pa.ChunkedArray:
        """Convert values that count as equal, such as 1 and "1", to the same value."""
        kind = self._schema.field(name).type
        if column.type != kind and pa.types.is_string(kind):
            column = pa.chunked_array([_column_texts(column)], kind)
        elif column.type != kind:
            with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                column = column.cast(kind)
        column = column.take(pa.array(np.arange(len(column)), mask=empty))
        return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column

    def _transform_fitted(
        self, table: pa.Table, policy: Policy, reason: str
    ) -> tuple[dict[str, pa.Array], dict[str, np.ndarray]]:
        """Apply the recipe to the whole table, which must be the fitted data."""
        if not self._is_fitted_data(table, policy):
            raise UsageError(
                f"transform takes only the data that was fitted: {reason}, so a row's result would depend on "
                "the rows that are passed with it. Use an algorithm that recodes each row by itself: auto "
                "without refine and cells, tds, or mondrian without relaxed."
            )
        row = _unused_name(_ROW, table.column_names)
        numbered = table.append_column(row, pa.array(np.arange(len(table))))
        recoded = apply(_numbered(Recipe.load(self.recipe_), row), numbered).table
        positions = np.full(len(table), -1)
        positions[recoded[row].to_numpy()] = np.arange(len(recoded))
        positions = _with_enough_rows(positions, table, recoded, policy)
        aligned = recoded.take(pa.array(positions, mask=positions < 0))
        as_is = (*self._as_is, *policy.roles.sensitive)
        blank = {name: aligned[name].is_null().to_numpy() for name in as_is}
        others = {*as_is, *policy.roles.of(Role.OTHER), row}
        return {name: aligned[name] for name in aligned.column_names if name not in others}, blank

    def _is_fitted_data(self, table: pa.Table, policy: Policy) -> bool:
        """Return whether a table has the same counts as the fitted data."""
        known = self.recipe_["fingerprints"]
        with session(table) as s:
            try:
                counts, domains = counted(s.table, policy)
                problem = problem_of(policy, counts, domains, None, s.engine.memory)
            except HierarchyError:
                return False
            return bool(fingerprint(known["key"], problem, domains) == known["input"])

    def _shown(
        self, source: Any, table: pa.Table, changed: Mapping[str, Any], blank: Mapping[str, np.ndarray]
    ) -> Any:
        """Return the result as the type that set_output selects: an array or a data frame."""
        kind = _get_output_config("transform", self)["dense"]
        same = library_of(source) == kind
        read = Frame(_named(source, self._names(), self._as_is) if same else table, table)
        changed = dict(changed) | {
            name: self._normalized(name, table[name], blank[name])
            for name in self._as_is
            if not same or _ambiguous(source, self._names().index(name))
        }
        flags = {name: pa.array(np.ones(len(table), bool), mask=empty) for name, empty in blank.items()}
        recoded = pa.table({POSITION: np.arange(len(table)), **flags, **changed})
        order = tuple(self._schema.names)
        unchanged = tuple(name for name in order if name not in changed)
        frame, _ = release_frame(read, recoded, ReleaseColumns(order, unchanged))
        if not same:
            frame = _converted(frame, kind)
        index = getattr(source, "index", None)
        return frame if kind != "pandas" or index is None else frame.set_axis(index, axis=0)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the names of the output columns: all except identifiers."""
        validation.check_is_fitted(self)
        input_names = validation._check_feature_names_in(self, input_features)
        names = dict(zip(self._names(), input_names, strict=True))
        return np.array([names.get(name, name) for name in self._schema.names], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _names(self) -> list[str]:
        """Return the names of the input columns: those of the data frame or, for an array, x0, x1, ..."""
        input_names = getattr(self, "feature_names_in_", None)
        return (
            [f"x{index}" for index in range(self.n_features_in_)]
            if input_names is None
            else list(input_names)
        )

    def _table(self, X: Any, *, reset: bool) -> pa.Table:  # noqa: N803
        """Check the input as scikit-learn does and convert it to a table."""
        if hasattr(X, "columns") or isinstance(X, pa.Table):
            validation.validate_data(self, X, reset=reset, skip_check_array=True)
            table = arrow_of(X)
            if not len(table):
                raise ValueError(
                    f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required."
                )
            return table.rename_columns(self._names())
        array = validation.validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        columns = [_column(array[:, index]) for index in range(array.shape[1])]
        return pa.Table.from_arrays(columns, names=self._names())

    def _policy_of(self, table: pa.Table, source: Any, engine: Engine) -> Policy:
        policy = Policy.load(
            self._policy_from_parameters(table, source, engine) if self.policy is None else self.policy
        )
        # The release drops suppressed records; the transformer keeps their rows, with missing values.
        return policy.with_(suppressed="drop")

    def _policy_from_parameters(self, table: pa.Table, source: Any, engine: Engine) -> dict[str, Any]:
        names, sensitive = table.column_names, list(self.sensitive)
        quasi = self.quasi_identifiers
        quasi = [name for name in names if name not in sensitive] if quasi is None else list(quasi)
        rules = dict(self.hierarchies or {})
        for kind, requested in (
            ("quasi_identifiers", quasi),
            ("sensitive", sensitive),
            ("hierarchies", rules),
        ):
            missing = [name for name in requested if name not in names]
            if missing:
                raise PolicyError(
                    f"{kind} names columns that the table does not have: {', '.join(map(repr, missing))}."
                )
        guessed = _guessed(source, engine, [name for name in quasi if name not in rules])
        columns: dict[str, Any] = {}
        for name in names:
            role = "quasi-identifier" if name in quasi else "sensitive" if name in sensitive else "other"
            columns[name] = {"role": role}
            rule = rules.get(name, guessed.get(name))
            if rule is not None:
                columns[name]["hierarchy"] = rule
        return {
            "columns": columns,
            "models": [{"k-anonymity": {"k": self.k}}],
            "suppression_limit": self.suppression_limit,
            "algorithm": self.algorithm,
            "metric": self.metric,
        }


def _guessed(source: Any, engine: Engine, names: Sequence[str]) -> dict[str, Any]:
    """Guess a hierarchy for each column, as `shoal init` does."""
    counted_columns = zip(names, engine.count_each(source, names), strict=True)
    return {name: guess_column(name, counts, domain).hierarchy for name, (counts, domain) in counted_columns}


def _texts(table: pa.Table, policy: Policy) -> dict[str, list[str | None]]:
    """Return the quasi-identifiers of each row as the texts that hierarchies use."""
    return {name: _column_texts(table[name]) for name in policy.roles.quasi_identifiers}


def _column_texts(column: pa.ChunkedArray) -> list[str | None]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    texts = texts_of(encoded.dictionary)
    return [texts[code] for code in encoded.indices.to_pylist()]


def _released_rows(released: pa.Table, policy: Policy, recoder: RowRecoder) -> list[RecodedRow]:
    """Return the released quasi-identifiers of each row, in the form of `RowRecoder.rows`."""
    columns = []
    for name in policy.roles.quasi_identifiers:
        if recoder.as_is(name):
            columns.append([(text,) for text in _column_texts(released[name])])
        else:
            shown = [released[column].to_pylist() for column in policy.released(name)]
            columns.append(list(zip(*shown, strict=True)))
    return list(zip(*columns, strict=True))


def _numbered(recipe: Recipe, row: str) -> Recipe:
    """Return a recipe that also releases the column with the row numbers."""
    written = recipe.policy.model_dump(mode="json", exclude_unset=True)["columns"]
    return replace(recipe, policy=recipe.policy.with_(columns={**written, row: {"role": "other"}}))


def _named(frame: Any, names: Sequence[str], counted: Sequence[str]) -> Any:
    """Rename the columns of a frame in their order; in the columns of `counted`, replace -0.0 by 0.0."""
    if library_of(frame) == "pandas":
        frame = frame.set_axis(names, axis=1)
        floating = [
            name for name in counted if str(frame[name].dtype).lower().startswith(("float", "double"))
        ]
        return frame.assign(**{name: frame[name] + 0.0 for name in floating})
    import polars

    frame = frame.lazy().collect().rename(dict(zip(frame.collect_schema().names(), names, strict=True)))
    return frame.with_columns(polars.col(name) + 0.0 for name in counted if frame[name].dtype.is_float())


def _ambiguous(frame: Any, index: int) -> bool:
    """Return whether different values may count as equal: in columns of objects or times with a zone."""
    kind = (
        frame.dtypes.iloc[index] if library_of(frame) == "pandas" else frame.collect_schema().dtypes()[index]
    )
    zone = getattr(getattr(kind, "pyarrow_dtype", kind), "tz", None) or getattr(kind, "time_zone", None)
    return str(kind).lower() == "object" or zone is not None


def _with_enough_rows(order: np.ndarray, table: pa.Table, recoded: pa.Table, policy: Policy) -> np.ndarray:
    """Return positions of rows; if too few rows are empty, also empty those of the smallest classes."""
    empty = order < 0
    if not empty.any() or _are_enough(empty, table, policy):
        return order
    quasi = [shown for name in policy.roles.quasi_identifiers for shown in policy.released(name)]
    named = [f"q{index}" for index in range(len(quasi))]
    rows = pa.table(
        [*recoded.select(quasi).columns, pa.array(np.arange(len(recoded)))], names=[*named, "row"]
    )
    classes = rows.group_by(named, use_threads=False).aggregate([("row", "list")])["row_list"].to_pylist()
    for members in sorted(classes, key=lambda members: (len(members), members)):
        empty |= np.isin(order, members)
        if _are_enough(empty, table, policy):
            break
    return np.where(empty, -1, order)


def _are_enough(rows: np.ndarray, table: pa.Table, policy: Policy) -> bool:
    """Return whether the rows (and their persons, if a model counts them) are enough for one class."""
    return all(
        rows.sum() >= model.least_size
        and (
            model.unit_column is None
            or len(table[model.unit_column].filter(pa.array(rows)).unique()) >= model.least_size
        )
        for model in policy.privacy_models
    )


def _unused_name(name: str, names: Sequence[str]) -> str:
    known = {other.lower() for other in names}
    while name in known:
        name += "_"
    return name


def _column(values: np.ndarray) -> pa.Array:
    """Convert a column to Arrow. Mixed types become text, and NaN becomes a missing value."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return text_column(values.tolist())


def _converted(table: pa.Table, kind: str) -> Any:
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    return _array(table.columns)


def _array(columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    """Return a 2-d array: of numbers if no number loses digits, otherwise of objects with None."""
    numeric = all(pa.types.is_integer(c.type) or pa.types.is_floating(c.type) for c in columns)
    all_integers = all(pa.types.is_integer(c.type) and not c.null_count for c in columns)
    if numeric and (all_integers or all(map(_fits_float, columns))):
        return np.column_stack([column.to_numpy() for column in columns])
    array = np.empty((len(columns[0]), len(columns)), dtype=object)
    for index, column in enumerate(columns):
        array[:, index] = column.to_pylist()
    return array


def _fits_float(column: pa.ChunkedArray) -> bool:
    """Return whether the numbers of a column lose no digits as floats."""
    if not pa.types.is_integer(column.type):
        return True
    ends = pc.min_max(column)
    return all(end is None or abs(end) <= 2**53 for end in (ends["min"].as_py(), ends["max"].as_py()))
