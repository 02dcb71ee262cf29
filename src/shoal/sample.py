"""Synthetic hospital admissions: an invented table of any size, with which shoal can be tried.

No row describes a real person. The rates are invented, but similar to those of a hospital: some places have
many inhabitants, patients are old, some values are rare, and some persons return with the same traits.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike
from pyarrow import csv

from shoal.core.arrays import FloatArray, IntArray
from shoal.errors import OutputError
from shoal.files.outputs import already_exists, check_place, written_whole


class _Diagnosis(NamedTuple):
    name: str
    female: float  # relative rate; 0 means that it does not occur
    male: float
    days: float  # median stay
    rates: tuple[float, ...]  # for each age band of _AGE_BANDS


_COLUMNS = (
    "name", "card_number", "age", "sex", "postcode", "admitted", "discharged",
    "ethnicity", "marital_status", "insurance", "diagnosis", "length_of_stay",
)  # fmt: skip
_AGE_BANDS = (1, 5, 15, 30, 50, 65, 80)  # ages that start a band: 0, 1-4, 5-14, 15-29, 30-49, ..., 80+
_DIAGNOSES = (
    _Diagnosis("preterm birth", 1, 1, 14.0, (12, 0, 0, 0, 0, 0, 0, 0)),
    _Diagnosis("newborn jaundice", 1, 1, 2.5, (30, 0, 0, 0, 0, 0, 0, 0)),
    _Diagnosis("newborn infection", 1, 1.2, 5.0, (16, 0, 0, 0, 0, 0, 0, 0)),
    _Diagnosis("asthma", 1.1, 1, 2.2, (0, 18, 16, 6, 4, 3, 2, 1)),
    _Diagnosis("gastroenteritis", 1, 1, 2.0, (8, 20, 10, 6, 4, 4, 4, 5)),
    _Diagnosis("tonsillitis", 1, 1, 1.2, (0, 16, 18, 7, 1, 0, 0, 0)),
    _Diagnosis("appendicitis", 1, 1.2, 2.5, (0, 2, 18, 12, 6, 2, 1, 0.5)),
    _Diagnosis("forearm fracture", 0.8, 1.2, 1.3, (0, 8, 18, 6, 4, 4, 3, 3)),
    _Diagnosis("head injury", 0.8, 1.4, 1.5, (4, 10, 12, 9, 5, 4, 5, 7)),
    _Diagnosis("epilepsy", 1, 1, 2.5, (2, 7, 6, 4, 3, 2, 2, 2)),
    _Diagnosis("childbirth", 1, 0, 2.4, (0, 0, 0, 40, 26, 0, 0, 0)),
    _Diagnosis("depression", 1.4, 1, 12.0, (0, 0, 3, 10, 8, 6, 3, 2)),
    _Diagnosis("alcohol dependence", 0.5, 1.6, 6.0, (0, 0, 0, 7, 10, 9, 3, 0.5)),
    _Diagnosis("diabetes", 0.9, 1.1, 4.0, (0, 1, 6, 3, 5, 7, 7, 5)),
    _Diagnosis("gallstones", 1.5, 0.8, 3.0, (0, 0, 0, 5, 9, 8, 6, 4)),
    _Diagnosis("breast cancer", 1, 0.01, 3.0, (0, 0, 0, 0.5, 6, 8, 6, 3)),
    _Diagnosis("prostate cancer", 0, 1, 3.5, (0, 0, 0, 0, 0.5, 7, 9, 4)),
    _Diagnosis("heart attack", 0.7, 1.3, 4.5, (0, 0, 0, 0.3, 4, 11, 11, 9)),
    _Diagnosis("atrial fibrillation", 0.9, 1.1, 2.5, (0, 0, 0, 0.5, 2, 7, 12, 12)),
    _Diagnosis("heart failure", 1, 1, 6.0, (0.5, 0.1, 0.1, 0.2, 1, 6, 14, 22)),
    _Diagnosis("stroke", 1, 1.1, 7.0, (0, 0, 0, 0.5, 2, 6, 11, 14)),
    _Diagnosis("pneumonia", 0.9, 1.1, 5.0, (6, 12, 6, 3, 4, 6, 11, 18)),
    _Diagnosis("hip fracture", 1.6, 0.8, 9.0, (0, 0, 0, 0.2, 0.5, 2, 7, 18)),
    _Diagnosis("urinary infection", 1.5, 0.8, 3.5, (5, 4, 3, 4, 3, 3, 6, 11)),
    _Diagnosis("tuberculosis", 1, 1.4, 16.0, (0, 0.1, 0.1, 0.5, 0.5, 0.4, 0.3, 0.3)),
)
_STAY_BY_AGE = (1.2, 0.8, 0.8, 0.85, 0.95, 1.0, 1.2, 1.4)

_FIRST_AGES = (0, 1, 5, 12, 18, 30, 40, 55, 68, 77, 84, 90, 95, 102)  # two years later: 104 at most
_FIRST_AGE_RATES = (9.0, 1.6, 0.55, 0.45, 0.8, 1.25, 1.0, 1.3, 1.9, 2.2, 1.7, 0.6, 0.15, 0.01)
_SEXES = ("female", "male", "other", "U")
_SEX_RATES = (  # per age band
    *[(0.47, 0.523, 0.002, 0.005)] * 3,
    *[(0.60, 0.391, 0.004, 0.005)] * 2,
    *[(0.46, 0.534, 0.001, 0.005)] * 2,
    (0.57, 0.4245, 0.0005, 0.005),
)
_ETHNICITIES = {
    "white": 61, "south asian": 11, "black": 9, "east asian": 6, "latin american": 4.5,
    "mixed": 3, "middle eastern": 2, "indigenous": 0.5, "unknown": 3,
}  # fmt: skip
_MARITAL_STATUSES = ("single", "married", "divorced", "widowed", "separated", "unknown")
_MARITAL_BANDS = (18, 25, 35, 50, 65, 80)
_MARITAL_RATES = (
    (99, 0, 0, 0, 0, 1),
    (89, 8.5, 0.8, 0.1, 0.6, 1),
    (52, 40, 4, 0.3, 2.7, 1),
    (24, 58, 12, 1.2, 3.8, 1),
    (13, 61, 17, 5, 3, 1),
    (7, 56, 14, 20.5, 1.5, 1),
    (5, 34, 7, 52.4, 0.6, 1),
)
_INSURANCES = ("public", "private", "employer", "self-pay", None)
_INSURANCE_BANDS = (18, 65)
_INSURANCE_RATES = ((58, 12, 26, 2.5, 1.5), (41, 15, 37, 5.5, 1.5), (80, 14, 3, 1.5, 1.5))

_FEMALE_NAMES = """
    Aaliyah Agnes Aiko Amara Ana Astrid Beatriz Chiara Dalia Elena Esi Fatima Freya Grace Hana Ingrid
    Kavya Leila Lin Lucía Mei Mirela Nadia Ngozi Noor Olga Priya Rosa Ruth Sofia Tala Thuy Yara Zoë"""
_MALE_NAMES = """
    Ahmed Akira Alexei Andrés Anton Arjun Bao Bruno Carlos Chidi Daniel Emre Farid Finn Gustav Hassan Hugo
    Ivan Jamal Jun Karim Kofi Lars Liam Marco Mateo Nikhil Omar Pavel Samuel Søren Tariq Tomás Wei"""
_FAMILY_NAMES = """
    Abara Adler Almeida Andersen Bakker Banerjee Baptiste Belova Castillo Chen Costa Demir Diallo Dubois
    Eriksen Farouk Fischer Garcia Haddad Hansen Hoang Ibrahim Ito Jansen Kaplan Khan Kim Kovács Lindgren
    Marino Mensah Moreau Mori Murphy Nakamura Nguyen Novak Okafor Osei Owens Park Patel Petrov Popescu
    Quispe Rahman Rossi Sato Schmidt Sharma Silva Singh Taylor Torres Tran Vargas Walker Wang Yilmaz Zhou"""

_REGIONS = {"0": 30, "1": 22, "2": 17, "3": 14, "5": 10, "7": 7}  # first digit: share of the population
_FIRST_DAY = np.datetime64("2024-01-01")  # a Monday
_DAYS = 731
_WEEKDAY_RATES = (1.16, 1.12, 1.10, 1.07, 1.05, 0.77, 0.73)
_LONGEST_STAY = 180


def admissions(records: int = 5000, seed: int = 7) -> pa.Table:
    """Return invented admissions, one per row, in order of admission; a seed always gives the same table."""
    if records < 1:
        raise ValueError(f"records must be at least 1, got {records}.")
    generator = np.random.Generator(np.random.PCG64(seed))
    person = _persons(generator, records)
    day = _draw(generator, _day_rates(), records)
    day = day[np.lexsort((day, person))]  # `person` is already sorted, so this sorts the days of each person
    first = np.flatnonzero(np.diff(person, prepend=-1))
    first_age, age = _ages(generator, person, day, first)
    sex = _draw_within(generator, _SEX_RATES, _band(first_age, _AGE_BANDS))
    diagnosis, stay = _illnesses(generator, age, sex[person])
    stay = _without_overlaps(person, day, stay)
    traits = _traits(generator, first_age, sex)
    order = np.argsort(day, kind="stable")
    columns = {name: values.take(pa.array(person[order])) for name, values in traits.items()}
    columns["age"] = age[order]
    columns["admitted"] = _FIRST_DAY + day[order]
    columns["discharged"] = _FIRST_DAY + (day + stay)[order]
    columns["diagnosis"] = _words([diagnosis.name for diagnosis in _DIAGNOSES], diagnosis[order])
    columns["length_of_stay"] = stay[order]
    return pa.table({name: columns[name] for name in _COLUMNS})


def write_csv(path: str | PathLike[str], records: int = 5000, seed: int = 7) -> None:
    """Write `admissions` as UTF-8 CSV with a header, without quotes; a missing value is an empty field."""
    table = admissions(records, seed)
    with open(path, "wb") as file:
        # The header is written here, because Arrow would quote it.
        file.write((",".join(table.column_names) + "\n").encode())
        csv.write_csv(table, file, csv.WriteOptions(include_header=False, quoting_style="none"))


def bundled(folder: str | Path, *, force: bool = False) -> tuple[Path, Path]:
    """Copy the bundled sample and its policy into a folder and return both paths."""
    folder = Path(folder)
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = ("admissions.csv", "policy.yaml")
        for name in names:
            check_place(folder / name)
        for name in names:
            target = folder / name
            content = (files("shoal") / "data" / name).read_bytes()
            if not force and target.exists() and target.read_bytes() != content:
                raise already_exists(str(target))
            with written_whole(target, 0o666) as file:
                file.write(content)
            paths.append(target)
    except OSError as error:
        raise OutputError(
            f"Cannot write to the folder {str(folder)!r}: {error.strerror}. Name another."
        ) from None
    return paths[0], paths[1]


def _draw(generator: np.random.Generator, rates: ArrayLike, size: int) -> IntArray:
    return _draw_within(generator, np.atleast_2d(rates), np.zeros(size, dtype=np.int64))


def _draw_within(generator: np.random.Generator, rates: ArrayLike, group: IntArray) -> IntArray:
    """Draw a column index of `rates` for each element, with the rates of the row given by `group`."""
    totals = np.cumsum(np.asarray(rates, dtype=np.float64), axis=1)  # (groups, columns)
    groups, columns = totals.shape
    # Row g gets the interval [g, g + 1), so that one search in the sorted sums serves all rows.
    steps = (totals / totals[:, -1:] + np.arange(groups)[:, None]).ravel()
    # The factor keeps a sum from being rounded up into the next interval.
    points = group + generator.random(len(group)) * (1 - 1e-9)
    return np.asarray(np.searchsorted(steps, points, side="right") - group * columns, dtype=np.int64)


def _band(age: IntArray, starts: tuple[int, ...]) -> IntArray:
    return np.searchsorted(starts, age, side="right").astype(np.int64)


def _words(words: Sequence[str | None], index: IntArray) -> pa.Array:
    return pa.array(words, pa.string()).take(pa.array(index))


def _persons(generator: np.random.Generator, records: int) -> IntArray:
    visits = 1 + _draw(generator, (88, 8.5, 2.3, 0.8, 0.4), records)
    return np.repeat(np.arange(records), visits)[:records]


def _day_rates() -> FloatArray:
    day = np.arange(_DAYS)
    season = 1 + 0.13 * np.cos(2 * np.pi * (day - 20) / 365.25)  # highest in late January
    return np.asarray(np.resize(_WEEKDAY_RATES, _DAYS) * season, dtype=np.float64)


def _ages(
    generator: np.random.Generator, person: IntArray, day: IntArray, first: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the age of each person at the first admission, and the age at each admission."""
    rates = np.interp(np.arange(_FIRST_AGES[-1] + 1), _FIRST_AGES, _FIRST_AGE_RATES)
    first_age = _draw(generator, rates, len(first))
    exact = first_age + generator.random(len(first))
    years = (day - day[first][person]) / 365.25
    return first_age, np.floor(exact[person] + years).astype(np.int64)


