"""Nobody is released below k persons by a guessed policy, unless a note says so.

Tables are generated with planted keys, dates, ages, places and repeated persons, and with released columns
that reveal generalized ones. The first policy is used as it is written. The check is naive and plain: it
knows who is in each row, and counts the persons behind every released combination of what others can know.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest
import yaml

import shoal
from example_counts import usual_or_nightly
from shoal.columns.presets import policy_text
from shoal.workflow.inspect import inspect

K = 5
TAG = "row_tag"  # tells which row of the table a released row was; added after the guess
TABLES = usual_or_nightly(32, 2000)

KEYS = (  # names that say so, then names that say little
    ("subject_id", "patient_id", "PatientID", "mrn", "person_no", "Patientennummer", "id_paciente"),
    ("id", "ID", "subject", "patient", "case_no"),
    ("v1", "code2", "ref"),
)
DATES = (
    "date_of_diagnosis", "therapy_start", "medication_start_date", "Diagnosedatum", "fecha_diagnostico",
    "date_du_diagnostic", "Therapiebeginn", "diagnosis", "dx", "drug", "TherapyEnd", "income_year_month",
)  # fmt: skip
FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%Y-%m", "%Y%m", "%B %Y", "%d %b %y", "%G-W%V")
AGES = (
    "age_at_diagnosis",
    "AgeAtDiagnosis",
    "disease_onset_age",
    "Erkrankungsalter",
    "diagnosis",
    "edad_enfermedad",
)
PLACES = (
    "diagnosis_postcode", "diagnosing_hospital", "therapy_clinic", "income_region", "disease_country",
    "Klinik", "hôpital_diagnostic", "medication_ward",
)  # fmt: skip


class Planted:
    """A table of visits, the person of each row, and the names of what others can know."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        persons = draw.randint(12, 60)
        repeated = draw.random() < 0.6
        self.persons = [
            n for n in range(persons) for _ in range(draw.choice((1, 2, 3, 5)) if repeated else 1)
        ]
        draw.shuffle(self.persons)
        self.columns: dict[str, list[Any]] = {}
        self.known: list[str] = []
        self.sure = self._plant_key(persons)
        self._plant("smoker", [draw.choice(("yes", "no")) for _ in self.persons])
        self._plant_dates(persons)
        if draw.random() < 0.6:
            lived = [draw.randint(18, 95) for _ in range(persons)]
            self._plant(draw.choice(AGES), [lived[n] for n in self.persons])
        if draw.random() < 0.7:
            self._plant_places(persons)
        illness = [draw.randrange(3) for _ in self.persons]
        self.columns["illness"] = [("asthma", "diabetes", "migraine")[n] for n in illness]
        if draw.random() < 0.4:  # an amount that is the same as something generalized, in other words
            first = self.known[-1]
            values = sorted(set(map(str, self.columns[first])))
            self.columns["income"] = [1000 + 37 * values.index(str(v)) for v in self.columns[first]]

    def _plant(self, name: str, values: list[Any]) -> None:
        if name not in self.columns:
            self.columns[name] = values
            self.known.append(name)

    def _plant_key(self, persons: int) -> bool:
        """Plant the key, and what stays the same for life; return whether the key's name is sure."""
        draw = self.draw
        group = draw.choice((0, 0, 1, 1, 2))
        form = draw.choice(("{}", "P{:04}", "{:06}", "K-{}"))
        step, start = draw.randint(1, 9), draw.randint(1, 5000)
        self._plant(draw.choice(KEYS[group]), [form.format(start + step * n) for n in self.persons])
        if group == 2 or draw.random() < 0.7:
            sexes = [draw.choice("fm") for _ in range(persons)]
            births = [draw.randint(1930, 2005) for _ in range(persons)]
            self._plant("sex", [sexes[n] for n in self.persons])
            self._plant("birth_year", [births[n] for n in self.persons])
        return group == 0

    def _plant_dates(self, persons: int) -> None:
        draw = self.draw
        days = [date(2018, 1, 1) + timedelta(days=draw.randrange(1500)) for _ in range(persons)]
        each = [days[n] + timedelta(days=draw.randrange(90)) for n in self.persons]
        form = draw.choice(FORMS)
        self._plant(draw.choice(DATES), [day.strftime(form) for day in each])
        if draw.random() < 0.3:
            self._plant(
                draw.choice(("income_year", "therapy_year", "Diagnosejahr")), [day.year for day in each]
            )

    def _plant_places(self, persons: int) -> None:
        draw = self.draw
        name = draw.choice(PLACES)
        places = [f"{10100 + 7 * n}" if "postcode" in name else f"{'ABCDEFGHIJ'[n]}{n}" for n in range(10)]
        home = [draw.choice(places) for _ in range(persons)]
        self._plant(name, [home[n] for n in self.persons])

    @property
    def table(self) -> pa.Table:
        return pa.table(self.columns)


