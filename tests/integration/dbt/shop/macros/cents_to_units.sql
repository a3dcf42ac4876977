{% macro cents_to_units(column) -%}
  cast({{ column }} / 100 as decimal(16, 2))
{%- endmacro %}
