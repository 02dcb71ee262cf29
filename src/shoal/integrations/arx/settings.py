"""The settings of an ARX project as entries of a policy: columns, models, metric, suppression, weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from shoal.core.contracts import Role
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.lists import Csv
from shoal.errors import HierarchyError, ShoalError
from shoal.integrations.arx.project import Attribute, Project, Settings, printable
from shoal.integrations.arx.words import UnsupportedSettings, metric_of, models_of
from shoal.metrics import METRICS
from shoal.models import MODELS

_ROLES = {
    "IDENTIFYING_ATTRIBUTE": Role.IDENTIFIER,
    "QUASI_IDENTIFYING_ATTRIBUTE": Role.QUASI_IDENTIFIER,
    "SENSITIVE_ATTRIBUTE": Role.SENSITIVE,
    "INSENSITIVE_ATTRIBUTE": Role.OTHER,
}


class Columns:
    """Reads columns one by one, and collects the columns' hierarchies."""

    def __init__(self, project: Project, separator: str, unsupported: UnsupportedSettings) -> None:
        self.project = project
        self.separator = separator
        self.note = unsupported.note
        self.files: dict[str, list[list[str]]] = {}  # by file name
        self.rows: dict[str, list[list[str]]] = {}  # by column name

    def column(self, attribute: Attribute) -> dict[str, Any]:
        """Read a column's role, hierarchy and levels."""
        where = f"column {attribute.name!r}"
        role = _ROLES.get(attribute.type)
        if role is None:
            role = Role.IDENTIFIER
            self.note(
                where, f"its type {printable(attribute.type, 40)!r} is not known.", "It is an identifier."
            )
        column: dict[str, Any] = {"role": role.value}
        if attribute.unknown:
            entries = printable(", ".join(attribute.unknown))
            self.note(where, f"some of its entries are not known: {entries}.", "They are left out.")
        file = self.hierarchy(attribute)
        if role is Role.QUASI_IDENTIFIER:
            column |= self.levels(attribute, file)
        elif file and role is Role.SENSITIVE:
            column["hierarchy"] = {"csv": file}
        elif file:
            reason = f"it has a hierarchy, which a column with the role {role.value} does not use."
            self.note(where, reason, f"The hierarchy is in {file}.")
        if attribute.microaggregation:
            kind = printable(attribute.microaggregation, 60)
            nearest = "It is generalized; intervals with release_as: bounds keep numbers."
            self.note(where, f"shoal has no microaggregation ({kind}).", nearest)
        return column

    def hierarchy(self, attribute: Attribute) -> str | None:
        """Read a column's hierarchy and return the name of its file; None if it has no valid hierarchy."""
        if attribute.hierarchy is None:
            return None
        rows = self.project.rows(attribute.hierarchy, self.separator)
        file = _file_of(attribute.name, self.files)
        if not rows:
            self.note(f"column {attribute.name!r}", "its hierarchy is empty.", "It is left out.")
            return None
        self.files[file] = rows
        problem = _problem(attribute.name, rows)
        if problem:
            nearest = f"It is in {file} and can be corrected there. The column is read without it."
            self.note(f"column {attribute.name!r}", problem, nearest)
            return None
        self.rows[attribute.name] = rows
        return file

    def levels(self, attribute: Attribute, file: str | None) -> dict[str, Any]:
        """Read a quasi-identifier's hierarchy and the lowest and highest levels that are allowed."""
        if file is None and attribute.hierarchy is None and attribute.microaggregation is None:
            return {"hierarchy": "flat", "max_level": 0}  # ARX keeps such a column unchanged
        if file is None:
            return {"hierarchy": "flat"}
        column: dict[str, Any] = {"hierarchy": {"csv": file}}
        for option, text in (("min_level", attribute.minimum), ("max_level", attribute.maximum)):
            if re.fullmatch(r"\d{1,4}", text):
                column[option] = int(text)
            elif text != "All":
                what = f"{option.removesuffix('_level')} {printable(text, 20)!r}"
                self.note(
                    f"column {attribute.name!r}", f"its {what} is not a level.", "All levels are searched."
                )
        if column.get("min_level") == 0:
            del column["min_level"]
        return column


def _file_of(column: str, existing: Mapping[str, object]) -> str:
    r"""Return a file name for a column, without characters that are unsafe in a path.

    >>> _file_of("../age of\n person", {}), _file_of("sex", {"hierarchies/SEX.csv": 0})
    ('hierarchies/age-of-person.csv', 'hierarchies/sex-2.csv')
    """
    plain = re.sub(r"[^\w.-]+", "-", column).strip("-.")[:80] or "column"
    names = {name.lower() for name in existing}
    number, name = 1, f"hierarchies/{plain}.csv"
    while name.lower() in names:
        number += 1
        name = f"hierarchies/{plain}-{number}.csv"
    return name


