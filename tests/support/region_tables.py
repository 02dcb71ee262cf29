"""Tables, a policy and the meaning of labels for tests of recodings by region."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from hypothesis import strategies as st

TREE = {"south": ["it", "es"], "north": {"nordic": ["se", "no"], "baltic": ["ee"]}}
ABOVE = {
    "it": {"it", "south", "*"}, "es": {"es", "south", "*"}, "se": {"se", "nordic", "north", "*"},
    "no": {"no", "nordic", "north", "*"}, "ee": {"ee", "baltic", "north", "*"},
}  # fmt: skip


def policy(**changes: Any) -> dict[str, Any]:
    quasi = {"role": "quasi-identifier"}
    return {
        "columns": {
            "id": {"role": "other"},
            "age": {**quasi, "hierarchy": {"intervals": [5, 10, 40], "unknown": [99]}},
            "land": {**quasi, "hierarchy": {"tree": TREE}},
            "sex": {**quasi, "hierarchy": "flat"},
            "ill": {"role": "sensitive"},
        },
        "models": [{"k-anonymity": {"k": 3}}],
        "suppression_limit": "40%",
        "metric": "discernibility-star",
    } | changes


@st.composite
def tables(draw: Any) -> pd.DataFrame:
    rows = draw(st.integers(6, 40))

    def column(values: list[Any]) -> Any:
        return draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))

    return pd.DataFrame(
        {
            "id": range(rows),
            "age": pd.array(column([20, 21, 22, 30, 31, 47, 60, 99, None]), dtype="Int64"),
            "land": column(["it", "es", "se", "no", "ee", None]),
            "sex": column(["f", "m", "m", None]),
            "ill": column(["a", "b", "c"]),
        }
    )


def covers(name: str, label: Any, value: Any) -> bool:
    """Read a label as an analyst would."""
    missing = value is None or pd.isna(value)
    if label is None or pd.isna(label):
        return missing
    label = str(label)
    if label == "*":
        return True
    if missing:
        return "missing" in re.split(r", | or ", label.strip("{}"))
    told = label.removesuffix(" or missing")
    if name == "age" and value == 99:
        return label in ("99", "99.0", "missing") or label.endswith(" or missing")
    found = re.fullmatch(r"\[(\d+)-(\d+)\]|(\d+)-(\d+)|(\d+)", told)
    if name == "age" and found:
        ends = [int(end) for end in found.groups() if end]
        return ends[0] <= value <= ends[-1]
    if told.startswith("{"):
        return value in told.strip("{}").split(", ")
    return told in ABOVE.get(value, {value})
