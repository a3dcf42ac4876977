{% macro tablestore__snapshot_hash_arguments(args) -%}
  md5(concat_ws('|'{% for arg in args %}, coalesce(cast({{ arg }} as string), ''){% endfor %}))
{%- endmacro %}

{% macro tablestore__post_snapshot(staging_relation) -%}
  {%- call statement('drop_staging') -%}drop temporary view if exists {{ staging_relation.render() }}{%- endcall -%}
{%- endmacro %}
