"""The hierarchy editor of a column, which checks each change against the values of the column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio.to_thread
import yaml
from nicegui import background_tasks

from shoal.core.hierarchy.builders import BUILDERS
from shoal.errors import ShoalError
from shoal.files.yaml import LoadError, load_yaml
from shoal.web import api
from shoal.web.actions import action
from shoal.web.pages import charts, elements
from shoal.web.pages.hierarchy_groups import HierarchyGroups
from shoal.web.pages.tab import TabView, run_in_thread
from shoal.web.workspace.table import MAX_HIERARCHY_BYTES, MAX_HIERARCHY_FILES, HierarchyCheckResult
from shoal.workflow.catalogue import builder_summary
from shoal.workflow.level_names import names_of_levels

_DECIMAL = ("decimal", "Decimal sign, if a comma", ",")
_UNKNOWN = ("unknown", "Codes for unknown", "99, U")
_UNCOVERED = ("uncovered", "Group of what does not fit", "unknown")
FIELDS: dict[str, tuple[tuple[str, str, str], ...]] = {  # entry of the policy, label, example
    "flat": (),
    "intervals": (
        ("intervals", "Widths of bands", "5, 10, 20"),
        ("bottom_coding", "One band below", "20"),
        ("top_coding", "One band from", "90"),
        ("split", "Then joined up to", "[40, 60], [60]"),
        _DECIMAL,
        _UNKNOWN,
    ),
    "prefix": (
        ("prefix", "Characters kept", "3, 2, 1"),
        ("together", "Prefixes as one group", "036, 059"),
        ("label", "Label of that group", "000"),
        ("pad", "Pad with leading zeros to", "5, 9"),
        _UNKNOWN,
    ),
    "dates": (
        ("dates", "Units", "month, quarter, year"),
        ("format", "Format, if not ISO", "%d.%m.%Y"),
        ("latest", "Last day, for two-digit years", "2025-12-31"),
        ("bottom_coding", "One group before the year", "1937"),
        _UNCOVERED,
        _UNKNOWN,
    ),
    "times": (("times", "Units", "quarter_hour, hour, part_of_day"), _UNKNOWN),
    "cuts": (("cuts", "Break points of each level", "[6, 18, 40, 65], [18, 65]"), _DECIMAL, _UNKNOWN),
    "order": (
        ("order", "Values in order", "low, middle, high"),
        ("sizes", "Values per group", "2, 4"),
        _UNKNOWN,
    ),
    "rare": (
        ("rare", "Thresholds", "1%, 5%"),
        ("label", "Label of the group", "other"),
        _UNKNOWN,
    ),
    "countries": (("countries", "Units", "subregion, region"), _UNKNOWN),
    "us_states": (("us_states", "Units", "division, region"), _UNKNOWN),
    "icd_10": (("icd_10", "Units", "category, block, chapter"), _UNKNOWN),
    "tree": (("tree", "Groups and values", "{north: [a, b], south: [c]}"), _UNKNOWN),
}
NAMES = {
    "flat": "flat: as is, or all in one group",
    "intervals": "intervals: numbers in bands",
    "cuts": "cuts: bands between break points",
    "prefix": "prefix: the first characters",
    "dates": "dates: calendar units",
    "times": "times: times of the day",
    "order": "order: neighbours together",
    "rare": "rare: rare values in one group",
    "countries": "countries: regions of the world",
    "us_states": "us_states: census divisions and regions",
    "icd_10": "icd_10: blocks and chapters of diseases",
    "tree": "tree: groups written out",
    "csv": "csv: an uploaded file",
    "yaml": "as a policy writes it (YAML)",
}
_SINGLE_VALUES = ("bottom_coding", "top_coding", "tree")
_PLAIN_TEXT = ("decimal", "format", "label", "latest", "uncovered")  # not parsed as YAML


def kind_of(spec: Any) -> str:
    """Return the builder of a hierarchy in a policy. Return 'yaml' if the form has no fields for it."""
    if isinstance(spec, str):
        return spec if spec in FIELDS else "yaml"
    if not isinstance(spec, Mapping):
        return "yaml"
    kind = next((name for name in spec if name in NAMES), "yaml")
    known = {name for name, _, _ in FIELDS.get(kind, ())} | {kind}
    return kind if set(spec) <= known else "yaml"


def texts_of(kind: str, spec: Any) -> dict[str, str]:
    """Return the texts of the form's fields for a hierarchy in a policy (`spec`)."""
    if kind == "yaml":
        return {"yaml": one_line_yaml(spec)}
    texts = {}
    for name, value in spec.items() if isinstance(spec, Mapping) else ():
        if value is None:
            continue
        text = str(value) if name in _PLAIN_TEXT else one_line_yaml(value)
        texts[name] = text[1:-1] if isinstance(value, list) else text
    return texts


