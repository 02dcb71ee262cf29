-- A release made by hand. Whether it is one, `shoal verify` says.
with coarse as (
    select
        case when age::int < 40 then '0 to 39' when age::int < 65 then '40 to 64' else '65 and over' end as age,
        sex,
        left(postcode, 1) || '****' as postcode,
        diagnosis
    from {{ ref('patients') }}
    where age <> ''
),

kept as (
    select age, sex, postcode
    from coarse
    group by age, sex, postcode
    having count(*) >= 5 and count(distinct diagnosis) >= 2
)

select age, sex, postcode, diagnosis
from coarse
join kept using (age, sex, postcode)
