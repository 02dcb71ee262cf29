"""English names of columns, in the order in which the words of all languages are tried."""

# An e-mail address is no address of a house, so it comes first. Lines without words keep a place for others.
WORDS = r"""
F e-mail   e_?mails? e_?mail_?(?:address|id)
F e-mail!  mail
O ip       ip_?(?:address|addr) ipv[46]
O ip!      ip
M device   mac_?addr(?:ess)? imei imsi udi device_?(?:identifier|serial) device_?NO
M device?  implant_?NO serial serial_?NO
N url      urls? uri website web_?site web_?(?:address|page) homepage
E fax      fax fax_?NO
D phone    (?:tele)?phones? (?:tele)?phone_?NO (?:mobile|cell|home|work)_?phone mobile_?NO
D phone?   tel mobile gsm
D phone!?
G ssn      ssn social_?security social_?(?:security|insurance)_?NO national_?insurance_?NO nino
I plan     beneficiary_?NO (?:insurance|policy|member|subscriber|insured|medicare|medicaid)_?NO hicn mbi
I plan     (?:health|insurance|medicare)_?card(?:_?NO)?
J account  iban (?:bank_?)?account_?NO acct_?NO (?:credit|debit|bank|payment)_?card(?:_?NO)?
J account? account card card_?NO
L vehicle  vin vehicle_?(?:identification|serial|registration) vehicle_?NO licen[cs]e_?plate
L vehicle  (?:number|registration)_?plate plate_?NO
K licence  licen[cs]e_?NO certificate_?NO drivers?_?licen[cs]e dea_?NO
K licence? licen[cs]e certificate
H record   mrn medical_?record medical_?record_?NO patient_?NO patient_?(?:key|identifier) chart_?NO nhs_?NO
H record   (?:health_?)?record_?NO hospital_?number (?:subject|participant)_?NO
H record!  nhs
H record!?
H record?  (?:case|encounter|visit|admission|specimen|accession|episode|stay)_?NO
P biometric finger_?prints? (?:palm|voice)_?prints? biometrics? (?:iris|retina)_?(?:scan|code)
P biometric face_?(?:template|encoding|embedding)
Q photo    photographs? portrait selfie headshot (?:face|facial|patient)_?(?:image|picture|photo)
Q photo    photo_?(?:file|path|image|url|NO)
Q photo!   photos?
C birth    dob birth_?(?:date|day|dt) date_?of_?birth birth_?year year_?of_?birth yob
C birth!   born
C age      ages? age_?(?:in_?)?(?:years|months|weeks|days|yrs)
C date     dates? date_?of datetime timestamp WHEN_?(?:date|dt) (?:start|end)_?(?:date|dt)
C part     WHEN_?(?:day|month|weekday|week|quarter) (?:month|day|quarter|week)_of_(?:WHEN|year|week|month)
C part!    month weekday quarter
B zip      zip zip_?codes? zip_?[459] zip_?plus_?4 post_?codes? postal(?:_?codes?)?
B zip!
B place    city cities town village municipality county precinct parish borough suburb district
B place    house_?NO neighbou?rhood street street_?(?:address|name|NO) (?:home_?|postal_?)?address(?:es)? addr
B place    birth_?place place_of_birth
B place    latitude longitude lng geohash gps coordinates? census_?(?:tract|block) fips
B place!   lat lon long
R code     passport passport_?NO tax_?NO national_?(?:id|identifier) id_?card(?:_?NO)? identity_?NO
R code     person_?NO personal_?(?:id|number) (?:employee|student)_?NO user_?name user_?id login aadhaar
R text?    notes? comments? remarks? narrative free_?texts? annotations?
A person   (?:first|last|given|family|sur|middle|maiden|full|nick|fore|birth)_?names? [fl]name initials
A person   (?:pat|patient|person|mother|father|spouse|child|employer|guardian|relative)s?_?names?
A person   names?_(?:of_)?(?:the_)?(?:patient|person|mother|father|spouse|child|employer|guardian|relative)s?
A person?  \w*names? alias
A person!? names?(?:_?\d)? patient
R code?    uuid guid id identifier
- address  street street_?(?:address|name|NO) (?:home_?|postal_?)?address(?:es)? addr house_?NO
- thing    (?:hospital|clinic|facility|drug|product|brand|generic|medication|medicine|test|lab|ward)_?names?
- thing    (?:department|dept|unit|procedure|diagnosis|disease|condition|column|variable|field)_?names?
- thing    (?:study|trial|item|species|gene|service|event|file|table|code|class|category|group)_?names?
- thing    (?:type|state|country|region|plan|program|course|organism|material|device|scale)_?names?
- thing    (?:form|site|language|day|month|weekday|illness|therapy|treatment|insurance|insurer|job)_?names?
"""
# Parts of names that tell a role wherever they stand: what it is, then the parts.
IDENTIFIER_PARTS = (
    ("a direct identifier", "e-?mail phone mobile fax passport ssn iban url ip.?address"),
    ("a person's name or address", r"(?<!\bop)name$ street address"),  # opname: Dutch, an admission
    (
        "a number that points at one person",
        r"(^|_|\b)id$ uuid guid mrn nhs card record.?n patient.?n account licen[cs]e social.?security",
    ),
)
SENSITIVE_PARTS = (
    "diagnos disease illness condition icd therapy drug medic hiv salary income wage religion politic"
)
QUASI_IDENTIFIER_PARTS = (
    "age birth dob sex gender zip post.?(al|code) plz city town region state country nation race ethnic "
    "marital educ occupation job work.?class insur date admi discharg death year month language weight"
)