def _illnesses(generator: np.random.Generator, age: IntArray, sex: IntArray) -> tuple[IntArray, IntArray]:
    """Return the diagnosis and the days of stay of each row."""
    by_age = np.array([diagnosis.rates for diagnosis in _DIAGNOSES]).T  # (bands, diagnoses)
    female = np.array([diagnosis.female for diagnosis in _DIAGNOSES])
    male = np.array([diagnosis.male for diagnosis in _DIAGNOSES])
    by_sex = np.stack([female, male, (female + male) / 2, (female + male) / 2])  # in the order of _SEXES
    rates = (by_age[:, None, :] * by_sex).reshape(-1, len(_DIAGNOSES))
    band = _band(age, _AGE_BANDS)
    diagnosis = _draw_within(generator, rates, band * len(_SEXES) + sex)
    median = np.array([diagnosis.days for diagnosis in _DIAGNOSES])[diagnosis] * np.array(_STAY_BY_AGE)[band]
    stay = np.floor(median * np.exp(0.7 * generator.standard_normal(len(age)))).astype(np.int64)
    return diagnosis, np.minimum(stay, _LONGEST_STAY)


def _without_overlaps(person: IntArray, day: IntArray, stay: IntArray) -> IntArray:
    """Cut a stay short if the same person is admitted again before its end."""
    limit = np.full(len(stay), _LONGEST_STAY)
    readmissions = np.flatnonzero(person[1:] == person[:-1])
    limit[readmissions] = day[readmissions + 1] - day[readmissions]
    return np.asarray(np.minimum(stay, limit), dtype=np.int64)


