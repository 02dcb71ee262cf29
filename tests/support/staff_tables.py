"""A table of staff in which unchanged columns reveal generalized ones, and its policy."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

import pandas as pd

import shoal

QUASI = "quasi-identifier"
DEPARTMENTS = ("Production", "IT/IS", "Sales", "Software", "Admin", "Executive")


def staff(number: int = 311) -> pd.DataFrame:
    """A table of persons in which an ID stands for the department, and an exact date for the date of hire."""
    rng = random.Random(7)
    rows = []
    for person in range(number):
        place = rng.choices(range(6), [208, 50, 31, 11, 9, 2])[0]
        hired = date(2006, 1, 1) + timedelta(days=rng.randrange(12 * 365))
        rows.append(
            {
                "Employee": f"E{person:04}",
                "Department": DEPARTMENTS[place],
                "DeptID": place + 1,
                "Hired": hired.isoformat(),
                "DateofHire": f"{hired:%m/%d/%Y}",
                "Sex": rng.choice("FM"),
                "Age": rng.randrange(20, 65),
                "Salary": rng.randrange(40_000, 90_000),
                "Score": rng.randrange(1, 6),
            }
        )
    return pd.DataFrame(rows)


def staff_policy(**entries: Any) -> dict[str, Any]:
    roles: dict[str, Any] = {
        "Employee": {"role": "identifier"},
        "Department": {"role": QUASI, "hierarchy": "flat", "min_level": 1},
        "DeptID": {"role": "other"},
        "Hired": {"role": QUASI, "hierarchy": {"dates": ["month", "year"]}, "min_level": 2},
        "DateofHire": {"role": "other"},
        "Sex": {"role": QUASI, "hierarchy": "flat"},
        "Age": {"role": QUASI, "hierarchy": {"intervals": [5, 10, 20]}},
        "Salary": {"role": "sensitive"},
        "Score": {"role": "other"},
    }
    return {"columns": roles, "models": [{"k-anonymity": {"k": 3}}], "suppression_limit": "10%", **entries}


def pairs(release: shoal.Release) -> set[tuple[str, str]]:
    return {(one.column, one.reveals) for one in release.revealed}


PLANTED = {("DeptID", "Department"), ("DateofHire", "Hired")}
