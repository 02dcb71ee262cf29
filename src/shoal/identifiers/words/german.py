"""German names of columns."""

# Not here: Kennzeichen, which is also any mark, and Kind, which is a sort of things in English.
WORDS = r"""
F e-mail   e_?mail_?adressen? mail_?adress?e?
O ip       ip_?adressen?
M device?  serien_?NO geräte_?NO
N url      internet_?adresse web_?adresse
E fax      telefax telefax_?NO
D phone    telefon telefon_?NO handy_?NO mobil_?NO mobiltelefon festnetz rufnummer
D phone?   handy mobil
G ssn      sozialversicherungs_?NO sv_?nummer rentenversicherungs_?NO ahv_?NO
I plan     versicherten_?NO versicherungs_?NO krankenkassen_?NO krankenversicherungs_?NO kvnr egk_?NO
J account  konto_?NO kontonummer kreditkarte kreditkarten_?NO bankverbindung
J account? konto
L vehicle  kfz_?kennzeichen autokennzeichen nummernschild fahrgestell_?NO
K licence  führerschein führerschein_?NO lizenz_?NO
H record   patienten_?NO patienten_?(?:kennung|schlüssel) (?:kranken)?akten_?NO aktenzeichen
H record?  (?:behandlungs?_?)?fall_?NO fall_?(?:kennung|schlüssel) aufnahme_?NO proben_?NO
P biometric fingerabdruck fingerabdrücke
Q photo    lichtbild passfoto patientenfoto
Q photo!   fotos?
C birth    geburts_?(?:datum|tag|jahr|dat) geb_?dat(?:um)? geb_?jahr
C birth!   geboren geburt
C age      alter (?:patienten|lebens|eintritts|aufnahme|diagnose)_?alter alters_?(?:jahre|gruppe|klasse)
C date     \w*datum zeitstempel \w+_?zeitpunkt
C part     (?:geburts|aufnahme|entlassungs?|sterbe|todes)_?(?:monat|wochentag|quartal|woche)
C part!    monat wochentag quartal kalenderwoche
B zip      plz\d? postleitzahl
B place    \w*straße str_?nr haus_?NO (?:wohn|heimat|geburts)_?ort wohnsitz ort ortsteil stadt stadtteil
B place    gemeinde landkreis bezirk (?:wohn|post|heimat)?_?anschrift (?:wohn|post|heimat)?_?adresse
R code     reisepass reisepass_?NO (?:personal)?_?ausweis(?:_?NO)? steuer_?NO steuer_?identifikations_?NO
R code     person(?:en)?_?NO personal_?NO matrikel_?NO kunden_?NO mitglieds_?NO benutzer_?(?:name|kennung|id)
R text?    bemerkung(?:en)? kommentare? notiz(?:en)? freitexte? freitextfeld anmerkung(?:en)? vermerke?
A person   vornamen? nachnamen? familienname geburtsname zuname rufname patient(?:en|innen)?_?name
A person   name_(?:des_|der_)?(?:patient(?:en|in|innen)?|person|mutter|vaters?|versicherten)
A person!? patient_?in
R code?    kennung (?:lfd|laufende)_?NO
- thing    (?:krankenhaus|klinik|stations?|abteilungs?|produkt|medikament(?:en)?|wirkstoff|studien?)_?name
- thing    (?:test|fach|datei|tabellen?|spalten?|feld|marken|firmen|orts|geräte|länder)_?name
- thing    (?:therapie|krankheits|diagnosen?)_?name
- address  \w*straße str_?nr haus_?NO (?:wohn|post|heimat)?_?anschrift (?:wohn|post|heimat)?_?adresse
- sensitive \w*diagnosen? krankheit(?:en)? \w*erkrankung(?:en)? befunde? \w*therapien? behandlung(?:en)?
- sensitive medikament(?:e|en)? medikation wirkstoffe? \w*einkommen gehalt lohn vermögen konfession
- sensitive religions?_?zugehörigkeit glaube partei(?:zugehörigkeit)? behinderung(?:sgrad)? vorstrafen?
- quasi-identifier geschlecht anrede familienstand nationalität staatsangehörigkeit staatsbürgerschaft
- quasi-identifier herkunft herkunftsland geburtsland bundesland kanton beruf berufs\w+ tätigkeit
- quasi-identifier branche schulabschluss schulbildung bildung bildungs\w+ ausbildung abschluss
- quasi-identifier haushaltsgröße kinder kinderzahl (?:an)?zahl_(?:der_)?kinder gewicht größe körper_?größe
- quasi-identifier krankenkasse versicherung versicherungs?_?(?:art|status) (?:mutter)?sprache
- quasi-identifier migrationshintergrund jahr todes(?:tag|jahr) sterbe(?:tag|jahr)
- quasi-identifier! land aufnahme entlassung entlassen aufgenommen verlegung verlegt verstorben gestorben
"""