def one_line_yaml(value: Any) -> str:
    """Write a value as YAML in one line.

    >>> one_line_yaml({"intervals": [5, 10]}), one_line_yaml("flat")
    ('{intervals: [5, 10]}', 'flat')
    """
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("...\n").strip()


def spec_of(kind: str, fields: Mapping[str, str]) -> Any:
    """Parse the texts of the fields into a hierarchy as a policy writes it."""
    if kind == "flat":
        return "flat"
    if kind == "yaml":
        return _parse_yaml(fields.get("yaml", ""))
    spec: dict[str, Any] = {}
    for name, _, _ in FIELDS.get(kind, ()):
        text = fields.get(name, "").strip()
        if text or name == kind:
            if name in _PLAIN_TEXT:
                spec[name] = text
                continue
            as_text = name == "together"  # here 100 is a prefix, not a number
            spec[name] = _parse_yaml(text if name in _SINGLE_VALUES else f"[{text}]", as_text)
    return spec or {kind: fields.get(kind)}


def _parse_yaml(text: str, as_text: bool = False) -> Any:
    try:
        return load_yaml(text, as_text=as_text)
    except LoadError:
        raise ValueError("This cannot be read. Check the commas, brackets and quotes.") from None


_MAX_CHARACTERS = 34  # maximum length of a row in the table of levels
_MAX_LEAVES = 40  # a larger tree is not drawn: it would be long, and its labels would overlap
_MAX_BRANCHES = {0: 12, 1: 12, 2: 5, 3: 3}  # maximum number of branches per group, by height


class HierarchyUpload:
    """The button that uploads many hierarchy files at once, each named after its column."""

    def __init__(self, tab: TabView, on_change: Callable[[], Any]) -> None:
        self.tab, self.on_change = tab, on_change
        self.upload = elements.upload_button(
            "Upload hierarchies",
            self.receive,
            MAX_HIERARCHY_BYTES,
            title="CSV files named after their columns, such as age.csv; all or none are taken",
            multiple=True,
            on_rejected=self.reject,
            max_total_size=MAX_HIERARCHY_BYTES,
            max_files=MAX_HIERARCHY_FILES,
        )
        self.upload.props("batch")
        self.error = elements.error_line()

    def reject(self) -> None:
        self.error.set_text(_TOO_LARGE)

    async def receive(self, event: Any) -> None:
        self.upload.reset()
        if sum(file.size() for file in event.files) > MAX_HIERARCHY_BYTES:  # browsers may bypass the limit
            self.reject()
            return
        files = [(file.name, await file.read()) for file in event.files]
        workspace = self.tab.workspace

        def take() -> None:
            workspace.table.upload_hierarchies(files)
            workspace.prepare()

        async with self.tab.changing:
            if await run_in_thread(self.error.set_text, take):
                self.on_change()


_TOO_LARGE = f"The files are larger than {MAX_HIERARCHY_BYTES:,} bytes together, which is the limit."


