"""Italian names of columns."""

# Not here: data, via and CAP alone, which mean something else in English, as eta does without its accent;
# CF, an illness; patente, which in Spanish is an inventor's.
WORDS = r"""
F e-mail   posta_elettronica indirizzo_(?:di_)?(?:e_?)?mail indirizzo_(?:di_)?posta_elettronica
O ip       indirizzo_ip
M device?  numero_(?:di_)?serie
N url      sito_(?:web|internet)
E fax      numero_(?:di_)?fax
D phone    telefono numero_(?:di_)?(?:telefono|cellulare)
D phone!?  cellulare
I plan     tessera_sanitaria numero_(?:di_)?(?:tessera|polizza|assicurato)
J account  numero_(?:di_)?(?:conto|carta) conto_corrente carta_(?:di_)?credito
L vehicle  targa numero_(?:di_)?telaio
K licence  patente_(?:di_)?guida numero_(?:di_)?patente
H record   cartella_clinica numero_(?:di_)?(?:cartella|paziente)
H record   (?:id|codice|identificativo)_(?:del_)?paziente
H record?  numero_(?:di_)?(?:ricovero|caso|episodio) (?:numero_)?nosologico
P biometric impront[ae]_digital[ei]
Q photo    fotografia foto_(?:del_)?paziente
Q photo!   foto
C birth    (?:data|anno)_(?:di_)?nascita
C birth!   nascita
C age      =età eta_(?:in_)?(?:anni|mesi|giorni) eta_(?:del_)?paziente eta_all?a?_\w+
C date     data_(?:di_|del_|della_|dell_)?(?:ricovero|dimissione|ammissione|decesso|morte|visita|intervento)
C date     data_(?:di_|del_|della_|dell_)?(?:diagnosi|inizio|fine|accesso|ingresso|prelievo|referto)
C part     mese_(?:di_)?(?:nascita|ricovero|dimissione|decesso)
C part!    mese trimestre giorno_(?:della_)?settimana
B zip      codice_(?:di_avviamento_)?postale cap_(?:di_)?(?:residenza|domicilio|nascita)
B place    indirizzo città comune residenza domicilio quartiere località luogo_(?:di_)?(?:nascita|residenza)
R code     codice_fiscale cod_?fisc(?:ale)? passaporto carta_(?:d_)?identità nome_utente
R code     numero_(?:di_)?(?:documento|identificazione|passaporto) numero_cliente
R text?    comment[oi] osservazion[ei] annotazion[ei] testo_?libero nota
A person   cognome nome_(?:e_)?cognome nome_(?:del_|della_)?(?:paziente|persona|madre|padre|medico)
A person   nome_completo
A person!? nom[ei] nominativo paziente
- address  indirizzo
- sensitive malatti[ae] patologi[ae] diagnosi terapi[ae] farmac[oi] trattament[oi] stipendio reddito religione
- sensitive partito_politico disabilità allergi[ae] orientamento_sessuale
- quasi-identifier sesso stato_civile nazionalità cittadinanza paese_(?:di_|d_)?(?:nascita|origine|residenza)
- quasi-identifier provincia regione professione occupazione mestiere titolo_(?:di_)?studio istruzione
- quasi-identifier razza etnia peso altezza anno (?:numero_(?:di_)?)?figli assicurazione decesso
- quasi-identifier! paese genere lingua ricovero dimissione ammissione ingresso
"""
