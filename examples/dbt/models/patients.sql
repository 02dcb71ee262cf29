-- The table with identifiers, which stays inside.
select name, age, sex, postcode, diagnosis
from {{ source('clinic', 'admissions') }}