class HierarchyEditor:
    """The hierarchy of a column. A change that fits is applied immediately."""

    def __init__(self, tab: TabView, column: str, on_change: Callable[[], Any]) -> None:
        self.tab, self.column, self.on_change = tab, column, on_change
        row = next(row for row in tab.workspace.table.rows() if row.column == column)
        self.spec: Any = row.hierarchy
        self.kind = kind_of(self.spec)
        self.texts: dict[str, str] = texts_of(self.kind, self.spec)
        self.file = self.texts.get("csv", "")
        self.attempts = 0
        with elements.box("line spread"):
            elements.tag("h2", f"Hierarchy of {column}", tabindex="-1")
            self.upload = elements.upload_button("Upload a CSV", self.receive, MAX_HIERARCHY_BYTES, "small")
        kinds = {name: text for name, text in NAMES.items() if name != "csv" or self.kind == "csv"}
        self.builder = elements.select("Builder", kinds, self.kind, self.choose_builder)
        if note := tab.workspace.table.hierarchy_note(column):
            elements.message(note, "warn")
        self.fields_box = elements.box("tight", style="gap: 8px")
        self.error = elements.message("", "bad")
        self.error.set_visibility(False)
        self.settings = elements.box("")
        self.groups = HierarchyGroups(tab, column, self.set_spec)
        self.names: tuple[str, ...] = ()
        self.levels = elements.box("stack", style="gap: 10px")
        self.fields: list[elements.TextField] = []
        self.draw_fields()
        background_tasks.create(self.show_chosen(), name="hierarchy")

    async def show_chosen(self) -> None:
        """Show the levels of the chosen hierarchy. This takes a while for a column with many values."""
        check, root = await anyio.to_thread.run_sync(self.check, self.spec)
        if not self.attempts and not self.levels.is_deleted:
            self.draw(check, root)

    def check(self, spec: Any) -> tuple[HierarchyCheckResult, dict[str, Any]]:
        """Check a hierarchy and build its tree. This is called in a thread."""
        check = self.tab.workspace.table.preview(self.column, spec)
        preview = check.preview
        return check, {} if preview is None else preview.tree(_MAX_BRANCHES.get(preview.height, 2))

    def choose_builder(self, kind: str) -> Any:
        """Show the fields of another builder, filled with an example."""
        self.kind = kind
        if kind == "yaml":
            self.texts = {"yaml": one_line_yaml(self.spec)}
        elif kind == "csv":
            self.texts = {"csv": self.file}
        else:
            first = FIELDS.get(kind, ())[: 2 if kind == "order" else 1]
            self.texts = {name: example for name, _, example in first}
        self.draw_fields()
        return self.attempt()

    async def set_spec(self, spec: Any) -> None:
        """Apply a hierarchy that was edited by hand. With None, show the current one again."""
        if spec is not None:
            self.kind = kind_of(spec)
            self.texts = texts_of(self.kind, spec)
            elements.set_value(self.builder, self.kind)
            self.draw_fields()
        await self.attempt()

    def draw_fields(self) -> None:
        self.fields_box.clear()
        self.fields = []
        fields = (("yaml", "Hierarchy", ""),) if self.kind == "yaml" else FIELDS.get(self.kind, ())
        with self.fields_box:
            if self.kind in BUILDERS:
                elements.note(builder_summary(self.kind))
            with elements.box("split halves", style="gap: 8px"):
                for name, label, example in fields:
                    area = name in ("tree", "yaml", "order")
                    wide = {"style": "grid-column: 1 / 3"} if area or name in ("cuts", "times") else {}
                    text, set_text = self.texts.get(name, ""), partial(self.set_text, name)
                    with elements.box("", **wide):
                        field = elements.text_field(
                            label, text, set_text, area=area, placeholder=example, rows=3
                        )
                    self.fields.append(field)

    def set_text(self, name: str, text: str) -> Any:
        self.texts[name] = text
        return self.attempt()

    async def attempt(self) -> None:
        """Check the hierarchy. Choose the hierarchy if it fits, else keep the old one."""
        self.attempts += 1
        attempt = self.attempts
        try:
            spec = spec_of(self.kind, self.texts)
        except ValueError as error:
            self.show_error(str(error))
            return
        check, root = await anyio.to_thread.run_sync(self.check, spec)
        if attempt != self.attempts:
            return
        if check.preview is not None and spec != self.spec:
            async with self.tab.changing:
                if attempt != self.attempts:
                    return
                if not await run_in_thread(self.show_error, self.choose, spec):
                    return
                self.spec = spec
                self.on_change()
        if attempt == self.attempts and not self.levels.is_deleted:
            self.draw(check, root)

    def choose(self, spec: Any) -> None:
        """Choose a hierarchy. This is called in a thread."""
        workspace = self.tab.workspace
        workspace.table.choose_hierarchy(self.column, spec)
        workspace.prepare()

    async def receive(self, event: Any) -> None:
        self.upload.reset()
        if event.file.size() > MAX_HIERARCHY_BYTES:  # the limit in the browser can be bypassed
            self.show_error(f"The file is larger than {MAX_HIERARCHY_BYTES:,} bytes, which is the limit.")
            return
        content = await event.file.read()
        workspace = self.tab.workspace
        async with self.tab.changing:
            try:
                choose = workspace.table.upload_hierarchy
                await anyio.to_thread.run_sync(choose, self.column, content, event.file.name)
                await anyio.to_thread.run_sync(workspace.prepare)
            except ShoalError as error:
                self.show_error(str(error), error.values)
                return
            self.on_change()
            self.tab.refresh()

    def show_error(self, text: str, values: tuple[str, ...] = ()) -> None:
        shown = ", ".join(map(repr, values[:8]))
        hint = " The hierarchy chosen before stays."
        self.error.set_text(text + (f" Values: {shown}." if shown else "") + hint)
        self.error.set_visibility(True)
        self._mark_first_field("true")

    def _mark_first_field(self, invalid: str) -> None:
        for field in self.fields[:1]:
            field.element._props["aria-invalid"] = invalid
            field.element.update()

    def draw(self, check: HierarchyCheckResult, root: Mapping[str, Any]) -> None:
        """Show the levels of some values, or why the hierarchy does not fit."""
        if check.preview is None:
            self.show_error(check.problem or "", check.values)
            return
        self.error.set_visibility(False)
        self._mark_first_field("false")
        preview = check.preview
        self.levels.clear()
        self._draw_settings(check)
        with self.levels:
            names = names_of_levels(check.spec, preview.hierarchy)
            head = [f"{name} ({groups:,})" for name, groups in zip(names, preview.groups, strict=True)]
            _level_table(head, preview.examples)
            if _leaves(root) <= _MAX_LEAVES:
                chart = charts.add_chart(self.tab.dark, max(110, 22 * _leaves(root) + 16))
                charts.draw(chart, charts.tree(root))
        self.groups.draw(preview, check.spec)

    def _draw_settings(self, check: HierarchyCheckResult) -> None:
        """Show the settings of the column, with the names of its levels. Redraw them if the names changed."""
        assert check.preview is not None
        names = names_of_levels(check.spec, check.preview.hierarchy)
        if names != self.names:
            self.names = names
            self.settings.clear()
            with self.settings:
                ColumnSettingsForm(self.tab, self.column, names, self.on_change)


