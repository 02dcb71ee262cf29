"""French names of columns."""

# Not here: portable and observations, which mean something else in English, and RIB, a bone there.
WORDS = r"""
F e-mail   courriels? adresse_(?:e_?)?mail adresse_courriel adresse_électronique
O ip       adresse_ip
M device?  num(?:éro)?_(?:de_)?série
N url      site_(?:web|internet) adresse_web
E fax      télécopie télécopieur num(?:éro)?_(?:de_)?fax
D phone    téléphones? num(?:éro)?_(?:de_)?(?:tel|téléphone|portable) tel_(?:portable|mobile|domicile|fixe)
G ssn      nir sécurité_sociale num(?:éro)?_(?:de_)?(?:sécu|ss)
I plan     num(?:éro)?_(?:d_)?(?:assuré|adhérent|bénéficiaire) num(?:éro)?_(?:de_)?mutuelle carte_vitale
J account  num(?:éro)?_(?:de_)?(?:compte|carte) compte_bancaire carte_(?:bancaire|bleue|de_crédit)
J account? compte
L vehicle  immatriculation
K licence  permis_(?:de_)?conduire num(?:éro)?_(?:de_)?permis
H record   num(?:éro)?_(?:de_|du_)?(?:dossier|patient) (?:id|identifiant|code)_(?:du_)?patient
H record!? ipp
H record?  num(?:éro)?_(?:de_|du_)?(?:séjour|cas|venue)
P biometric empreintes?_digitales?
Q photo    photo_(?:d_)?identité
C birth    (?:date|année|jour)_(?:de_)?naiss(?:ance)?
C birth!   naissance ddn
C date     horodatage
C part     (?:mois|trimestre)_(?:de_|d_)?(?:naissance|admission|entrée|sortie|décès)
C part!    mois trimestre jour_(?:de_la_|de_)?semaine
B zip      code_?postal
B zip!     cp
B place    ville commune rue adresse quartier arrondissement lieu_(?:de_)?(?:naissance|résidence|domicile)
R code     passeport carte_(?:nationale_)?(?:d_)?identité num(?:éro)?_(?:de_)?passeport numéro_fiscal
R code     num(?:éro)?_(?:d_)?(?:étudiant|employé|identification) num(?:éro)?_(?:de_)?client matricule
R code     nom_(?:d_)?utilisateur identifiant_(?:national|unique)
R text?    commentaires? remarques? texte_?libre annotations?
A person   prénoms? nom_(?:de_)?(?:famille|naissance|jeune_fille) nom_(?:d_)?usage nom_complet
A person   nom_(?:et_)?prénoms? nom_(?:du_|de_la_)?(?:patiente?|mère|père|conjoint|médecin)
A person?  nom
A person!? noms? patiente
R code?    identifiant
- thing    nom_(?:de_|du_|de_la_|de_l_|d_)?(?:hôpital|clinique|établissement|service|médicament|produit)
- thing    nom_(?:de_|du_|de_la_|de_l_|d_)?(?:maladie|variable|fichier|table|région|pays|département|étude)
- thing    nom_(?:de_|du_|de_la_|de_l_|d_)?(?:test|examen|entreprise|commune|ville|colonne|marque)
- address  rue adresse
- sensitive maladies? pathologies? traitements? médicaments? salaires? revenus? handicap parti_politique
- sensitive orientation_sexuelle antécédents? allergies?
- quasi-identifier sexe état_civil situation_(?:familiale|matrimoniale|de_famille)
- quasi-identifier statut_(?:marital|matrimonial) nationalité pays_(?:de_|d_)?(?:naissance|origine|résidence)
- quasi-identifier département région profession métier emploi catégorie_socio_?professionnelle diplôme
- quasi-identifier niveau_(?:d_|de_)?(?:études?|instruction|formation) langue langue_maternelle poids
- quasi-identifier année (?:nombre|nb)_(?:d_)?enfants mutuelle assurance décès
- quasi-identifier! genre pays taille entrée sortie hospitalisation
"""
