"""Dutch names of columns."""

# Not here: ras, which is a gene.
WORDS = r"""
F e-mail   e_?mail_?adres mail_?adres
O ip       ip_?adres
M device?  serie_?NO toestel_?NO
N url      web_?adres internet_?adres
D phone    telefoon telefoon_?NO mobiel_?NO gsm_?nummer
D phone?   mobiel
G ssn      bsn burgerservice_?NO rijksregister_?NO sofi_?nummer
I plan     polis_?NO (?:zorg)?verzekerings_?NO verzekerden?_?NO
J account  rekening_?NO bankrekening bankrekening_?NO
L vehicle  kenteken kenteken_?NO chassis_?NO
K licence  rijbewijs rijbewijs_?NO
H record   patiënt(?:en)?_?NO dossier_?NO medisch_dossier
H record?  opname_?NO episode_?NO monster_?NO
P biometric vingerafdruk(?:ken)?
Q photo    pasfoto
Q photo!   foto fotos
C birth    geboorte_?(?:datum|jaar|dag)
C birth!   geboorte
C age      leeftijd
C date     \w*datum tijdstip tijdstempel
C part     (?:geboorte|opname|ontslag|overlijdens?)_?(?:maand|kwartaal|weekdag)
C part!    maand weekdag kwartaal
B place    (?:woon)?adres straat straatnaam huis_?NO woonplaats gemeente wijk buurt geboorteplaats plaatsnaam
B place!   plaats stad
R code     paspoort paspoort_?NO identiteitskaart(?:_?NO)? personeels?_?NO klant_?NO gebruikers_?naam
R code     studenten_?NO belasting_?nummer
R text?    opmerking(?:en)? toelichting vrije_?tekst notities? aantekening(?:en)?
A person   voornaam voornamen achternaam familienaam meisjesnaam voorletters (?:patiënt(?:en)?|cliënt)_?naam
A person   naam_(?:van_)?(?:de_)?(?:patiënt|cliënt)
A person?  naam
A person!? naam namen patiënte?
- thing    (?:ziekenhuis|afdelings?|product|medicijn|straat|plaats|bedrijfs?|bestands?|kolom|tabel)_?naam
- thing!   opname
- address  (?:woon)?adres straat straatnaam huis_?NO
- sensitive ziekten? aandoening(?:en)? behandeling(?:en)? medicatie medicijn(?:en)? geneesmiddel(?:en)?
- sensitive salaris inkomen \w+inkomen loon godsdienst religie geloof allergie allergieën
- quasi-identifier geslacht burgerlijke_staat nationaliteit herkomst herkomstland geboorteland provincie regio
- quasi-identifier beroep opleiding opleidingsniveau moedertaal etniciteit gewicht jaar kinderen
- quasi-identifier aantal_kinderen verzekering zorgverzekeraar overlijden overlijdens\w+
- quasi-identifier! land taal lengte opname ontslag
"""
