{# The functions that dbt names for all databases, in the words of Spark, which both engines run. #}

{% macro tablestore__array_concat(array_1, array_2) -%}
  concat({{ array_1 }}, {{ array_2 }})
{%- endmacro %}

{% macro tablestore__array_construct(inputs, data_type) -%}
  {%- if inputs -%}
  array({{ inputs | join(', ') }})
  {%- else -%}
  cast(array() as array<{{ data_type }}>)
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__date(year, month, day) -%}
  {%- set value = modules.datetime.date(year, month, day) -%}
  date '{{ value.isoformat() }}'
{%- endmacro %}

{% macro tablestore__dateadd(datepart, interval, from_date_or_timestamp) -%}
  timestampadd({{ datepart }}, {{ interval }}, cast({{ from_date_or_timestamp }} as timestamp))
{%- endmacro %}

{# Counts the borders between two times, as other databases do: TIMESTAMPDIFF counts whole units. A week begins on Sunday. #}
{% macro tablestore__datediff(first_date, second_date, datepart) -%}
  {%- set part = datepart | lower -%}
  {%- if part == 'week' -%}
  timestampdiff(week,
    date_trunc('week', timestampadd(day, 1, cast({{ first_date }} as timestamp))),
    date_trunc('week', timestampadd(day, 1, cast({{ second_date }} as timestamp))))
  {%- else -%}
  timestampdiff({{ part }},
    date_trunc('{{ part }}', cast({{ first_date }} as timestamp)), date_trunc('{{ part }}', cast({{ second_date }} as timestamp)))
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__last_day(date, datepart) -%}
  {%- if datepart == 'month' -%}
  last_day(cast({{ date }} as date))
  {%- else -%}
  {{ default_last_day(date, datepart) }}
  {%- endif -%}
{%- endmacro %}

{# The first values are cut off by a character that no text has. #}
{% macro tablestore__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set order = ' within group (' ~ order_by_clause ~ ')' if order_by_clause else '' -%}
  {%- if limit_num -%}
  replace(substring_index(listagg({{ measure }}, '\u001e'){{ order }}, '\u001e', {{ limit_num }}), '\u001e', {{ delimiter_text }})
  {%- else -%}
  listagg({{ measure }}, {{ delimiter_text }}){{ order }}
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__safe_cast(field, type) -%}
  try_cast({{ field }} as {{ type }})
{%- endmacro %}

{% macro tablestore__escape_single_quotes(expression) -%}
  {{ expression | replace("\\", "\\\\") | replace("'", "\\'") }}
{%- endmacro %}