def _problem(column: str, rows: list[list[str]]) -> str | None:
    """Describe what is wrong with a hierarchy without its values; return None if it is valid."""
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        return "the rows of its hierarchy differ in length."
    listed: dict[str, list[str]] = {}
    if any(listed.setdefault(row[0], row) != row for row in rows):
        return "its hierarchy lists a value twice, with other groups."
    try:
        texts = tuple(listed)
        Csv(csv="file", rows=tuple(map(tuple, rows))).bind(Domain(column, texts, texts))
    except HierarchyError as error:
        return str(error)
    return None


_STANDARD_WEIGHT = 0.5  # the default weight in ARX
_LEAST_WEIGHT = 1e-6


class Translation:
    """Converts settings to entries of a policy. The policy's columns must be read before."""

    def __init__(
        self, settings: Settings, columns: Mapping[str, dict[str, Any]], unsupported: UnsupportedSettings
    ) -> None:
        self.settings = settings
        self.columns = columns
        self.unsupported = unsupported
        self.note = unsupported.note

    def models(self) -> dict[str, Any]:
        """Read the privacy models; if none has a counterpart, use k-anonymity with k=5."""
        models: list[dict[str, dict[str, Any]]] = []
        for criterion in self.settings.criteria:
            read, unsupported = models_of(criterion)
            self.unsupported += unsupported
            models += [model for model in read if self.fits(model, criterion)]
        models = [model for index, model in enumerate(models) if model not in models[:index]]
        if not models:
            nearest = (
                "k-anonymity with k=5 is used instead, because a policy needs a model. Replace it as needed."
            )
            self.note("the privacy models", "none of them has a counterpart.", nearest)
            models = [{"k-anonymity": {"k": 5}}]
        return {"models": models}

    def fits(self, model: dict[str, dict[str, Any]], written: str) -> bool:
        """Return whether the options of a model are valid, and whether the model's column is sensitive."""
        ((name, options),) = model.items()
        setting = f"the model {printable(written)!r}"
        column = options.get("column")
        if column is not None and self.columns.get(column, {}).get("role") != "sensitive":
            reason = "it is about a column that the project does not have, or that is not sensitive."
            self.note(setting, reason, "Give the column the role sensitive and add the model.")
            return False
        if options.get("distance") == "hierarchical" and "hierarchy" not in self.columns[str(column)]:
            reason = "it measures distances along a hierarchy, and the column has none that fits."
            self.note(setting, reason, "The equal distance, which is at least as large, is used instead.")
            options["distance"] = "equal"
        try:
            MODELS.create(name, options)
        except ShoalError as error:
            self.note(setting, f"{error}", "It is left out.")
            return False
        return True

    def metric(self, attributes: list[Attribute]) -> dict[str, Any]:
        """Read the quality model and the label column."""
        name, unsupported = metric_of(self.settings.entries.get("metric", ""))
        self.unsupported += unsupported
        responses = [attribute.name for attribute in attributes if attribute.response]
        candidates = [name for name in responses if self.columns[name]["role"] in ("sensitive", "other")]
        label = {"label": candidates[0]} if len(candidates) == 1 else {}
        for other in responses:
            if label.get("label") != other:
                reason = "shoal takes only one response variable, and it must not be generalized."
                self.note(f"column {other!r}", reason, "label: names the column that is to be predicted.")
        if name == "classification" and not label:
            nearest = "non-uniform-entropy stands in."
            self.note("the quality model", "classification needs one column to predict.", nearest)
            name = "non-uniform-entropy"
        return {"metric": name, **label}

    def suppression(self) -> dict[str, Any]:
        """Read the suppression limit, and whether suppressed records are dropped or masked."""
        limit = self.limit(self.settings.entries.get("relativeMaxOutliers", ""))
        kinds = self.settings.suppressed_types
        if kinds is None:
            kinds = ("QUASI_IDENTIFYING_ATTRIBUTE",)
        keeps_sensitive = any(column["role"] == "sensitive" for column in self.columns.values())
        keeps_sensitive = keeps_sensitive and "SENSITIVE_ATTRIBUTE" not in kinds
        if keeps_sensitive or "INSENSITIVE_ATTRIBUTE" in kinds or "QUASI_IDENTIFYING_ATTRIBUTE" not in kinds:
            reason = (
                "ARX keeps a suppressed record with some columns blanked; shoal blanks quasi-identifiers and "
                "sensitive columns together, or drops the record."
            )
            self.note("which columns of a suppressed record are blanked", reason, "Such records are dropped.")
            return {"suppression_limit": limit}
        return {"suppression_limit": limit, "suppressed": "mask"}

    def limit(self, text: str) -> str:
        """Convert the limit from a fraction to a percentage."""
        try:
            share = Decimal(text)
            if not 0 <= share <= 1:
                raise InvalidOperation
        except InvalidOperation:
            self.note("the suppression limit", "it is not a fraction.", "No record is suppressed.")
            return "0%"
        return f"{(share * 100).normalize():f}%"

    def weights(self, metric: str) -> None:
        """Read the weights of the columns, unless all are equal."""
        quasi = {name for name, column in self.columns.items() if column["role"] == "quasi-identifier"}
        weights = dict.fromkeys(quasi, _STANDARD_WEIGHT)
        for name, text in self.settings.weights:
            try:
                weight = float(text)
                if not 0 <= weight < float("inf"):
                    raise ValueError
            except ValueError:
                self.note(f"the weight of column {name!r}", "it is not a number.", "It is left out.")
                continue
            if name in quasi:
                weights[name] = weight
        if len(set(weights.values())) <= 1:
            return
        if not METRICS.load(metric).weighted:
            self.note("the weights of columns", f"the metric {metric} has none.", "They are left out.")
            return
        for name in self.columns:
            if name in weights:
                self.columns[name]["weight"] = max(weights[name], _LEAST_WEIGHT)
                if weights[name] == 0:
                    reason = "with a weight of 0, generalizing the column would cost nothing."
                    self.note(f"the weight of column {name!r}", reason, "A very small one is used.")

    def types(self, attributes: list[Attribute], models: list[dict[str, dict[str, Any]]]) -> None:
        """Note the data types and formats that are ignored, and the models for which they matter."""
        ordered = {
            options["column"]
            for model in models
            for options in model.values()
            if options.get("distance") == "ordered"
        }
        for item in attributes:
            if item.name in ordered and item.datatype == "Ordered string":
                reason = "t-closeness uses the order of its values, which ARX stores in the data type."
                nearest = "Give the column a hierarchy {order: [...], sizes: [...]} with this order."
                self.note(f"column {item.name!r}", reason, nearest)
        typed = [item.name for item in attributes if item.datatype != "String" or item.format or item.locale]
        if typed:
            shown = ", ".join(map(repr, typed))
            reason = (
                f"those of {printable(shown, 400)} are not needed: a hierarchy's file lists values as text."
            )
            self.note("data types, formats and locales", reason, "Values must be written as in the project.")

    def other_settings(self, project: Project) -> None:
        """Note all other settings that are ignored."""
        entries = self.settings.entries
        if entries.get("practicalMonotonicity") == "true":
            reason = "ARX assumes that generalizing further never harms, which makes its search faster."
            self.note(
                "practical monotonicity", reason, "shoal makes no assumption, and reports what it proves."
            )
        for name, reason in _ENTRIES.items():
            if name in entries:
                self.note(f"{name} ({printable(entries[name], 20)})", reason, "It is left out.")
        for name in sorted(set(entries) - set(_ENTRIES) - _READ):
            self.note(f"the setting {name!r}", "it is not known.", "It is left out.")
        for members, what, nearest in _MEMBERS:
            if any(project.has(member) for member in members):
                self.note(", ".join(m for m in members if project.has(m)), what, nearest)


