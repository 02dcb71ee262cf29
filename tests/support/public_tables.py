"""Made-up tables with the columns and shapes of public ones, with what is known and what is needed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class LookAlike:
    """A table, what an outsider could know of its persons, and what an analyst needs."""

    name: str
    columns: dict[str, list[Any]]
    known: tuple[str, ...]
    keep: tuple[str, ...]
    person: str | None = None  # the key of persons with several rows

    @property
    def table(self) -> pa.Table:
        return pa.table(self.columns)


def _times(number: int, make: Callable[[], Any]) -> list[Any]:
    return [make() for _ in range(number)]


def doctor_visits(seed: int = 1, persons: int = 300) -> LookAlike:
    """A panel as rwm5yr: one to five years of each person, and dummies of the level of education."""
    draw = random.Random(seed)
    rows = []
    for number in range(persons):
        female, born, level = draw.randint(0, 1), draw.randint(1925, 1960), draw.randint(1, 4)
        first = draw.randint(1984, 1986)
        for year in range(first, first + draw.randint(1, 5)):
            visits = min(int(draw.expovariate(0.3)), 60)
            rows.append((number * 3 + 11, visits, year, level, year - born, female, draw.randint(0, 1)))
    names = ("id", "docvis", "year", "edlevel", "age", "female", "married")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    for level in (1, 2, 3, 4):
        columns[f"edlevel{level}"] = [int(value == level) for value in columns["edlevel"]]
    known = ("age", "female", "married", "edlevel", "year")
    return LookAlike("doctor visits", columns, known, ("docvis",), "id")


def recurrences(seed: int = 2, persons: int = 150) -> LookAlike:
    """A trial as recur: the spells of each patient between events."""
    draw = random.Random(seed)
    rows = []
    for number in range(persons):
        age, treated, begin = draw.randint(60, 77), draw.randint(0, 1), 0
        for event in range(draw.randint(1, 4)):
            end = begin + draw.randint(5, 90)
            rows.append((number + 1, age, treated, begin, end, event))
            begin = end
    names = ("ID", "AGE", "TREAT", "TIME0", "TIME1", "EVENT")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return LookAlike("recurrences", columns, ("AGE", "TREAT"), ("EVENT",), "ID")


def survival(seed: int = 3, size: int = 230) -> LookAlike:
    """A trial as lung: few patients, an institution, days, and an outcome."""
    draw = random.Random(seed)
    columns: dict[str, list[Any]] = {
        "inst": _times(size, lambda: draw.choice([None, *range(1, 22)])),
        "time": _times(size, lambda: draw.randint(5, 1022)),
        "status": _times(size, lambda: draw.choice((1, 2, 2))),
        "age": _times(size, lambda: int(draw.gauss(62, 9))),
        "sex": _times(size, lambda: draw.randint(1, 2)),
        "ph.ecog": _times(size, lambda: draw.choice((0, 1, 1, 2, 3))),
        "wt.loss": _times(size, lambda: draw.choice([None, *range(-10, 40)])),
    }
    return LookAlike("survival", columns, ("inst", "age", "sex"), ("time", "status", "ph.ecog"))


def wages(seed: int = 4, size: int = 1500) -> LookAlike:
    """A survey as Wages: a sensitive amount, and an outcome that an outsider does not know."""
    draw = random.Random(seed)
    columns: dict[str, list[Any]] = {
        "exp": _times(size, lambda: draw.randint(1, 50)),
        "sex": _times(size, lambda: draw.choice(("male", "female"))),
        "married": _times(size, lambda: draw.choice(("yes", "no"))),
        "ed": _times(size, lambda: draw.choice((8, 10, 12, 12, 12, 14, 16, 17))),
        "union": _times(size, lambda: draw.choice(("yes", "no"))),
        "lwage": _times(size, lambda: round(draw.gauss(6.7, 0.4), 3)),
    }
    return LookAlike("wages", columns, ("exp", "sex", "married", "ed"), ("lwage", "union"))


def staff(seed: int = 5, size: int = 400) -> LookAlike:
    """A table of personnel: codes beside their names, a date beside its month, and many identifiers."""
    draw = random.Random(seed)
    departments = ("Sales", "Production", "Software", "Admin", "IT", "Executive")
    hired = _times(size, lambda: date(2006, 1, 1) + timedelta(days=draw.randrange(365)))
    department = _times(size, lambda: draw.randrange(6))
    licence = _times(size, lambda: f"S999{draw.randrange(10**5):05}" if draw.random() < 0.8 else None)
    columns: dict[str, list[Any]] = {
        "row": list(range(1, size + 1)),
        "Employee_Name": [f"{draw.choice(('Ann', 'Ben', 'Cas'))} Nowak{n:03}" for n in range(size)],
        "EmpID": [10_000 + 7 * n for n in range(size)],
        "DRIVERS": licence,
        "Email": [f"p{n}@example.org" for n in range(size)],
        "DeptID": department,
        "Department": [departments[number] for number in department],
        "Sex": _times(size, lambda: draw.choice("MF")),
        "Age": _times(size, lambda: draw.randint(18, 66)),
        "DateofHire": [day.isoformat() for day in hired],
        "MonthofHire": [day.strftime("%Y-%m") for day in hired],
        "Salary": _times(size, lambda: draw.randint(30, 120) * 1000),
        "Absences": _times(size, lambda: draw.randint(0, 20)),
    }
    return LookAlike("staff", columns, ("Sex", "Age", "Department"), ("Absences", "Salary"))


ALL = (doctor_visits(), recurrences(), survival(), wages(), staff())
