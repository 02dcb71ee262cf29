"""A chart in words and as a table, for people who cannot see it. Both are made from its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

DataTable = tuple[Sequence[str], Sequence[Sequence[Any]]]  # head and rows
_MAX_ROWS = 200


def label_of(options: Mapping[str, Any]) -> str:
    """Describe a chart by the names of its series and axes.

    >>> label_of({"xAxis": {"name": "k"}, "yAxis": {"name": "records"}, "series": [{"type": "line"}]})
    'Chart of records by k'
    >>> label_of({"series": [{"type": "tree", "data": []}]})
    'Chart of a tree'
    """
    series = _dicts(options.get("series"))
    if any(entry.get("type") == "tree" for entry in series):
        return "Chart of a tree"
    x, y = (next(iter(_dicts(options.get(axis))), {}).get("name", "") for axis in ("xAxis", "yAxis"))
    names = " and ".join(str(entry["name"]) for entry in series if entry.get("name") and entry.get("data"))
    what = ": ".join(part for part in (y, names) if part) or "values"
    return f"Chart of {what}" + (f" by {x}" if x else "")


def table_of(options: Mapping[str, Any]) -> DataTable | None:
    """Return the data of a chart as a table, or None if no table can show them.

    >>> axis = {"type": "category", "data": ["a", "b"]}
    >>> table_of({"xAxis": axis, "series": [{"name": "n", "data": [1, 2]}]})
    (['', 'n'], [('a', 1), ('b', 2)])
    >>> table_of({"xAxis": {"name": "k"}, "series": [{"name": "n", "data": [[1, 0.5], [2, 0.7]]}]})
    (['k', 'n'], [(1, 0.5), (2, 0.7)])
    """
    series = [entry for entry in _dicts(options.get("series")) if entry.get("data")]
    if not series:
        return None
    if series[0].get("type") == "tree":
        return ["Group", "Part of"], list(_branches(series[0]["data"], ""))[:_MAX_ROWS]
    axes = [*_dicts(options.get("xAxis")), *_dicts(options.get("yAxis"))]
    category = next((axis for axis in axes if axis.get("type") == "category"), None)
    head = [str(entry.get("name", "value")) for entry in series]
    if category is not None:
        rows = list(zip(category["data"], *(entry["data"] for entry in series), strict=False))
        return [str(category.get("name", "")), *head], rows[:_MAX_ROWS]
    values: dict[Any, dict[int, Any]] = {}
    for number, entry in enumerate(series):
        for point in entry["data"]:
            if isinstance(point, Sequence):
                values.setdefault(point[0], {})[number] = point[1]
    rows = [(x, *(ys.get(number, "") for number in range(len(series)))) for x, ys in values.items()]
    return ([str(axes[0].get("name", "")) if axes else "", *head], rows[:_MAX_ROWS]) if rows else None


def _branches(nodes: Iterable[Mapping[str, Any]], parent: str) -> Iterable[tuple[str, str]]:
    for node in nodes:
        yield str(node.get("name", "")), parent
        yield from _branches(node.get("children", ()), str(node.get("name", "")))


def _dicts(part: Any) -> list[Mapping[str, Any]]:
    return [part] if isinstance(part, Mapping) else list(part or ())