def _traits(generator: np.random.Generator, age: IntArray, sex: IntArray) -> dict[str, pa.Array]:
    """Return the text columns that are constant for a person, with one value per person."""
    size = len(age)
    ethnicity = _draw(generator, list(_ETHNICITIES.values()), size)
    marital_status = _draw_within(generator, _MARITAL_RATES, _band(age, _MARITAL_BANDS))
    insurance = _draw_within(generator, _INSURANCE_RATES, _band(age, _INSURANCE_BANDS))
    postcodes, populations = _postcodes()
    return {
        "name": _names(generator, sex),
        "card_number": _card_numbers(generator, size),
        "sex": _words(_SEXES, sex),
        "postcode": _words(postcodes, _draw(generator, populations, size)),
        "ethnicity": _words(list(_ETHNICITIES), ethnicity),
        "marital_status": _words(_MARITAL_STATUSES, marital_status),
        "insurance": _words(_INSURANCES, insurance),
    }


def _names(generator: np.random.Generator, sex: IntArray) -> pa.Array:
    female, male, family = _FEMALE_NAMES.split(), _MALE_NAMES.split(), _FAMILY_NAMES.split()
    women, men = [1] * len(female), [1] * len(male)
    rates = [
        women + [0] * len(male),
        [0] * len(female) + men,
        women + men,
        women + men,
    ]  # in the order of _SEXES
    given_name = _words(female + male, _draw_within(generator, rates, sex))
    family_name = _words(family, generator.integers(len(family), size=len(sex)))
    return pc.binary_join_element_wise(given_name, family_name, " ")


