{% macro tablestore__current_timestamp() -%}
  current_timestamp()
{%- endmacro %}

{% macro tablestore__current_timestamp_backcompat() -%}
  current_timestamp()
{%- endmacro %}

{% macro tablestore__snapshot_string_as_time(timestamp) -%}
  {{ return("cast('" ~ timestamp ~ "' as timestamp)") }}
{%- endmacro %}

{% macro tablestore__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}

{% macro tablestore__information_schema_name(database) -%}
  {{ adapter.quote(database) ~ '.' if database }}information_schema
{%- endmacro %}

{% macro tablestore__get_drop_sql(relation) -%}
  {%- if adapter.is_temporary(relation) -%}
    drop temporary view if exists {{ relation.render() }}
  {%- elif relation.is_view -%}
    {{ tablestore__drop_view(relation) }}
  {%- elif relation.is_materialized_view -%}
    {{ tablestore__drop_materialized_view(relation) }}
  {%- else -%}
    {{ tablestore__drop_table(relation) }}
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__drop_table(relation) -%}
  drop table if exists {{ relation.render() }}
{%- endmacro %}

{% macro tablestore__drop_view(relation) -%}
  drop view if exists {{ relation.render() }}
{%- endmacro %}

{% macro tablestore__drop_materialized_view(relation) -%}
  drop materialized table if exists {{ relation.render() }}
{%- endmacro %}

{% macro tablestore__rename_relation(from_relation, to_relation) -%}
  {% call statement('rename_relation') -%}
    alter {{ 'view' if from_relation.is_view else 'table' }} {{ from_relation.render() }} rename to {{ to_relation.render() }}
  {%- endcall %}
{%- endmacro %}

{% macro tablestore__get_rename_table_sql(relation, new_name) -%}
  alter table {{ relation.render() }} rename to {{ relation.incorporate(path={"identifier": new_name}).render() }}
{%- endmacro %}

{% macro tablestore__get_rename_view_sql(relation, new_name) -%}
  alter view {{ relation.render() }} rename to {{ relation.incorporate(path={"identifier": new_name}).render() }}
{%- endmacro %}

{% macro tablestore__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {%- if add_columns -%}
    {% call statement('add_columns') -%}
      alter table {{ relation.render() }} add columns (
        {%- for column in add_columns %}{{ column.quoted }} {{ adapter.declared_type(column.expanded_data_type) }}{{ ', ' if not loop.last }}{% endfor -%}
      )
    {%- endcall %}
  {%- endif -%}
  {%- if remove_columns -%}
    {% call statement('remove_columns') -%}
      alter table {{ relation.render() }} drop columns (
        {%- for column in remove_columns %}{{ column.quoted }}{{ ', ' if not loop.last }}{% endfor -%}
      )
    {%- endcall %}
  {%- endif -%}
{%- endmacro %}

{# The columns of a relation by their names in lower case: dbt does not tell upper from lower case, ALTER TABLE does. #}
{% macro tablestore_quoted_columns(relation) -%}
  {%- set quoted = {} -%}
  {%- for column in adapter.get_columns_in_relation(relation) -%}
    {%- do quoted.update({column.name | lower: column.quoted}) -%}
  {%- endfor -%}
  {{ return(quoted) }}
{%- endmacro %}

{% macro tablestore__alter_column_type(relation, column_name, new_column_type) -%}
  {%- set column = tablestore_quoted_columns(relation).get(column_name | lower, adapter.quote(column_name)) -%}
  {% call statement('alter_column_type') -%}
    alter table {{ relation.render() }} alter column {{ column }} type {{ adapter.declared_type(new_column_type) }}
  {%- endcall %}
{%- endmacro %}

{% macro tablestore__create_columns(relation, columns) -%}
  {%- if columns -%}
    {{ tablestore__alter_relation_add_remove_columns(relation, columns, none) }}
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__apply_grants(relation, grant_config, should_revoke=True) -%}
  {%- if grant_config -%}
    {{ exceptions.warn("grants of " ~ relation.render() ~ ": tablestore has none; who may read and write is decided by the service (tablestore serve) or the storage") }}
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__get_relation_last_modified(information_schema, relations) -%}
  {%- set rows = adapter.last_modified(relations) -%}
  {%- call statement('last_modified', fetch_result=True) -%}
    {%- for schema, identifier, last_modified, snapshotted_at in rows %}
    select '{{ schema }}' as `schema`, '{{ identifier }}' as identifier,
      {% if last_modified is none %}cast(null as timestamp){% else %}timestamp '{{ last_modified.isoformat() }}'{% endif %} as last_modified,
      timestamp '{{ snapshotted_at.isoformat() }}' as snapshotted_at
    {{- '\n    union all' if not loop.last }}
    {%- endfor %}
  {%- endcall -%}
  {{ return(load_result('last_modified')) }}
{%- endmacro %}

{# A text in quotation marks, as the statements of tablestore and its queries read it. #}
{% macro tablestore_text(value) -%}
  '{{ value | string | replace("\\", "\\\\") | replace("'", "\\'") }}'
{%- endmacro %}
