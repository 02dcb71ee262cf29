{% macro grant_select(table) %}
    {% do run_query("grant select on " ~ target.schema ~ "." ~ adapter.quote(table) ~ " to public") %}
{% endmacro %}