def _level_table(head: Sequence[str], examples: Sequence[Sequence[str]]) -> None:
    """Show the labels of some values. Each level is a column if all fit into the card, otherwise a row."""
    levels = zip(head, *examples, strict=True)
    widths = (max(map(len, (*name.split(), *labels))) for name, *labels in levels)
    if sum(widths) <= _MAX_CHARACTERS:
        elements.table(head, examples, classes="fit small")
        return
    rows = zip(head, *examples[:: max(1, len(examples) // 2)][:2], strict=True)
    names = ("Level (groups)", "Example", "Another")[: 1 + min(2, len(examples))]
    elements.table(names, rows, classes="fit small wide-result")


def _leaves(root: Mapping[str, Any]) -> int:
    children = root.get("children", ())
    return sum(map(_leaves, children)) if children else 1


_WEIGHT = "How much its loss counts, relative to the other columns"
_FORMS = {"": "text", "bounds": "two columns of bounds"}


class ColumnSettingsForm:
    """Settings of a quasi-identifier other than its hierarchy. Each is applied or rejected when typed."""

    def __init__(self, tab: TabView, column: str, names: Sequence[str], on_change: Callable[[], Any]) -> None:
        self.tab, self.column, self.on_change = tab, column, on_change
        self.names = names  # names of the levels
        self.fields: dict[str, elements.TextField] = {}
        self.rejected: dict[str, str] = {}  # texts that were typed and rejected
        values = tab.workspace.table.settings(column)
        with elements.details(
            f"More: {self.summary(values) or 'how coarse, weight, form'}", body="split halves"
        ):
            levels = {"": "no limit"} | {str(level): text for level, text in enumerate(names)}
            self._select("min_level", "At least", levels, values.get("min_level", ""))
            self._select("max_level", "At most", levels, values.get("max_level", ""))
            props: Any = {"inputmode": "numeric", "placeholder": "1", "title": _WEIGHT}
            weight, set_weight = values.get("weight", ""), partial(self.set_text, "weight")
            self.fields["weight"] = elements.text_field("Weight", weight, set_weight, **props)
            self._select("release_as", "Released as", _FORMS, values.get("release_as", ""))

    def summary(self, values: Mapping[str, Any]) -> str:
        """Describe the settings that are not the defaults."""
        words = {"min_level": "at least", "max_level": "at most"}
        return ", ".join(
            f"{words[name]} {self.names[value]}"
            if name in words and value < len(self.names)
            else f"{name.replace('_', ' ')} {value}"
            for name, value in values.items()
        )

    def _select(self, name: str, label: str, options: Mapping[str, str], value: Any) -> None:
        with elements.box("field"):
            select = elements.select(label, options, str(value), partial(self.set_text, name))
            self.fields[name] = elements.TextField(select, elements.error_line())

    async def set_text(self, name: str, text: str) -> None:
        """Apply a setting, then retry rejected ones. An empty text means the default."""
        async with self.tab.changing:
            self.rejected[name] = text.strip()
            changed = False
            for setting in sorted(self.rejected, key=lambda other: other != name):
                changed = await self.take(setting, self.rejected[setting]) or changed
            if changed:
                await anyio.to_thread.run_sync(self.tab.workspace.prepare)
                self.on_change()

    async def take(self, name: str, text: str) -> bool:
        """Change a setting or show the error. Return whether the setting changed."""
        field = self.fields[name]
        setting = {name: (text or None) if name == "release_as" else elements.parse_value(text)}
        error = action.form_errors(api.change_column_settings, column=self.column, **setting).get(name)
        field.set_error(error)
        change = partial(self.tab.workspace.table.change_settings, self.column, **setting)
        if error or not await run_in_thread(field.set_error, change):
            return False
        if self.rejected.get(name) == text:
            del self.rejected[name]
        return True
