"""The 18 identifiers of Safe Harbor: what is found, what must not be, and that no value is ever told."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_time import fastest
from shoal.columns.guesses import Guess
from shoal.columns.identifiers import IDENTIFIERS, identifiers_in, looks_like, oldest
from shoal.columns.values import MOST, bsn, dni, iban, kvnr, luhn, mostly, nhs, nir, spread, ssn, vin
from shoal.workflow.inspect import guess, inspect, safe_harbor_findings

RANDOM = random.Random(7)
BLAND = "value"  # a name that says nothing


def digits(number: int) -> str:
    return "".join(RANDOM.choices("0123456789", k=number))


def passing(draw: Callable[[], str], check: Callable[[str], bool], size: int = 30) -> list[str]:
    """Draw texts until enough pass a check."""
    found: list[str] = []
    while len(found) < size:
        text = draw()
        if check(text):
            found.append(text)
    return found


def vin_like() -> str:
    return "".join(RANDOM.choices("ABCDEFGHJKLMNPRSTUVWXYZ0123456789", k=17))


EMAILS = [f"p{n}@mail.example.org" for n in range(20)]
# What the values of a column with a bland name must be taken for.
VALUES: dict[str, tuple[str, Sequence[str]]] = {
    "names": (
        "A",
        ["Mary Smith", "John Q. Public", "Brown, Anna", "José García", "Hans von Berg", "Ann Lee"],
    ),
    "nine digit zip": ("B", [f"{n:05}-{n:04}" for n in range(1000, 1020)]),
    "coordinates": ("B", [f"51.{n}, -0.{n}" for n in range(1000, 1010)]),
    "iso dates": ("C", [f"2024-03-{n:02}" for n in range(1, 20)]),
    "moments": ("C", [f"2024-03-{n:02}T10:30:00" for n in range(1, 20)]),
    "german dates": ("C", [f"{n}.3.1980" for n in range(1, 20)]),
    "american dates": ("C", [f"12/{n}/1980" for n in range(13, 20)]),
    "short years": ("C", [f"{n:02}.03.80" for n in range(1, 20)]),
    "digits of dates": ("C", [f"202403{n:02}" for n in range(1, 20)]),
    "months": ("C", [f"2024-{n:02}" for n in range(1, 13)]),
    "written months": (
        "C",
        ["March 2024", "Apr 2024", "7 May 2023", "Juni 2021", "août 2020", "Dec 24, 2019"],
    ),
    "quarters": ("C", ["2024-Q1", "2024-Q2", "2023-Q4"]),
    "american phones": ("D", [f"(617) 555-{n:04}" for n in range(20)]),
    "dashed phones": ("D", [f"617-555-{n:04}" for n in range(20)]),
    "world phones": ("D", [f"+49 89 1234{n:04}" for n in range(20)]),
    "french phones": ("D", [f"01 23 45 67 {n}" for n in range(10, 30)]),
    "e-mail": ("F", EMAILS),
    "social security": ("G", [f"123-45-{n:04}" for n in range(1, 20)]),
    "french security": (
        "G",
        [f"{n}{97 - int(n) % 97:02}" for n in ("1850578006084", "2920675112345", "1771269123456")],
    ),
    "dutch citizens": ("G", passing(lambda: digits(9), bsn)),
    "nhs": ("H", passing(lambda: digits(10), nhs)),
    "spaced nhs": ("H", [f"{n[:3]} {n[3:6]} {n[6:]}" for n in passing(lambda: digits(10), nhs)]),
    "medicare": ("I", ["1EG4-TE5-MK73", "2AA4TE5MK73", "3EG4TE5MK72"]),
    "german insurance": ("I", passing(lambda: f"{RANDOM.choice('ABCXYZ')}{digits(9)}", kvnr)),
    "iban": ("J", ["DE89 3704 0044 0532 0130 00", "GB82 WEST 1234 5698 7654 32", "NL91ABNA0417164300"]),
    "cards": ("J", passing(lambda: "4" + digits(15), luhn)),
    "vin": ("L", passing(vin_like, vin)),
    "mac": ("M", [f"00:1A:2b:3c:4d:{n}" for n in range(10, 30)]),
    "imei": ("M", passing(lambda: "35" + digits(13), luhn)),
    "urls": ("N", [f"https://example.org/{n}" for n in range(5)]),
    "ip 4": ("O", [f"192.168.0.{n}" for n in range(5)]),
    "ip 6": ("O", [f"2001:db8::{n}" for n in range(5)]),
    "photographs": ("Q", ["faces/1.JPG", "faces/2.png"]),
    "images": ("Q", ["/9j/" + "A" * 60]),
    "uuid": ("R", [f"123e4567-e89b-12d3-a456-4266141740{n:02}" for n in range(20)]),
    "spanish identity": (
        "R",
        passing(lambda: digits(8) + RANDOM.choice("TRWAGMYFPDXBNJZSQVHLCKE"), dni),
    ),
}
# What must be taken for nothing under a bland name.
NOTHING: dict[str, Sequence[str]] = {
    "icd 10": ["E11.9", "I10", "J45.901", "Z00.00", "S52.5"],
    "icd 9": ["250.00", "401.9", "V30.00"],
    "drug codes": ["0002-1433-80", "50242-040-62", "00002-1433-80", "12345-6789-1"],
    "long drug codes": ["00002-1433-80", "00003-0293-05", "00071-0155-23"],
    "procedures": ["99213", "00100", "36415", "80053"],
    "laboratory codes": ["2345-7", "718-7", "4548-4"],
    "postcodes": ["80331", "10115", "20095"],
    "british postcodes": ["SW1A 1AA", "M1 1AE"],
    "years": ["1980", "2024", "1999"],
    "counts": [str(n) for n in range(200)],
    "amounts": ["1234567", "2345678", "3456789", "98765432"],
    "decimals": ["36.6", "0.125", "1234.5678", "0123.45678901"],
    "nine digits": [str(123456780 + 7 * n) for n in range(50)],
    "ten digits": [str(6175550000 + n) for n in range(50)],
    "sixteen digits": [str(4000000000000000 + 3 * n) for n in range(50)],
    "times": ["10:30", "10:30:00", "23:59"],
    "pressures": ["120/80", "135/85", "110/70"],
    "ranges": ["18-29", "30-49", "1000-2000"],
    "isbn": ["978-3-16-148410-0", "978-0-306-40615-7"],
    "wrong social security": ["000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "123-45-0000"],
    "ethnicities": ["South Asian", "East Asian", "Latin American", "Middle Eastern", "Black African"],
    "hospitals": [
        "St Mary Hospital",
        "John Hopkins Hospital",
        "Mount David Clinic",
        "Paul School of Care",
        "St Ann",
    ],
    "places": ["Boston", "New York", "Los Angeles", "Reno", "Salt Lake City", "Las Vegas"],
    "illnesses": ["heart attack", "hip fracture", "Type 2 diabetes"],
    "sexes": ["female", "male", "U"],
    "versions": ["1.2.3", "10.0.1", "3.11.4"],
    "flags": ["yes", "no"],
}


@pytest.mark.parametrize("case", VALUES)
def test_values_are_known_under_a_bland_name(case: str) -> None:
    letter, values = VALUES[case]
    found = looks_like(BLAND, values)
    assert found is not None
    assert (found.identifier.letter, found.by) == (letter, "values")


@pytest.mark.parametrize("case", NOTHING)
def test_other_values_are_no_identifier(case: str) -> None:
    assert looks_like(BLAND, NOTHING[case]) is None


NAMES = {
    "A": "name PatientLastName first_name Vorname Nachname prénom apellidos voornaam employer_name surname",
    "B": "city County street_address address PLZ Postleitzahl zip ZipCode code_postal latitude lon ville",
    "C": "birth_date DOB Geburtsdatum admission_date fecha date_of_death timestamp month birth_month weekday",
    "D": "phone PhoneNumber Telefonnummer téléphone mobile_number telefoon home_phone",
    "E": "fax fax_number Telefax",
    "F": "email E-Mail EmailAddress correo courriel",
    "G": "ssn SocialSecurityNumber bsn Sozialversicherungsnummer seguridad_social",
    "H": "mrn MedicalRecordNumber patient_id PatientID nhs_number Patientennummer record_no subject_id",
    "I": "member_id health_card Versichertennummer medicare_no beneficiary_id policy_number",
    "J": "account_number IBAN Kontonummer credit_card card_number",
    "K": "license_number driver_license Führerscheinnummer certificate_no",
    "L": "vin license_plate plate_number vehicle_id kfz_kennzeichen",
    "M": "device_id serial_number imei mac_address Seriennummer",
    "N": "url website home_page_url HomepageURL",
    "O": "ip ip_address IPAddress",
    "P": "fingerprint voice_print retina_scan Fingerabdruck",
    "Q": "photo patient_photo portrait Foto",
    "R": "id passport_number uuid national_id username notes Bemerkungen "
    "Bemerkung Anmerkung Kommentar Notiz Freitext remarque Remarques commentaire observación nota "
    "Observaciones "
    "notas opmerking Opmerkingen notitie observação anotações osservazione Annotazioni free_text",
}


@pytest.mark.parametrize("letter", NAMES)
def test_names_are_known(letter: str) -> None:
    for name in NAMES[letter].split():
        found = looks_like(name, ["Xy17", "Qq23", "Zz99"])
        assert found is not None, name
        assert (name, found.identifier.letter, found.by) == (name, letter, "name")


def test_names_of_other_things_say_nothing() -> None:
    names = (
        "sex state country region ward hospital_name drug_name diagnosis_name update candidate_score covid "
        "ip_days inpatient urinary_tract cell_count photosensitivity insurance length_of_stay stage average "
        "weeks_of_gestation visit_type opioid validated nhs_trust plan_type birth_weight marital_status "
        "emaciated dosage steroid"
    )
    for name in names.split():
        assert looks_like(name, ["Xy17", "Qq23", "Zz99"]) is None, name


def test_every_identifier_of_the_rule_can_be_found_by_name() -> None:
    assert list(IDENTIFIERS) == list("ABCDEFGHIJKLMNOPQR")
    assert set(NAMES) == set(IDENTIFIERS)


def test_a_weak_name_counts_only_where_values_tell_persons_apart() -> None:
    assert looks_like("id", ["Xy17", "Qq23"], records=100) is None
    assert looks_like("id", ["Xy17", "Qq23"], records=4) is not None
    assert looks_like("patient_id", ["Xy17", "Qq23"], records=100) is not None


def test_a_flag_is_no_identifier() -> None:
    for values in (["yes", "no"], ["0", "1"], ["Y", "N", "unknown"]):
        assert looks_like("phone", values) is None


def test_name_and_values_together() -> None:
    for name, values in (
        ("email", EMAILS),
        ("zip", ["03601", "94110", "3601", "941101234", "94110-1234"]),
        ("ssn", ["123456789", "234567890"]),
        ("phone", ["6175551234"]),
        ("patient_id", VALUES["uuid"][1]),
        ("fax", ["617-555-1234", "617-555-1235"]),
    ):
        found = looks_like(name, values)
        assert found is not None
        assert (name, found.by) == (name, "name and values")
    zips = looks_like("zip", ["SW1A 1AA", "M1 1AE"])
    assert zips is not None
    assert (zips.kind, zips.by) == ("place", "name")


def test_what_values_say_wins_over_a_name_that_says_otherwise() -> None:
    found = looks_like("city", EMAILS)
    assert found is not None
    assert found.identifier.letter == "F"
    faxes = looks_like("fax", VALUES["dashed phones"][1])
    assert faxes is not None
    assert faxes.identifier.letter == "E"
    towns = looks_like("city", ["San Jose", "Santa Ana", "San Juan", "Santa Maria", "San Luis"])
    assert towns is not None
    assert towns.identifier.letter == "B"


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("age", ["1", "89"], False),
        ("age", ["1", "90"], True),
        ("age", ["1", "103.5"], True),
        ("age", ["1y", "90+"], False),
        ("age", ["45 years", "93 years", "95 years"], True),
        ("Alter", ["90"], True),
        ("age_months", ["300", "1079"], False),
        ("age_months", ["300", "1080"], True),
        ("stage", ["90", "95"], False),
        ("weight", ["90", "95"], False),
    ],
)
def test_ages_over_89(name: str, values: list[str], found: bool) -> None:
    assert (looks_like(name, values) is not None) is found


def test_years_are_no_dates_but_those_of_old_births_tell_ages() -> None:
    assert looks_like("admission_date", ["2020", "2021"]) is None
    assert looks_like("birth_year", ["2001", "2015"]) is None
    assert looks_like("birth_date", ["1920", "2015"]) is not None
    assert looks_like("birth_year", ["1920", "2015"]) is not None
    assert looks_like("date_known", ["yes", "no"]) is None


def test_a_share_of_the_values_must_match() -> None:
    assert looks_like(BLAND, [*EMAILS[:16], "a", "b", "c", "d"]) is not None
    assert looks_like(BLAND, [*EMAILS[:15], "a", "b", "c", "d", "e"]) is None
    assert looks_like(BLAND, [None, "", *EMAILS]) is not None
    assert looks_like(BLAND, [None, ""]) is None
    assert looks_like("email", []) is None


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=60), st.integers(2, 20))
def test_values_are_spread_from_the_first_to_the_last(texts: list[str | None], most: int) -> None:
    found = spread(texts, most)
    assert len(found) <= most
    known = [text.strip() for text in texts if text and text.strip()]
    assert set(found) <= set(known)
    if len(texts) <= most:
        assert found == known
    elif texts[-1] and texts[-1].strip():
        assert found[-1] == texts[-1].strip()


@given(st.lists(st.booleans(), max_size=40), st.sampled_from([0.15, 0.5, 0.8, 1.0]))
def test_mostly_counts_the_share(marks: list[bool], share: float) -> None:
    found = mostly(["y" if mark else "n" for mark in marks], lambda text: text == "y", share)
    assert found == (bool(marks) and sum(marks) >= share * len(marks) - 1e-9)


# Check digits: one wrong digit is always noticed.


def wrong(text: str, place: int, step: int) -> str:
    return text[:place] + str((int(text[place]) + step) % 10) + text[place + 1 :]


@given(st.text("0123456789", min_size=12, max_size=18), st.data())
def test_luhn_notices_a_wrong_digit(body: str, data: st.DataObject) -> None:
    good = [body + last for last in "0123456789" if luhn(body + last)]
    assert len(good) == 1
    place, step = data.draw(st.integers(0, len(body))), data.draw(st.integers(1, 9))
    assert not luhn(wrong(good[0], place, step))


CHECKS = {
    "nhs": (10, nhs),
    "bsn": (9, bsn),
    "vin": (17, vin),
}


@pytest.mark.parametrize("name", CHECKS)
@given(data=st.data())
def test_modulus_11_notices_a_wrong_digit(name: str, data: st.DataObject) -> None:
    size, check = CHECKS[name]
    text = data.draw(st.text("0123456789", min_size=size, max_size=size))
    place, step = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, 9))
    changed = wrong(text, place, step)
    if not (name == "vin" and place == 8 and text[8] == "X"):
        assert not (check(text) and check(changed))


@given(st.integers(10**9, 10**12))
def test_modulus_97_has_one_right_pair(number: int) -> None:
    good = [pair for pair in range(2, 99) if iban(f"GB{pair:02}{number:018}")]
    assert len(good) == 1
    assert sum(nir(f"{number:013}{key:02}") for key in range(1, 98)) == 1


def test_published_numbers_are_right() -> None:
    assert iban("DE89370400440532013000")
    assert bsn("111222333")
    assert dni("12345678Z")
    assert dni("X1234567L")
    assert kvnr("A123456780")
    assert not kvnr("A123456781")
    assert ssn("123", "45", "6789")
    assert not ssn("666", "45", "6789")


# No value is told, whatever is found.


@given(st.lists(st.text(min_size=3, max_size=30), min_size=1, max_size=8))
def test_any_values_can_be_looked_at(values: list[str]) -> None:
    for name in ("email", "age", "zip", "date", "birth", "id", BLAND):
        looks_like(name, values)


def test_what_is_said_never_holds_a_value() -> None:
    for letter, values in VALUES.values():
        found = looks_like(BLAND, values)
        assert found is not None
        told = " ".join([*found.to_dict().values(), found.mark, repr(found)])
        assert found.to_dict()["letter"] == letter
        assert not any(value in told for value in values)


def seconds(texts: Sequence[str]) -> float:
    return fastest(lambda: looks_like(BLAND, texts), times=3)


def test_a_million_values_take_no_time() -> None:
    texts = [f"Xq {n} unlike" for n in range(1_000_000)]
    assert looks_like(BLAND, texts) is None
    assert seconds(texts) < 0.1
    dates = [f"{1950 + n % 70}-{n % 12 + 1:02}-{n % 28 + 1:02}" for n in range(1_000_000)]
    assert looks_like(BLAND, dates) is not None
    assert seconds(dates) < 0.1
    assert len(spread(dates)) == MOST


# Guesses.


def table() -> pa.Table:
    return pa.table(
        {
            "contact": EMAILS * 5,
            "patient_id": [f"p{n % 10}" for n in range(100)],
            "town": ["Reno", "Boston"] * 50,
            "sex": ["f", "m"] * 50,
            "key": [f"k{n:04}" for n in range(100)],
            "seen": [20240101 + n % 28 for n in range(100)],
        }
    )


def by_name(guesses: Sequence[Guess]) -> dict[str, Guess]:
    return {one.column: one for one in guesses}


def test_a_column_of_addresses_with_an_unlucky_name_is_an_identifier() -> None:
    found = by_name(guess(table()))
    assert found["contact"].role.value == "identifier"
    assert found["contact"].reason == "the values are written as e-mail addresses"
    assert found["patient_id"].role.value == "identifier"
    assert found["town"].role.value == "quasi-identifier"
    assert found["key"].reason == "nearly every value occurs once"
    assert found["seen"].hierarchy["format"] == "%Y%m%d"


def test_findings_of_a_table_are_those_of_its_columns() -> None:
    found = safe_harbor_findings(table())
    assert {name: one.identifier.letter for name, one in found.items()} == {
        "contact": "F", "patient_id": "H", "town": "B", "key": "R", "seen": "C",
    }  # fmt: skip
    assert identifiers_in(inspect(table()).columns) == found


def test_ninety_years_in_other_units() -> None:
    assert [oldest(name) for name in ("age", "age_days", "AgeInWeeks")] == [90, 32850, 4680]
