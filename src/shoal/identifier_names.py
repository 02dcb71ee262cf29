"""What the name of a column says: words for identifiers, in English, German, French, Spanish and Dutch."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """Words that point at one identifier; weak ones count only where the values tell persons apart."""

    letter: str
    kind: str
    pattern: re.Pattern[str]
    weak: bool


# Letter of the rule, kind (with ? for weak words, with ! for words that must be all of the name), then the
# words as patterns. The order is that in which they are tried: an e-mail address is no address of a house.
# NO stands for a number or an identifier, WHEN for what happens to a patient.
_TABLE = r"""
F e-mail   e_?mails? e_?mail_?(?:address|adresse|id) courriel correo correo_electronico mail_?adress?e?
F e-mail!  mail
O ip       ip_?(?:address|addr|adresse|adres) ipv[46] adresse_ip direccion_ip
O ip!      ip
M device   mac_?addr(?:ess)? imei imsi udi device_?(?:identifier|serial) device_?NO
M device?  implant_?NO serial serial_?NO seriennummer numero_de_serie serienummer
N url      urls? uri website web_?site web_?(?:address|page) homepage internetadresse
E fax      fax fax_?NO telefax faxnummer telecopie
D phone    (?:tele)?phones? (?:tele)?phone_?NO (?:mobile|cell|home|work)_?phone mobile_?NO telefon telefono
D phone    telefonnummer handynummer mobilnummer movil telefoon telefoonnummer
D phone?   tel mobile handy gsm
G ssn      ssn social_?security social_?(?:security|insurance)_?NO national_?insurance_?NO nino bsn nir
G ssn      sozialversicherungsnummer sv_?nummer securite_sociale seguridad_social burgerservicenummer
I plan     beneficiary_?NO (?:insurance|policy|member|subscriber|insured|medicare|medicaid)_?NO hicn mbi kvnr
I plan     (?:health|insurance|medicare)_?card(?:_?NO)? versichertennummer versicherungsnummer polisnummer
I plan     krankenkassennummer numero_assure
J account  iban (?:bank_?)?account_?NO acct_?NO konto_?(?:nummer|nr) numero_(?:de_)?(?:compte|cuenta)
J account  (?:credit|debit|bank|payment)_?card(?:_?NO)? rekeningnummer
J account? account card card_?NO compte cuenta
L vehicle  vin vehicle_?(?:identification|serial|registration) vehicle_?NO licen[cs]e_?plate kenteken
L vehicle  (?:number|registration)_?plate plate_?NO kfz_?kennzeichen nummernschild fahrgestellnummer
L vehicle  immatriculation matricula
K licence  licen[cs]e_?NO certificate_?NO drivers?_?licen[cs]e dea_?NO f(?:u|ue)hrerschein(?:nummer)?
K licence  permis_de_conduire permiso_de_conducir rijbewijs(?:nummer)?
K licence? licen[cs]e certificate
H record   mrn medical_?record medical_?record_?NO patient_?NO patient_?(?:key|identifier) chart_?NO nhs_?NO
H record   (?:health_?)?record_?NO hospital_?number patienten_?(?:id|nummer|nr) numero_dossier
H record   patientnummer historia_clinica (?:subject|participant)_?NO
H record!  nhs
H record?  (?:case|encounter|visit|admission|specimen|accession)_?NO fallnummer fall_?(?:id|nr)
P biometric finger_?prints? (?:palm|voice)_?prints? biometrics? (?:iris|retina)_?(?:scan|code) huella_dactilar
P biometric face_?(?:template|encoding|embedding) fingerabdruck empreinte_digitale vingerafdruk
Q photo    photographs? portrait selfie headshot (?:face|facial|patient)_?(?:image|picture|photo) lichtbild
Q photo    photo_?(?:file|path|image|url|NO) passfoto pasfoto
Q photo!   photos? fotos?
C birth    dob birth_?(?:date|day|dt) date_?of_?birth geburts(?:datum|tag) date_(?:de_)?naissance
C birth    fecha_(?:de_)?nacimiento geboortedatum
C birth!   born
C birth    birth_?year year_?of_?birth yob geburtsjahr annee_(?:de_)?naissance geboortejaar ano_nacimiento
C age      ages? age_?(?:in_?)?(?:years|months|weeks|days|yrs) alter leeftijd edad
C date     dates? date_?of datetime timestamp datum fecha WHEN_?(?:date|dt) (?:start|end)_?(?:date|dt)
C part     WHEN_?(?:day|month|weekday|week|quarter) (?:month|day|quarter|week)_of_(?:WHEN|year|week|month)
C part!    month weekday quarter monat wochentag mois mes maand
B zip      zip zip_?codes? zip_?[459] zip_?plus_?4 post_?codes? postal(?:_?codes?)? plz postleitzahl
B zip      code_?postal codigo_?postal
B zip!     cp
B place    city cities town village municipality county precinct parish borough suburb district
B place    neighbou?rhood street street_?(?:address|name|NO) (?:home_?|postal_?)?address(?:es)? addr
B place    strasse hausnummer wohnort ort stadt gemeinde landkreis anschrift adresse ville commune rue
B place    direccion domicilio calle ciudad municipio barrio adres straat woonplaats gemeente
B place    birth_?place place_of_birth geburtsort lieu_de_naissance
B place    latitude longitude lng geohash gps coordinates? census_?(?:tract|block) fips
B place!   lat lon long
R code     passport passport_?NO reisepass(?:nummer)? passeport pasaporte paspoort(?:nummer)? tax_?NO
R code     national_?(?:id|identifier) id_?card(?:_?NO)? identity_?NO ausweis(?:nummer)? dni nif curp
R code     steuer_?(?:id|nummer) person_?NO personal_?(?:id|number) personnummer (?:employee|student)_?NO
R code     user_?name user_?id login aadhaar cpf
R text?    notes? comments? remarks? narrative free_?text bemerkung(?:en)? kommentar notizen
R text?    commentaires? comentarios? observaciones opmerking(?:en)?
A person   (?:first|last|given|family|sur|middle|maiden|full|nick|fore)_?names? [fl]name initials
A person   (?:patient|person|mother|father|spouse|child|employer|guardian|relative)s?_?names? vorname
A person   nachname familienname geburtsname nom_de_famille prenom apellidos? voornaam achternaam
A person?  \w*names? nom nombre naam alias
R code?    uuid guid id identifier kennung
"""
_NO = "(?:id|ids|no|nr|num|number|nummer|numero)"
_WHEN = (
    "(?:birth|admission|admit|admitted|discharge|discharged|death|visit|event|encounter|surgery|operation|"
    "service|diagnosis|procedure|treatment|onset|enrol?lment)"
)
# Names of things, and of places that Safe Harbor leaves, are no names of persons.
_THINGS = re.compile(
    "(?:^|_)(?:hospital|clinic|facility|drug|product|brand|generic|medication|medicine|test|lab|ward|department|"
    "dept|unit|procedure|diagnosis|disease|condition|column|variable|field|study|trial|item|species|gene|"
    "service|event|file|table|code|class|category|group|type|state|country|region|plan|program|course|"
    "organism|material|device|scale|form|site|language|day|month|weekday)_?names?$"
)


def _read(table: str) -> tuple[Word, ...]:
    """Read the table of words."""
    found = []
    for line in table.strip().splitlines():
        letter, kind, *words = line.split()
        joined = "|".join(words).replace("NO", _NO).replace("WHEN", _WHEN)
        whole = kind.endswith("!")
        pattern = f"^(?:{joined})$" if whole else f"(?:^|_)(?:{joined})(?:_|$)"
        found.append(Word(letter, kind.rstrip("?!"), re.compile(pattern), kind.endswith("?")))
    return tuple(found)


WORDS = _read(_TABLE)


def plain(name: str) -> str:
    """Write a name in small letters without accents, its words joined by an underscore.

    >>> plain("PatientLastName"), plain("Téléphone (privé)"), plain("ZIP+4")
    ('patient_last_name', 'telephone_prive', 'zip_4')
    """
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    name = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    name = "".join(letter for letter in name if not unicodedata.combining(letter))
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def words_of(name: str, *, weak: bool = True) -> Word | None:
    """Return the first words that a name holds, weak ones only where they count."""
    name = plain(name)[:200]
    for word in WORDS:
        if (weak or not word.weak) and word.pattern.search(name):
            return None if word.letter == "A" and _THINGS.search(name) else word
    return None
