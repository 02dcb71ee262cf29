"""Spanish names of columns."""

# Not here: nombre before other words, which counts things in French; celular and móvil beside other words,
# for cells and units; notas, which are marks at school; estado and población, which are too much else.
WORDS = r"""
F e-mail   correo correo_electrónico dirección_(?:de_)?correo
O ip       dirección_ip
M device?  (?:número|num|nro)_(?:de_)?serie
N url      página_web sitio_web
E fax      (?:número|num|nro)_(?:de_)?fax
D phone    teléfonos? (?:número|num|nro)_(?:de_)?(?:teléfono|móvil|celular)
D phone!?  móvil celular
G ssn      seguridad_social (?:número|num|nro)_(?:de_)?seguro_social nuss
I plan     tarjeta_sanitaria (?:número|num|nro)_(?:de_)?(?:asegurado|afiliado|afiliación|póliza)
J account  (?:número|num|nro)_(?:de_)?(?:cuenta|tarjeta) tarjeta_(?:de_)?(?:crédito|débito) cuenta_bancaria
J account? cuenta
L vehicle  matrícula (?:número|num|nro)_(?:de_)?bastidor
K licence  (?:permiso|licencia|carnet)_(?:de_)?conducir (?:número|num|nro)_(?:de_)?(?:licencia|colegiado)
H record   historia_clínica (?:número|num|nro)_(?:de_)?(?:historia|expediente|paciente)(?:_clínica)?
H record   (?:id|código|identificador)_(?:del?_)?paciente paciente_id
H record!  nhc
H record?  (?:número|num|nro)_(?:de_)?(?:caso|episodio|ingreso)
P biometric huellas?_(?:dactilar|dactilares|digital|digitales)
Q photo    fotografía foto_(?:del?_)?(?:la_)?paciente
Q photo!   fotos?
C birth    (?:fecha|año|fec|f)_(?:de_)?nac(?:imiento)?
C birth!   nacimiento
C age      edad
C date     fechas? fec_\w+
C part     (?:mes|día|trimestre)_(?:de_)?(?:nacimiento|ingreso|alta|fallecimiento|defunción)
C part!    mes trimestre día_(?:de_la_)?semana
B zip      (?:código|cod)_?postal
B place    dirección domicilio calle ciudad municipio barrio localidad lugar_(?:de_)?(?:nacimiento|residencia)
R code     dni nif curp pasaporte cédula documento_(?:de_)?identidad nombre_(?:de_)?usuario
R code     (?:número|num|nro)_(?:de_)?(?:documento|identificación|identidad|cliente|empleado|pasaporte)
R text?    comentarios? observaci(?:ón|ones) anotaci(?:ón|ones) notas? texto_?libre
A person   apellidos? nombre_(?:y_)?apellidos? nombre_(?:completo|propio) nombre_(?:de_)?pila
A person   nombre_(?:del?_)?(?:la_)?(?:paciente|persona|cliente|madre|padre|titular|médico)
A person   (?:primer|segundo)_nombre
A person!? nombres? paciente
- address  domicilio calle dirección_(?:postal|completa|particular)
- address! dirección
- sensitive enferm(?:edad|edades) patologías? diagnósticos? tratamientos? medicamentos? medicación fármacos?
- sensitive salario sueldo renta ingresos_(?:anuales|mensuales|familiares|brutos|netos) religión
- sensitive partido_político orientación_sexual discapacidad alergias? antecedentes
- sensitive! ingresos
- quasi-identifier sexo género estado_civil nacionalidad país provincia comunidad_autónoma profesión
- quasi-identifier ocupación oficio nivel_(?:de_)?(?:estudios|educación|instrucción) nivel_educativo estudios
- quasi-identifier escolaridad idioma lengua_materna raza etnia peso talla estatura año hijos aseguradora
- quasi-identifier (?:número|num|nro)_(?:de_)?hijos seguro_médico fallecimiento defunción
- quasi-identifier! ingreso alta egreso
"""
