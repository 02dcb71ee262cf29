"""Names of columns in several languages: what is recognized, and what only looks like a word of another."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.columns.guesses import Guess
from shoal.columns.identifiers import IDENTIFIERS
from shoal.columns.names import FOREIGN, TABLES, WORDS, normalized_name, roles_of, words_of
from shoal.workflow.inspect import guess

# By language, the letter of the rule that each name must be taken for.
LETTERS = {
    "german": {
        "A": "Vorname, Nachname, Familienname, PatientenName, Geburtsname, Name des Patienten, Name",
        "B": "PLZ, Postleitzahl, Straße, STRASSE, Hauptstraße, Hausnummer, Wohnort, Anschrift, Stadt",
        "C": "Geburtsdatum, geb_datum, Geburtsjahr, Aufnahmedatum, EntlassungsDatum, Alter, Monat",
        "D": "Telefon, Telefonnummer, Telefon-Nr., Handynummer, Rufnummer",
        "F": "E-Mail, EMail, E-Mail-Adresse, Mailadresse",
        "G": "Sozialversicherungsnummer, AHV-Nr",
        "H": "Patientennummer, Patienten-ID, PatientenNr, Aktenzeichen",
        "I": "Versichertennummer, Versicherten-Nr, KVNR, Krankenversicherungsnummer",
        "J": "Kontonummer, Konto-Nr, Kreditkartennummer",
        "K": "Führerschein, Fuehrerscheinnummer, FÜHRERSCHEIN",
        "L": "KFZ-Kennzeichen, Fahrgestellnummer",
        "R": "Personalausweisnummer, Reisepass, Steuer-ID, Personalnummer, Kundennummer, Kunden-Nr.",
    },
    "french": {
        "A": "Prénom, prenom, Nom de famille, NomPatient, nom_de_naissance, Nom et prénom",
        "B": "Code postal, code_postal, Ville, Commune, Adresse, Lieu de naissance, CP",
        "C": "Date de naissance, DateNaissance, année_naissance, annee_de_naissance, date_entree, Âge, mois",
        "D": "Téléphone, telephone, Numéro de téléphone, num_tel, TelPortable",
        "F": "Courriel, adresse_email, Adresse électronique",
        "G": "Numéro de sécurité sociale, NIR, num_secu",
        "H": "Numéro de dossier, id_patient, IdentifiantPatient",
        "I": "Carte vitale, numero_assure, Numéro d'adhérent",
        "J": "Numéro de compte, carte bancaire",
        "K": "Permis de conduire",
        "R": "Passeport, Carte d'identité, numéro_client, matricule",
    },
    "spanish": {
        "A": "Apellidos, Primer Apellido, nombre_completo, NombrePaciente, Nombre y apellidos",
        "B": "Código postal, codigo_postal, Ciudad, Dirección, Calle, Municipio, LugarNacimiento",
        "C": "Fecha de nacimiento, FechaNacimiento, fec_nac, año_nacimiento, fecha_ingreso, Edad, mes",
        "D": "Teléfono, telefono, Número de teléfono, num_movil",
        "F": "Correo electrónico, correo",
        "G": "Número de la Seguridad Social, seguridad_social",
        "H": "Historia clínica, Número de historia clínica, id_paciente, NHC",
        "I": "Tarjeta sanitaria, numero_poliza",
        "J": "Número de cuenta, tarjeta_credito",
        "R": "DNI, Pasaporte, Cédula, documento_identidad",
    },
    "italian": {
        "A": "Cognome, NomePaziente, nome_e_cognome",
        "B": "Indirizzo, Città, citta, Comune, Codice postale, Luogo di nascita, CAP residenza",
        "C": "Data di nascita, DataNascita, anno_nascita, Età, eta_anni, data_ricovero, mese",
        "D": "Telefono, numero_di_cellulare",
        "F": "Posta elettronica, indirizzo_email",
        "H": "Cartella clinica, codice_paziente",
        "I": "Tessera sanitaria",
        "J": "Conto corrente, numero_carta",
        "R": "Codice fiscale, Carta d'identità, Passaporto",
    },
    "dutch": {
        "A": "Voornaam, Achternaam, Patiëntnaam, voorletters, naam van de patiënt",
        "B": "Postcode, Adres, Straatnaam, Huisnummer, Woonplaats, Gemeente",
        "C": "Geboortedatum, GeboorteJaar, Leeftijd, opnamedatum, maand",
        "D": "Telefoon, Telefoonnummer, mobiel_nummer",
        "F": "E-mailadres, emailadres",
        "G": "BSN, Burgerservicenummer, rijksregisternummer",
        "H": "Patiëntnummer, dossiernummer",
        "I": "Polisnummer, verzekerdenummer",
        "J": "Rekeningnummer, bankrekening",
        "R": "Paspoort, klantnummer, identiteitskaart",
    },
    "portuguese": {
        "A": "Sobrenome, Apelido, nome_completo, NomeDoPaciente",
        "B": "Código postal, CEP, Endereço, endereco, Cidade, Morada, Município",
        "C": "Data de nascimento, DataNascimento, ano_nascimento, Idade, data_internação, mês",
        "D": "Telefone, Telemóvel, numero_celular",
        "F": "Correio eletrónico, endereço_email",
        "G": "NISS, segurança social",
        "H": "Prontuário, prontuario, id_paciente",
        "I": "Cartão de saúde, número de utente",
        "J": "Número da conta, cartao_credito",
        "R": "CPF, Cartão de cidadão, Passaporte",
    },
}
# By language, names of other columns whose role is told.
ROLES = {
    "sensitive": (
        "Einkommen, Haushaltseinkommen, Diagnose, Hauptdiagnose, Krankheit, Medikament, Gehalt, Vermögen, "
        "Vermoegen, Religionszugehörigkeit, Maladie, Salaire, Revenu, Médicaments, diagnóstico, Enfermedad, "
        "Salario, religión, Malattia, Reddito, Ziekte, Inkomen, Salaris, Doença, doenca, Renda, Religião"
    ),
    "quasi-identifier": (
        "Geschlecht, Familienstand, Nationalität, Nationalitaet, NATIONALITÄT, Staatsangehörigkeit, Beruf, "
        "Schulabschluss, Größe, groesse, Herkunftsland, Kinderzahl, Sexe, État civil, EtatCivil, "
        "nationalité, Profession, Pays, genre, Sexo, Género, EstadoCivil, Nacionalidad, País, Profesión, "
        "Sesso, Stato civile, Nazionalità, Professione, Geslacht, Burgerlijke staat, Nationaliteit, Beroep, "
        "Land, Estado civil, Nacionalidade, Profissão, raça"
    ),
}


@pytest.mark.parametrize("language", LETTERS)
def test_names_are_known_in_every_language(language: str) -> None:
    for letter, names in LETTERS[language].items():
        for name in names.split(", "):
            word = words_of(name)
            assert word is not None, name
            assert (name, word.letter) == (name, letter)


@pytest.mark.parametrize("role", ROLES)
def test_roles_are_known_in_every_language(role: str) -> None:
    for name in ROLES[role].split(", "):
        assert [found.value for found, _ in roles_of(name)][:1] == [role], name


def test_case_and_joints_do_not_matter() -> None:
    for name in ("Date de naissance", "date_de_naissance", "DateDeNaissance", "DATE-DE-NAISSANCE"):
        word = words_of(name)
        assert word is not None
        assert (normalized_name(name), word.kind) == ("date_de_naissance", "birth")


# Words of one language that mean something else in another, or beside other words.
NOTHING = (
    "data, data_source, via, cap, market_cap, eta, cf, kind, kennzeichen, portable, observations, rib, ras, "
    "nombre_de_visites, nombre_enfants, nombre_lits, recuento_celular, unidad_movil, placa, cns, patente, "
    "nota, notas, estado, poblacion, pain, chat, gift, art, rot, fast, handle, direct, sale, nom_hopital, "
    "nom_du_medicament, Krankenhausname, Produktname, Stationsname, land_area, genre_musical, pays_tax, "
    "loonie, salt, sexagesimal_ratio, main, coin, four, pie, red, once, mail_order_share, tel_aviv_index"
)


def test_words_of_other_languages_raise_no_false_alarm() -> None:
    for name in NOTHING.split(", "):
        word = words_of(name, weak=False)
        assert word is None, (name, word)


@pytest.mark.parametrize(
    "name", ["data", "via", "kind", "cap", "nombre_de_visites", "land_area", "genre_musical", "pays_tax"]
)
def test_a_name_that_says_nothing_has_no_role(name: str) -> None:
    assert list(roles_of(name)) == []


def test_every_line_of_a_language_has_a_place_among_those_of_english() -> None:
    def lines(table: str) -> set[tuple[str, ...]]:
        return {tuple(line.split()[:2]) for line in table.strip().splitlines()}

    for language in FOREIGN:
        new = {key for key in lines(TABLES[language]) - lines(TABLES["english"]) if key[0] != "-"}
        assert not new, (language, new)  # roles have no order


def test_every_word_points_at_an_identifier_of_the_rule() -> None:
    assert {word.letter for word in WORDS} == set(IDENTIFIERS)


# Guesses of whole tables.


def guesses(columns: dict[str, list[str | None]]) -> dict[str, Guess]:
    return {one.column: one for one in guess(pa.table(columns))}


def test_a_german_table_is_recognized() -> None:
    size = 40
    found = guesses(
        {
            "Nachname": [f"N{n}" for n in range(size)],
            "Versichertennummer": [f"X{n % 20:07}" for n in range(size)],
            "Geburtsdatum": [f"{n % 28 + 1:02}.03.19{n + 40}" for n in range(size)],
            "PLZ": [f"8033{n % 5}" for n in range(size)],
            "Geschlecht": ["m", "w"] * (size // 2),
            "Familienstand": ["ledig", "verheiratet"] * (size // 2),
            "Diagnose": ["I10", "E11.9"] * (size // 2),
            "Einkommen": [str(1000 * (n % 7)) for n in range(size)],
        }
    )
    assert {name: one.role.value for name, one in found.items()} == {
        "Nachname": "identifier",
        "Versichertennummer": "identifier",
        "Geburtsdatum": "quasi-identifier",
        "PLZ": "quasi-identifier",
        "Geschlecht": "quasi-identifier",
        "Familienstand": "quasi-identifier",
        "Diagnose": "sensitive",
        "Einkommen": "sensitive",
    }
    assert not any("not recognized" in one.reason for one in found.values())


@pytest.mark.parametrize(
    "name",
    [
        "Straße",
        "street",
        "Home Address",
        "Hausnummer",
        "calle",
        "Adresse",
        "rue",
        "Dirección",
        "indirizzo",
        "woonadres",
        "endereço",
    ],
)
def test_an_address_is_an_identifier_however_few_there_are(name: str) -> None:
    found = guesses({name: [f"Xy {n} q" for n in range(40)], "sex": ["f", "m"] * 20})
    assert found[name].role.value == "identifier"
    few = guesses({name: ["Xy q", "Zz q"] * 20, "sex": ["f", "m"] * 20})
    assert few[name].role.value == "identifier"
    told = guesses({name: ["yes", "no"] * 20, "sex": ["f", "m"] * 20})
    assert told[name].role.value == "quasi-identifier"  # whether there is one
    empty = guesses({name: [None] * 20, "sex": ["f", "m"] * 10})
    assert empty[name].role.value == "identifier"


def test_an_empty_column_has_the_role_of_its_name_and_is_never_released_as_it_is() -> None:
    """The policy may be used again, on a table in which it is filled."""
    empty = ("remark", "ward", "email", "death_date", "zip", "icd10")
    found = guesses(
        {**{name: [None] * 3 for name in empty}, "ward": ["", " ", None], "sex": ["f", "m", None]}
    )
    assert {name: found[name].role.value for name in empty} == {
        "remark": "quasi-identifier",
        "ward": "quasi-identifier",
        "email": "identifier",
        "death_date": "quasi-identifier",
        "zip": "quasi-identifier",
        "icd10": "sensitive",
    }
    assert all(found[name].reason.startswith("empty in every record") for name in empty)
    assert not found["sex"].reason.startswith("empty")


PERSONS = (
    "Name, name, NAMES, Name 1, Patient, Patient/in, Nom, patiente, Nombre, paciente, nome, Nominativo, "
    "naam, patiënt"
)


@pytest.mark.parametrize("name", PERSONS.split(", "))
def test_a_person_s_name_is_an_identifier_however_few_there_are(name: str) -> None:
    few = ["Müller-Xy", "O'Zzq", "VON QQ", "Xz, A.", "Yy"]

    def role(values: list[str | None]) -> str:
        return guesses({name: values, "sex": ["f", "m"] * (len(values) // 2)})[name].role.value

    assert role([*few] * 20) == "identifier"
    assert role([*few, "k.A."] * 20) == "identifier"
    assert role([None] * 20) == "identifier"  # it may be filled
    assert role(["X17", "X18", "Y19"] * 20) == "quasi-identifier"  # codes
    beside = guesses({name: ["X17", "X18"] * 20, "Vorname": ["Xa", "Xb"] * 20})
    assert [beside[name].role.value, beside["Vorname"].role.value] == ["identifier"] * 2
    assert role(["A", "B", "C"] * 20) == "quasi-identifier"
    assert role(["yes", "no"] * 20) == "quasi-identifier"  # whether there is one


@pytest.mark.parametrize(
    "name", ["Name des Patienten", "Name der Patientin", "name of the patient", "birth_name"]
)
def test_the_name_of_a_patient_is_a_person_s_whatever_is_written_there(name: str) -> None:
    word = words_of(name, weak=False)
    assert word is not None
    assert word.letter == "A"


@pytest.mark.parametrize(
    "name", ["product name", "ward_name", "species", "Stationsname", "hospital_name", "patients"]
)
def test_names_of_things_are_no_persons(name: str) -> None:
    found = guesses({name: ["Xyyx", "Zzqq"] * 20, "sex": ["f", "m"] * 20})[name]
    assert (found.role.value, found.identifier, found.possible_identifier) == ("quasi-identifier", None, None)


def test_when_a_stay_began_and_ended_is_known_in_every_language() -> None:
    names = (
        "Aufnahme, Entlassung, admitted, discharged, Entrée, sortie, Ingreso, alta, ricovero, Dimissione, "
        "opname, Ontslag, internação, Alta"
    )
    days = [f"{n % 28 + 1:02}.03.2024" for n in range(40)]
    for name in names.split(", "):
        found = guesses({name: list(days), "sex": ["f", "m"] * 20})[name]
        assert (found.kind, found.role.value, found.reason) == (
            "date",
            "quasi-identifier",
            "named as something known from outside",
        )