def fewest_persons(planted: Planted, released: pa.Table) -> int:
    """Count the different persons behind every released combination of what others can know."""
    names = [name for name in planted.known if name in released.column_names]
    behind: dict[tuple[Any, ...], set[int]] = {}
    for row in released.to_pylist():
        combination = tuple(str(row[name]) for name in names)
        behind.setdefault(combination, set()).add(planted.persons[row[TAG]])
    return min((len(persons) for persons in behind.values()), default=K)


def released(planted: Planted) -> tuple[Any, str]:
    """Release a table by the first policy that is guessed for it, with the rows' numbers beside it."""
    table = planted.table
    inspection = inspect(table)
    policy = yaml.safe_load(policy_text(inspection.columns))
    policy["columns"][TAG] = {"role": "other"}
    numbers = pa.array(range(table.num_rows), pa.int64())
    release = shoal.anonymize(table.append_column(TAG, numbers), policy)
    notes = [note for note in (*inspection.notes, *release.notes) if TAG not in note]
    return release, "\n".join(notes)


@pytest.mark.parametrize("part", range(8))
def test_nobody_is_released_below_k_persons_without_a_note(part: int) -> None:
    noted = revealed = 0
    for seed in range(part, TABLES, 8):
        planted = Planted(seed)
        release, notes = released(planted)
        assert release.verification.verified
        names = set(release.table.column_names)
        key = planted.known[0]
        assert key not in names or notes or len(set(planted.persons)) == len(planted.persons), (seed, key)
        fewest = fewest_persons(planted, release.table)
        if fewest < K:
            assert "persons" in notes, (seed, fewest, planted.known)
            assert not planted.sure, (seed, notes)  # a sure name is enough for `unit`
            noted += 1
        told = release.to_dict().get("revealed")
        if told is not None and reveals(planted, release.table):
            assert told, (seed, planted.known)
            revealed += 1
    assert noted <= TABLES / 8 / 5  # notes are the exception


def reveals(planted: Planted, released: pa.Table) -> bool:
    """Return whether the planted amount is released unchanged, and tells what another column hides."""
    hidden = planted.known[-1]
    if "income" not in released.column_names or hidden not in released.column_names:
        return False
    if released.num_rows < 25:  # too few to tell it from chance
        return False
    before = [planted.columns[hidden][tag] for tag in released[TAG].to_pylist()]
    exact = [planted.columns["income"][tag] for tag in released[TAG].to_pylist()]
    same = [str(value) for value in released["income"].to_pylist()] == [str(value) for value in exact]
    # Two columns in which every value occurs once determine each other by chance, too.
    shared = sum(count for count in Counter(exact).values() if count > 1)
    return same and 2 * shared > len(exact) and len(set(released[hidden].to_pylist())) < len(set(before))


def test_a_study_of_99_patients_singles_out_nobody() -> None:
    """Who knows a patient's age and dates, and where they were treated, found nearly everybody before."""
    draw = random.Random(99)
    days = [date(2015, 1, 1) + timedelta(days=draw.randrange(2000)) for _ in range(99)]
    table = pa.table(
        {
            "age_at_diagnosis": [draw.randint(20, 90) for _ in days],
            "year_month_of_diagnosis": [int(day.strftime("%Y%m")) for day in days],
            "date_of_diagnosis": [day.isoformat() for day in days],
            "therapy_start": [(day + timedelta(days=draw.randrange(60))).isoformat() for day in days],
            "medication_start_date": [(day + timedelta(days=3)).strftime("%d.%m.%Y") for day in days],
            "disease_onset_age": [draw.randint(15, 60) for _ in days],
            "diagnosis_postcode": [f"{draw.randint(1, 40):05}" for _ in days],
            "diagnosing_hospital": [draw.choice(("North", "St. Mary", "General")) for _ in days],
            "income_year": [day.year for day in days],
            "diagnosis": [draw.choice(("C50.9", "C34.1", "C18.0")) for _ in days],
        }
    )
    release = shoal.anonymize(table, yaml.safe_load(policy_text(inspect(table).columns)))
    known = [name for name in release.table.column_names if name != "diagnosis"]
    alike = Counter(tuple(row[name] for name in known) for row in release.table.to_pylist())
    assert len(known) == 9
    assert min(alike.values()) >= K
    assert "diagnosis" in release.table.column_names
