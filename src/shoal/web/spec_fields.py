"""The fields of the hierarchy editor: a builder's parameters as texts, and what a policy writes for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_DECIMAL = ("decimal", "Decimal sign, if a comma", ",")
_UNKNOWN = ("unknown", "Codes for unknown", "99, U")
FIELDS: dict[str, tuple[tuple[str, str, str], ...]] = {  # entry, label, example
    "flat": (),
    "intervals": (
        ("intervals", "Widths of bands", "5, 10, 20"),
        ("bottom_coding", "One band below", "20"),
        ("top_coding", "One band from", "90"),
        _DECIMAL,
        _UNKNOWN,
    ),
    "prefix": (
        ("prefix", "Characters kept", "3, 2, 1"),
        ("together", "Prefixes as one group", "036, 059"),
        ("label", "Label of that group", "000"),
        ("pad", "Lengths with zeros before", "5, 9"),
        _UNKNOWN,
    ),
    "dates": (
        ("dates", "Units", "month, quarter, year"),
        ("format", "Format, if not ISO", "%d.%m.%Y"),
        ("bottom_coding", "One group before the year", "1937"),
        _UNKNOWN,
    ),
    "times": (("times", "Units", "quarter_hour, hour, part_of_day"), _UNKNOWN),
    "cuts": (("cuts", "Break points of each level", "[6, 18, 40, 65], [18, 65]"), _DECIMAL, _UNKNOWN),
    "order": (
        ("order", "Values in order", "low, middle, high"),
        ("sizes", "Values per group", "2, 4"),
        _UNKNOWN,
    ),
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
    "tree": "tree: groups written out",
    "csv": "csv: an uploaded file",
    "yaml": "as a policy writes it (YAML)",
}
_SINGLE = ("bottom_coding", "top_coding")
_PLAIN = ("decimal", "format", "label")  # taken as they are typed


def kind_of(spec: Any) -> str:
    """Name the builder of a spec that the fields can show, else 'yaml'."""
    if isinstance(spec, str):
        return spec if spec in FIELDS else "yaml"
    if not isinstance(spec, Mapping):
        return "yaml"
    kind = next((name for name in spec if name in NAMES), "yaml")
    known = {name for name, _, _ in FIELDS.get(kind, ())} | {kind}
    return kind if set(spec) <= known else "yaml"


def texts_of(kind: str, spec: Any) -> dict[str, str]:
    """Write a spec into fields."""
    if kind == "yaml":
        return {"yaml": in_a_line(spec)}
    found = {}
    for name, value in spec.items() if isinstance(spec, Mapping) else ():
        if value is None:
            continue
        text = str(value) if name in _PLAIN else in_a_line(value)
        found[name] = text[1:-1] if isinstance(value, list) else text
    return found


def in_a_line(value: Any) -> str:
    """Write YAML in one line.

    >>> in_a_line({"intervals": [5, 10]}), in_a_line("flat")
    ('{intervals: [5, 10]}', 'flat')
    """
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("...\n").strip()


def spec_of(kind: str, fields: Mapping[str, str]) -> Any:
    """Read fields as a policy writes a hierarchy."""
    if kind == "flat":
        return "flat"
    if kind == "yaml":
        return _read(fields.get("yaml", ""))
    spec: dict[str, Any] = {}
    for name, _, _ in FIELDS.get(kind, ()):
        text = fields.get(name, "").strip()
        if text or name == kind:
            single = name in _SINGLE or name == "tree"
            loader = yaml.BaseLoader if name == "together" else yaml.SafeLoader  # 036 is no number
            spec[name] = text if name in _PLAIN else _read(text if single else f"[{text}]", loader)
    return spec or {kind: fields.get(kind)}


def _read(text: str, loader: type[yaml.BaseLoader | yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    try:
        return yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        message = "This cannot be read. Check the commas, brackets and quotes."
        raise ValueError(message) from None
