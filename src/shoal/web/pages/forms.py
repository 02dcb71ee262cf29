"""Forms for privacy models and for the search, made from the fields of the plug-ins.

The draft of the policy checks every change. If a change is invalid, the error is shown at its field, and the
previous value stays in effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

import anyio.to_thread
from nicegui.elements.mixins.text_element import TextElement

from shoal.algorithms import ALGORITHMS
from shoal.errors import ShoalError, UsageError
from shoal.files.yaml import LoadError, load_yaml
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.policy.policy import named
from shoal.registry import Option, Registry, options_of
from shoal.web.pages import elements
from shoal.web.pages.hierarchy import one_line_yaml
from shoal.web.pages.tab import TabView
from shoal.workflow.catalogue import algorithm_sentence
from shoal.workflow.plain_words import model_sentence

_EXAMPLES = {
    "k": "5", "l": "2", "p": "2", "c": "2", "t": "0.2", "alpha": "0.5", "beta": "1", "delta": "1",
    "risk": "0.2", "share": "0", "maximum": "0.5",
    "parts": "[{non-uniform-entropy: 1}, {precision: 1}]",
}  # fmt: skip
_LABELS = {
    "column": "Sensitive column",
    "unit": "Persons by",
    "label": "Column to predict",
    "parts": "Metrics with weights",
}
_MAX_CHOICES = 200
_CHOICES = {"true": "yes", "false": "no", "any": "yes, and a blank matches every value"}
_SUPPRESSED = {"drop": "left out", "mask": "kept, but blanked"}
_RECODINGS = {0: "off: one level per column", 1: "one label per cell"}
ShowError = Callable[[ShoalError | None], Any]


def text_of(option: Option, value: Any) -> str:
    """Return the text of the field that shows an option's value.

    >>> text_of(Option("cells", "", False, "", "choice"), True), text_of(Option("k", "", ..., "", "whole"), 5)
    ('true', '5')
    """
    if value is None or value is ...:
        return ""
    if option.kind == "structure":
        return one_line_yaml(value) if value else ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def value_of(option: Option, text: str) -> Any:
    """Parse the text of a field. Return None if it is empty.

    >>> value_of(Option("cells", "", False, "", "choice"), "true")
    True
    >>> value_of(Option("t", "", 0, "", "number"), "0.2")
    0.2
    """
    text = text.strip()
    if option.kind in ("whole", "number"):
        return elements.parse_value(text)
    if option.kind == "flag" or (option.kind == "choice" and text in ("true", "false")):
        return text == "true"
    if option.kind == "structure" and text:
        try:
            return load_yaml(text)
        except LoadError:
            message = "This cannot be read. Check the commas, brackets and quotes."
            raise UsageError(message, field=option.name) from None
    return text or None


def written_plugin(registry: Registry[Any], name: str, texts: Mapping[str, str]) -> Any:
    """Return a plug-in in the notation of a policy, without options that have their default values.

    Raises an error that names the field if a value is invalid.
    """
    options = {}
    for option in options_for(registry, name):
        value = value_of(option, texts.get(option.name, ""))
        if value is not None and value != option.default:
            options[option.name] = value
    if name != "auto":
        registry.create(name, options)
    return {name: options} if options else name


def options_for(registry: Registry[Any], name: str) -> tuple[Option, ...]:
    """Return the options of a plug-in. `auto` has the options that apply to the result of any search."""
    if name == "auto":
        finishing = ("refine", "cells")
        return tuple(option for option in options_of(ALGORITHMS.load("contour")) if option.name in finishing)
    return registry.options(name)


class PluginForm:
    """A field for each option of a plug-in, and a line for errors that belong to no field.

    `apply` gets the plug-in in the notation of a policy, and a function that shows an error. It is called at
    each valid change. With `at_once=False`, only `take` calls it.
    """

    def __init__(
        self,
        tab: TabView,
        registry: Registry[Any],
        name: str,
        values: Mapping[str, Any],
        apply: Callable[[Any, ShowError], Awaitable[Any]],
        *,
        at_once: bool = True,
        error: elements.TextField | None = None,
    ) -> None:
        self.tab, self.registry, self.name, self.apply, self.at_once = tab, registry, name, apply, at_once
        options = options_for(registry, name)
        self.texts = {
            option.name: text_of(option, values.get(option.name, option.default)) for option in options
        }
        with elements.box("options"):
            self.fields = {option.name: self._field(option) for option in options}
        self.set_error = error.set_error if error else partial(elements.set_error, elements.error_line())

    def _field(self, option: Option) -> elements.TextField:
        label = _LABELS.get(option.name, option.name.replace("_", " "))
        text, change = self.texts[option.name], partial(self.set_text, option.name)
        choices = self._choices(option)
        name = f"{label} of {self.name}"  # several plug-ins have a k
        with elements.box("field", title=option.meaning, data_option=option.name):
            if choices is None:
                mode = {"whole": "numeric", "number": "decimal"}.get(option.kind, "text")
                hint = _EXAMPLES.get(option.name, "")
                props: Any = {"inputmode": mode, "placeholder": hint, "aria_label": name}
                return elements.text_field(label, text, change, wait=None, **props)
            with elements.box("field", "label"):
                elements.tag("span", label)
                element = elements.bare_select(choices, text, change, aria_label=name)
            return elements.TextField(element, elements.error_line())

    def _choices(self, option: Option) -> Mapping[str, str] | None:
        table = self.tab.workspace.table
        if option.kind == "flag":
            return {"false": "no", "true": "yes"}
        if option.kind == "choice":
            return {choice: _CHOICES.get(choice, choice) for choice in option.choices}
        if option.kind == "sensitive-column":
            return _column_choices("every sensitive column", table.with_role("sensitive"))
        if option.kind == "column":
            known = set(table.quasi_identifiers)
            names = [name for name in table.loaded.names if name not in known]
            return _column_choices("records, not persons", names)
        if option.kind == "file":
            return {path: path.rpartition("/")[2] for path in self.tab.workspace.draft.populations}
        return None

    def set_text(self, name: str, text: str) -> Any:
        """Store the typed or chosen text, and apply it."""
        self.texts[name] = text
        return self.take() if self.at_once else None

    async def take(self) -> None:
        """Apply the plug-in with its options, or show why it is invalid."""
        try:
            plugin = written_plugin(self.registry, self.name, self.texts)
        except ShoalError as error:
            self.show_error(error)
        else:
            await self.apply(plugin, self.show_error)

    def show_error(self, error: ShoalError | None) -> None:
        """Show an error at its field, or below all fields."""
        elements.show_at_fields(self.fields, error)
        self.set_error(str(error) if error is not None and error.field not in self.fields else None)


def _column_choices(none: str, names: Sequence[str]) -> dict[str, str] | None:
    """Return the columns to choose from, or None if there are too many for a list."""
    return None if len(names) > _MAX_CHOICES else {"": none} | {name: name for name in names}


class SettingsForm:
    """The base class of forms that change settings of the draft."""

    def __init__(self, tab: TabView, on_change: Callable[[], Any]) -> None:
        self.tab, self.on_change = tab, on_change
        self.error: TextElement  # the line for errors

    def show_error(self, error: ShoalError | None) -> None:
        """Show an error, or remove the last one."""
        elements.set_error(self.error, None if error is None else str(error))

    async def change(self, show_error: ShowError, **settings: Any) -> bool:
        """Change settings of the policy, or show the error. Return whether the settings changed.

        A setting may be a function. It is called when the change is made, after all earlier changes.
        """
        workspace = self.tab.workspace

        def work() -> None:
            values = {name: value() if callable(value) else value for name, value in settings.items()}
            workspace.draft.change(**values)
            workspace.prepare()

        async with self.tab.changing:
            try:
                await anyio.to_thread.run_sync(work)
            except ShoalError as error:
                show_error(error)
                return False
            show_error(None)
            if settings.keys() & {"models", "suppression_limit"}:
                self.tab.state.dials.clear()
            self.on_change()
            return True


class ModelsForm(SettingsForm):
    """The form to add, change and remove privacy models. Each has a sentence and its options."""

    def __init__(self, tab: TabView, on_change: Callable[[], Any]) -> None:
        super().__init__(tab, on_change)
        self.rows = elements.box("stack", style="gap: 10px", data_part="models")
        self.error = elements.error_line()
        self.next_key = count()
        self.keys = [next(self.next_key) for _ in self.models]  # one for each model, which never changes
        self.draw()

    @property
    def models(self) -> list[Any]:
        return list(self.tab.workspace.draft.settings()["models"])

    def draw(self) -> None:
        self.rows.clear()
        self.error.set_text("")
        with self.rows:
            for key, model in zip(self.keys, self.models, strict=True):
                self._model(key, *named(model))
            self._adder()

    def _model(self, key: int, name: str, values: Mapping[str, Any]) -> None:
        with elements.box("offer model", data_model=name):
            with elements.box("line spread"):
                elements.tag("h3", name)
                remove = partial(self.remove, key)
                elements.button("Remove", remove, "small", aria_label=f"Remove {name}")
            elements.note(model_sentence(name))
            PluginForm(self.tab, MODELS, name, values, partial(self.replace, key))

    def _adder(self) -> None:
        known = self.tab.workspace.draft.populations
        names = [name for name in MODELS if known or not _needs_file(name)]
        options = {"": "choose a model"} | {name: name for name in names}
        with elements.box("", style="width: 230px"):
            elements.select("Add a privacy model", options, "", self.choose)
        self.draft_box = elements.box("")

    def choose(self, name: str) -> None:
        """Show the fields of the model to add."""
        self.draft_box.clear()
        if not name:
            return
        options = MODELS.options(name)
        first = next(iter(self.tab.workspace.draft.populations), "")
        values = {option.name: _EXAMPLES[option.name] for option in options if option.name in _EXAMPLES}
        values |= {option.name: first for option in options if option.kind == "file"}
        with self.draft_box, elements.box("offer", data_model=f"new {name}"):
            elements.tag("h3", name)
            elements.note(model_sentence(name))
            form = PluginForm(self.tab, MODELS, name, values, self.add, at_once=False)
            elements.button(f"Add {name}", form.take, "primary small")

    async def add(self, model: Any, show_error: ShowError) -> None:
        if await self.change(show_error, models=lambda: [*self.models, model]):
            self.keys.append(next(self.next_key))
            self.draw()

    async def replace(self, key: int, model: Any, show_error: ShowError) -> None:
        def replaced() -> list[Any]:
            self._require_same()
            pairs = zip(self.keys, self.models, strict=True)
            return [model if other == key else kept for other, kept in pairs]

        await self.change(show_error, models=replaced)

    async def remove(self, key: int) -> None:
        """Remove a model. At least one must remain."""

        def others() -> list[Any]:
            self._require_same()
            if len(self.keys) == 1:
                raise UsageError("A policy needs at least one model. Add another one first.")
            return [model for other, model in zip(self.keys, self.models, strict=True) if other != key]

        if await self.change(self.show_error, models=others):
            self.keys = [other for other in self.keys if other != key]
            self.draw()

    def _require_same(self) -> None:
        """Raise an error if all models have been replaced since the form was drawn."""
        if len(self.keys) != len(self.models):
            raise UsageError("The models have been replaced. Look at them again.")


def _needs_file(name: str) -> bool:
    return any(option.kind == "file" and option.required for option in MODELS.options(name))


class LimitsForm(SettingsForm):
    """The suppression limit, and the population for estimates of risk."""

    _FIELDS = (
        ("suppression_limit", "Records that may be suppressed", "5% or 120"),
        ("population_size", "Persons in the population", "not known"),
        ("sampling_share", "or the share of them in this table", "5% or 1/20"),
    )

    def __init__(self, tab: TabView, on_change: Callable[[], Any]) -> None:
        super().__init__(tab, on_change)
        settings = tab.workspace.draft.settings()
        self.fields: dict[str, elements.TextField] = {}
        with elements.box("options", data_part="limits"):
            for name, label, hint in self._FIELDS:
                value = "" if settings[name] is None else settings[name]
                set_text = partial(self.set_text, name)
                self.fields[name] = elements.text_field(label, value, set_text, wait=None, placeholder=hint)

    async def set_text(self, name: str, text: str) -> None:
        """Apply a value. An empty text means the default."""
        value: Any = text.strip().replace(",", "") if name == "population_size" else text.strip()
        if name == "suppression_limit":
            value = elements.parse_limit(value) if value else None
        elif name == "population_size":
            value = elements.parse_value(value)
        await self.change(self.show_error, **{name: value or (0 if value == 0 else None)})

    def show_error(self, error: ShoalError | None) -> None:
        elements.show_at_fields(self.fields, error)


class SameLevelForm(SettingsForm):
    """Groups of quasi-identifiers that always have the same level, such as two dates."""

    def __init__(self, tab: TabView, on_change: Callable[[], Any]) -> None:
        super().__init__(tab, on_change)
        self.chosen: list[str] = []
        self.box = elements.box("tight", style="gap: 8px", data_part="same-level")
        self.draw()

    @property
    def groups(self) -> list[list[str]]:
        return [list(group) for group in self.tab.workspace.draft.settings()["same_level"]]

    def draw(self) -> None:
        self.box.clear()
        self.chosen = []
        groups = self.groups
        with self.box:
            for group in groups:
                with elements.box("line spread"):
                    names = ", ".join(group)
                    elements.tag("span", names)
                    remove = partial(self.remove, group)
                    elements.button("Separate", remove, "small", aria_label=f"Separate {names}")
            grouped = {name for group in groups for name in group}
            free = [name for name in self.tab.workspace.table.quasi_identifiers if name not in grouped]
            if len(free) > 1:
                elements.choices("Generalize together", free, (), self._choose)
                elements.button("Group these columns", self.add, "small", style="align-self: flex-start")
            self.error = elements.error_line()

    def _choose(self, names: list[str]) -> None:
        self.chosen = names

    async def add(self) -> None:
        if len(self.chosen) < 2:
            elements.set_error(self.error, "Choose at least two columns.")
            return
        table = self.tab.workspace.table
        previews = [table.check_hierarchy(name).preview for name in self.chosen]
        if len({preview.height for preview in previews if preview is not None}) > 1:
            text = "These columns have hierarchies of different heights. Give them the same number of levels."
            elements.set_error(self.error, text)
            return
        chosen = self.chosen
        await self._set(lambda: [*self.groups, chosen])

    async def remove(self, group: list[str]) -> None:
        await self._set(lambda: [other for other in self.groups if other != group])

    async def _set(self, groups: Callable[[], list[list[str]]]) -> None:
        if await self.change(self.show_error, same_level=lambda: groups() or None):
            self.draw()


class ProtectionCard:
    """What protects the records: models, limits, and columns that are generalized together."""

    def __init__(self, tab: TabView, on_change: Callable[[], Any]) -> None:
        text = "Records that look alike form a group; every group must satisfy all of these."
        with elements.card("How are the records protected?", text), elements.box("split halves"):
            ModelsForm(tab, on_change)
            with elements.box("stack"):
                LimitsForm(tab, on_change)
                SameLevelForm(tab, on_change)


def recoding_text(labels: int) -> str:
    """Describe local recoding with up to this number of labels in a cell.

    >>> recoding_text(0), recoding_text(1), recoding_text(3)
    ('off: one level per column', 'one label per cell', 'up to 3 labels per cell')
    """
    return _RECODINGS.get(labels, f"up to {labels} labels per cell")


class SearchForm(SettingsForm):
    """The settings of the search for a release: algorithm, metric and their options, label and recoding."""

    def __init__(self, tab: TabView, on_change: Callable[[], Any]) -> None:
        super().__init__(tab, on_change)
        self.lines: dict[str, elements.TextField] = {}
        self.waiting: dict[str, Any] = {}  # plug-ins that need a label, until one is chosen
        settings = tab.workspace.draft.settings()
        with elements.box("split two-up", data_part="search"):
            with elements.box("tight"):
                self._plugin("algorithm", "Algorithm", ALGORITHMS, ["auto", *ALGORITHMS], settings)
            with elements.box("tight"):
                self._plugin("metric", "Metric", METRICS, list(METRICS), settings)
            with elements.box("tight"):
                self._label(settings["label"])
            with elements.box("tight"):
                self._recoding()
        self.error = elements.error_line()
        name = named(settings["algorithm"])[0]
        elements.note(f"{name}: {algorithm_sentence(name)}")

    def _plugin(
        self, setting: str, label: str, registry: Registry[Any], names: list[str], settings: Mapping[str, Any]
    ) -> None:
        name, values = named(settings[setting])
        element = elements.select(label, names, name, partial(self.choose, setting, registry))
        self.lines[setting] = elements.TextField(element, elements.error_line())
        if not options_for(registry, name):
            return

        async def apply(plugin: Any, show_error: ShowError) -> None:
            await self.change(show_error, **{setting: plugin})

        summary = f"Options of {name}" + (f" ({len(values)} set)" if values else "")
        with elements.details(summary, data_options=setting, is_open=bool(values)):
            PluginForm(self.tab, registry, name, values, apply, error=self.lines[setting])

    async def choose(self, setting: str, registry: Registry[Any], name: str) -> None:
        """Choose a plug-in with its defaults. If it needs a label, it is applied when a label is chosen."""
        options = () if name == "auto" else registry.options(name)
        values = {option.name: load_yaml(_EXAMPLES[option.name]) for option in options if option.required}
        plugin = {name: values} if values else name
        self.waiting.pop(setting, None)
        await self.change(partial(self._rejected, setting, plugin), **{setting: plugin})

    def _rejected(self, setting: str, plugin: Any, error: ShoalError | None) -> None:
        line = self.lines[setting]
        if error is None:
            line.set_error(None)
            return
        current = named(self.tab.workspace.draft.settings()[setting])[0]
        if error.field == "label":
            self.waiting[setting] = plugin
            self.needs_label()
        else:
            elements.set_value(line.element, current)  # show the setting that is in effect
            line.set_error(f"{error} The {setting} stays {current!r}.")

    def needs_label(self) -> bool:
        """If a chosen plug-in cannot run without a label, show this and return True."""
        for setting, plugin in self.waiting.items():
            text = f"{named(plugin)[0]} needs a column to predict. Choose it here, or another {setting}."
            self.lines["label"].set_error(text)
        return bool(self.waiting)

    def _label(self, label: str | None) -> None:
        table = self.tab.workspace.table
        names = [n for n in table.loaded.names if table.columns[n]["role"] in ("sensitive", "other")]
        options = _column_choices("none", names)
        if options is None:
            field = elements.text_field("Column to predict", label or "", self.choose_label, wait=None)
            self.lines["label"] = field
            return
        element = elements.select("Column to predict", options, label or "", self.choose_label)
        self.lines["label"] = elements.TextField(element, elements.error_line())

    async def choose_label(self, name: str) -> None:
        """Choose the label. Plug-ins that were rejected because there was no label are applied with it."""
        waiting = self.waiting if name else {}

        def show_error(error: ShoalError | None) -> None:
            self.lines["label"].set_error(None if error is None else str(error))
            if error is not None:
                label = self.tab.workspace.draft.settings()["label"] or ""
                elements.set_value(self.lines["label"].element, label)

        await self.change(show_error, label=name or None, **waiting)

    def _recoding(self) -> None:
        settings = self.tab.workspace.draft.settings()
        labels = self.tab.workspace.draft.policy().local_labels
        recodings = {str(number): recoding_text(number) for number in sorted({0, 1, 3, labels})}
        self.selects = {
            "local": elements.select("Local recoding", recodings, str(labels), self.change_recoding),
            "suppressed": elements.select(
                "Suppressed records are",
                _SUPPRESSED,
                settings["suppressed"],
                partial(self._change_one, "suppressed"),
            ),
        }

    async def change_recoding(self, labels: str) -> None:
        """Change the number of labels of a cell in local recoding. 0 means one level per column."""
        values: dict[str, Any] = {"0": False, "1": True}
        await self._change_one("local", values.get(labels, {"labels": int(labels)}))

    async def _change_one(self, name: str, value: Any) -> None:
        await self.change(partial(self._show_rejected, name), **{name: value})

    def _show_rejected(self, name: str, error: ShoalError | None) -> None:
        """Show why a change was rejected, and which setting stays in effect."""
        if error is None:
            elements.set_error(self.error, None)
            return
        draft = self.tab.workspace.draft
        labels, suppressed = draft.policy().local_labels, draft.settings()["suppressed"]
        elements.set_value(self.selects[name], str(labels) if name == "local" else suppressed)
        local = f"Local recoding stays {recoding_text(labels)}."
        stays = local if name == "local" else f"Suppressed records stay {_SUPPRESSED[suppressed]}."
        elements.set_error(self.error, f"{error} {stays}")