_READ = {"relativeMaxOutliers", "metric", "practicalMonotonicity"}
_ENTRIES = {
    "suppressTuplesInNonAnonymousOutput": "it is about outputs that violate the models; shoal releases none.",
    "suppressionString": "shoal leaves the cells of a masked record empty.",
    "removeOutliers": "the option suppressed decides what happens to suppressed records.",
    "protectSensitiveAssociations": "it is an option of old versions; the models replace it.",
}
_MEMBERS = (
    (
        ("input/config.dat", "output/config.dat", "project.dat"),
        "Java objects are not read: research subsets, population sizes, costs and benefits, how hierarchies "
        "were built, the search strategy and local recoding.",
        "Hierarchies are taken as they were listed; refine: true of a search recodes finer than a node.",
    ),
    (
        ("project.xml",),
        "the project's name, description and the settings of ARX's windows.",
        "They are left out.",
    ),
    (
        ("lattice.xml", "lattice.dat", "infoloss.dat", "attributes.dat", "clipboard.xml", "filter.dat"),
        "the nodes that ARX evaluated, and those that were marked.",
        "`shoal profile` tabulates all nodes again; `--node` takes one.",
    ),
    (
        ("data/output.csv", "data/output.dat", "data/output_subset.csv", "data/input_subset.csv"),
        "the project's output and subsets of its data.",
        "`shoal anonymize` writes the release and verifies it.",
    ),
)
