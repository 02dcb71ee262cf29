"""Portuguese names of columns."""

# Not here: data alone, another word in English; placa, which teeth have; CNS, a part of the body.
WORDS = r"""
F e-mail   correio_ele(?:c)?trónico correio_eletrônico endereço_(?:de_)?(?:e_?)?mail
O ip       endereço_ip
M device?  número_(?:de_)?série
N url      página_web sítio_web
E fax      número_(?:de_|do_)?fax
D phone    telefones? telemóvel número_(?:de_|do_)?(?:telefone|telemóvel|celular)
D phone!?  celular
G ssn      niss número_(?:de_|da_)?segurança_social segurança_social
I plan     cartão_(?:nacional_)?(?:de_|do_|da_)?(?:saúde|sus|utente)
I plan     número_(?:de_|do_)?(?:utente|beneficiário) número_(?:da_)?apólice
J account  número_(?:da_|de_|do_)?(?:conta|cartão) conta_(?:bancária|corrente) cartão_(?:de_)?crédito
L vehicle  matrícula placa_(?:do_)?veículo (?:número_(?:do_)?)?chassi
K licence  carta_(?:de_)?condução carteira_(?:de_)?habilitação cnh
H record   prontuário número_(?:do_|de_)?(?:prontuário|processo|paciente) processo_clínico
H record   (?:id|código)_(?:do_|da_)?paciente
H record?  número_(?:do_)?(?:caso|episódio|internamento|atendimento)
P biometric impress(?:ão|ões)_digita(?:l|is)
Q photo    fotografia foto_(?:do_|da_)?paciente
Q photo!   fotos?
C birth    (?:data|ano|dt)_(?:de_|do_)?nasc(?:imento)?
C birth!   nascimento
C age      idade
C date     data_(?:de_|da_|do_)?(?:internação|internamento|alta|admissão|óbito|morte|consulta|cirurgia)
C date     data_(?:de_|da_|do_)?(?:diagnóstico|início|fim|entrada|saída|coleta|colheita)
C part     mês_(?:de_|do_)?(?:nascimento|internação|alta|óbito)
C part!    mês trimestre dia_(?:da_)?semana
B zip      código_?postal
B zip!     cep
B place    endereço morada rua cidade município bairro localidade concelho freguesia naturalidade
B place    local_(?:de_)?nascimento
R code     cpf passaporte bilhete_(?:de_)?identidade cartão_(?:de_|do_)?cidadão
R code     nome_(?:de_)?(?:utilizador|usuário)
R code     número_(?:de_|do_)?(?:identificação|contribuinte|documento|cliente|passaporte)
R text?    comentários? observaç(?:ão|ões) anotaç(?:ão|ões) notas? texto_?livre
A person   sobrenome apelidos? nome_(?:completo|próprio) (?:primeiro|último)_nome
A person   nome_(?:do_|da_)?(?:paciente|pessoa|cliente|mãe|pai|utente|médico)
A person!? nomes? utente
- address  endereço morada rua
- sensitive doenças? patologias? diagnósticos? tratamentos? medicamentos? medicação fármacos? salário renda
- sensitive rendimentos? religião partido_político deficiência alergias? orientação_sexual
- quasi-identifier sexo género gênero estado_civil nacionalidade país distrito região profissão ocupação
- quasi-identifier escolaridade habilitações nível_(?:de_)?(?:escolaridade|ensino|instrução) idioma
- quasi-identifier língua_materna raça etnia peso altura ano (?:número_(?:de_)?)?filhos seguro_(?:de_)?saúde
- quasi-identifier óbito
- quasi-identifier! internação internamento alta
"""
