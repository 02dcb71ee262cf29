"""The settings of an ARX project: models, quality, suppression, weights, and what else is left out."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from shoal.errors import ShoalError
from shoal.importing.project import Attribute, Project, Settings, printable
from shoal.importing.words import Notes, metric_of, models_of
from shoal.metrics import METRICS
from shoal.models import MODELS

_STANDARD_WEIGHT = 0.5  # what ARX gives a column that has none
_LEAST_WEIGHT = 1e-6


class Translation:
    """Turns settings into the entries of a policy whose columns are known."""

    def __init__(self, settings: Settings, columns: Mapping[str, dict[str, Any]], notes: Notes) -> None:
        self.settings = settings
        self.columns = columns
        self.notes = notes
        self.tell = notes.tell

    def models(self) -> dict[str, Any]:
        """Read the privacy models; one must remain."""
        models: list[dict[str, dict[str, Any]]] = []
        for criterion in self.settings.criteria:
            read, told = models_of(criterion)
            self.notes.told += told
            models += [one for one in read if self.fits(one, criterion)]
        models = [one for place, one in enumerate(models) if one not in models[:place]]
        if not models:
            nearest = (
                "k-anonymity with k=5 stands in, for a policy needs a model: put in the one that you want."
            )
            self.tell("the privacy models", "none of the project's has a counterpart.", nearest)
            models = [{"k-anonymity": {"k": 5}}]
        return {"models": models}

    def fits(self, model: dict[str, dict[str, Any]], written: str) -> bool:
        """Tell whether a model is about a sensitive column, and its numbers mean something."""
        ((name, options),) = model.items()
        setting = f"the model {printable(written)!r}"
        column = options.get("column")
        if column is not None and self.columns.get(column, {}).get("role") != "sensitive":
            reason = "it is about a column that the project does not have, or that is not sensitive."
            self.tell(setting, reason, "Give the column the role sensitive and add the model.")
            return False
        if options.get("distance") == "hierarchical" and "hierarchy" not in self.columns[str(column)]:
            reason = "it measures distances along a hierarchy, and the column has none that fits."
            self.tell(setting, reason, "t-closeness with the equal distance stands in, which is no smaller.")
            options["distance"] = "equal"
        try:
            MODELS.create(name, options)
        except ShoalError as error:
            self.tell(setting, f"{error}", "It is left out.")
            return False
        return True

    def metric(self, attributes: list[Attribute]) -> dict[str, Any]:
        """Read the quality model and the column that is to be predicted."""
        name, told = metric_of(self.settings.entries.get("metric", ""))
        self.notes.told += told
        responses = [one.name for one in attributes if one.response]
        able = [one for one in responses if self.columns[one]["role"] in ("sensitive", "other")]
        label = {"label": able[0]} if len(able) == 1 else {}
        for other in responses:
            if label.get("label") != other:
                reason = "it is a response variable, of which shoal takes one, and none that is generalized."
                self.tell(f"column {other!r}", reason, "label: names the column that is to be predicted.")
        if name == "classification" and not label:
            nearest = "non-uniform-entropy stands in."
            self.tell("the quality model", "classification needs one column to predict.", nearest)
            name = "non-uniform-entropy"
        return {"metric": name, **label}

    def suppression(self) -> dict[str, Any]:
        """Read how many records may be suppressed, and what becomes of them."""
        limit = self.limit(self.settings.entries.get("relativeMaxOutliers", ""))
        kinds = self.settings.suppressed_types
        if kinds is None:
            kinds = ("QUASI_IDENTIFYING_ATTRIBUTE",)
        kept = any(column["role"] == "sensitive" for column in self.columns.values())
        kept = kept and "SENSITIVE_ATTRIBUTE" not in kinds
        if kept or "INSENSITIVE_ATTRIBUTE" in kinds or "QUASI_IDENTIFYING_ATTRIBUTE" not in kinds:
            reason = (
                "ARX keeps a suppressed record with some columns blanked; shoal blanks quasi-identifiers and "
                "sensitive columns together, or drops the record."
            )
            self.tell("which columns of a suppressed record are blanked", reason, "Such records are dropped.")
            return {"suppression_limit": limit}
        return {"suppression_limit": limit, "suppressed": "mask"}

    def limit(self, text: str) -> str:
        """Write a share of the records as per cent."""
        try:
            share = Decimal(text)
            if not 0 <= share <= 1:
                raise InvalidOperation
        except InvalidOperation:
            self.tell("the suppression limit", "it is no share of the records.", "No record is suppressed.")
            return "0%"
        return f"{(share * 100).normalize():f}%"

    def weights(self, metric: str) -> None:
        """Read the columns' weights, where they differ."""
        quasi = {name for name, column in self.columns.items() if column["role"] == "quasi-identifier"}
        found = dict.fromkeys(quasi, _STANDARD_WEIGHT)
        for name, text in self.settings.weights:
            try:
                weight = float(text)
                if not 0 <= weight < float("inf"):
                    raise ValueError
            except ValueError:
                self.tell(f"the weight of column {name!r}", "it is no number.", "It is left out.")
                continue
            if name in quasi:
                found[name] = weight
        if len(set(found.values())) <= 1:
            return
        if not METRICS.load(metric).weighted:
            self.tell("the weights of columns", f"the metric {metric} has none.", "They are left out.")
            return
        for name in self.columns:
            if name in found:
                self.columns[name]["weight"] = max(found[name], _LEAST_WEIGHT)
                if found[name] == 0:
                    reason = "a weight of 0 lets a column be generalized for nothing."
                    self.tell(f"the weight of column {name!r}", reason, "A very small one stands in.")

    def types(self, attributes: list[Attribute], models: list[dict[str, dict[str, Any]]]) -> None:
        """Say which data types and formats are left out, and where that matters."""
        ordered = {
            options["column"]
            for one in models
            for options in one.values()
            if options.get("distance") == "ordered"
        }
        for one in attributes:
            if one.name in ordered and one.datatype == "Ordered string":
                reason = "t-closeness goes by the order of its values, which ARX has in the data type."
                nearest = "Give the column a hierarchy {order: [...], sizes: [...]} with this order."
                self.tell(f"column {one.name!r}", reason, nearest)
        typed = [one.name for one in attributes if one.datatype != "String" or one.format or one.locale]
        if typed:
            shown = ", ".join(map(repr, typed))
            reason = (
                f"those of {printable(shown, 400)} are not needed: a hierarchy's file lists values as text."
            )
            self.tell("data types, formats and locales", reason, "Values must be written as in the project.")

    def rest(self, project: Project) -> None:
        """Say what else there is in the project and is left out."""
        entries = self.settings.entries
        if entries.get("practicalMonotonicity") == "true":
            reason = "ARX assumes that generalizing further never harms, which makes its search faster."
            self.tell(
                "practical monotonicity", reason, "shoal's search assumes nothing, and says what it proves."
            )
        for name, reason in _ENTRIES.items():
            if name in entries:
                self.tell(f"{name} ({printable(entries[name], 20)})", reason, "It is left out.")
        for name in sorted(set(entries) - set(_ENTRIES) - _READ):
            self.tell(f"the setting {name!r}", "it is not known.", "It is left out.")
        for members, what, nearest in _MEMBERS:
            if any(project.has(member) for member in members):
                self.tell(", ".join(m for m in members if project.has(m)), what, nearest)


_READ = {"relativeMaxOutliers", "metric", "practicalMonotonicity"}
_ENTRIES = {
    "suppressTuplesInNonAnonymousOutput": "it is about outputs that violate the models; shoal releases none.",
    "suppressionString": "shoal leaves the cells of a masked record empty.",
    "removeOutliers": "suppressed says what becomes of suppressed records.",
    "protectSensitiveAssociations": "it is a switch of old versions; the models say it.",
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
        "the nodes that ARX has looked at, and which were marked.",
        "`shoal profile` tabulates all nodes afresh; `--node` takes one.",
    ),
    (
        ("data/output.csv", "data/output.dat", "data/output_subset.csv", "data/input_subset.csv"),
        "the project's output and subsets of its data.",
        "`shoal anonymize` makes the release, and counts it afresh.",
    ),
)