def _card_numbers(generator: np.random.Generator, size: int) -> pa.Array:
    # The factor has no common divisor with 10**10, so no two persons get the same number.
    number = (np.arange(size) * 618_033_989 + generator.integers(10**10)) % 10**10
    digits = pc.utf8_lpad(pc.cast(pa.array(number), pa.string()), 10, "0")
    parts = [pc.utf8_slice_codeunits(digits, start, stop) for start, stop in ((0, 4), (4, 8), (8, 10))]
    return pc.binary_join_element_wise("HC", *parts, "-")


def _postcodes() -> tuple[list[str], FloatArray]:
    """Return the postcodes and their populations; 99999 means unknown. They do not depend on the seed."""
    generator = np.random.Generator(np.random.PCG64(300))
    postcodes, populations = [], []
    for region, share in _REGIONS.items():
        # A region has ten districts of five postcodes; the first district is its city.
        for district in range(10):
            endings = generator.permutation(200)[:5] + 100 * generator.integers(9)
            postcodes += [f"{region}{district}{ending:03}" for ending in endings]
        sizes = np.repeat(1 / (1.0 + np.arange(10)), 5) * np.exp(0.6 * generator.standard_normal(50))
        populations.append(share * sizes / sizes.sum())
    known = np.concatenate(populations)
    return [*postcodes, "99999"], np.append(known, 0.004 * known.sum())
