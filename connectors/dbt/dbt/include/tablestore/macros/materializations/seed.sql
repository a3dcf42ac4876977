{# A seed is one statement: the table with the rows of the file takes the place of the one before it. #}

{% macro tablestore_seed_columns(model, agate_table, declares) -%}
  {%- set types = model['config'].get('column_types', {}) -%}
  {%- set lines = [] -%}
  {%- for name in agate_table.column_names -%}
    {%- set type = adapter.declared_type(types.get(name) or adapter.convert_type(agate_table, loop.index0)) -%}
    {%- set quoted = adapter.quote_seed_column(name | string, model['config'].get('quote_columns', none)) -%}
    {%- do lines.append(quoted ~ ' ' ~ type if declares else 'cast(' ~ quoted ~ ' as ' ~ type ~ ') as ' ~ quoted) -%}
  {%- endfor -%}
  {{ return(lines) }}
{%- endmacro %}

{% macro tablestore_seed_sql(model, agate_table, staged) -%}
  {%- set lines = tablestore_seed_columns(model, agate_table, true) -%}
  {%- set key = tablestore_key_line() -%}
  {%- if key -%}{%- set lines = lines + [key] -%}{%- endif -%}
  create or replace table {{ this.render() }} ({{ lines | join(', ') }})
  {{- tablestore_partition_clause() }}
  {{- tablestore_with_clause(tablestore_options()) }}
  {%- if staged %}
  as select {{ tablestore_seed_columns(model, agate_table, false) | join(', ') }} from {{ staged.render() }}
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__create_csv_table(model, agate_table) -%}
  {%- set sql = tablestore_seed_sql(model, agate_table, none) -%}
  {%- if agate_table.rows | length == 0 -%}
    {%- call statement('_') -%}{{ sql }}{%- endcall -%}
  {%- endif -%}
  {{ return(sql) }}
{%- endmacro %}

{% macro tablestore__reset_csv_table(model, full_refresh, old_relation, agate_table) -%}
  {{ return(tablestore__create_csv_table(model, agate_table)) }}
{%- endmacro %}

{% macro tablestore__load_csv_rows(model, agate_table) -%}
  {%- set staged = make_temp_relation(this, '__dbt_seed') -%}
  {%- do adapter.stage_seed(staged, agate_table) -%}
  {%- set sql = tablestore_seed_sql(model, agate_table, staged) -%}
  {%- do adapter.add_query(sql, abridge_sql_log=True) -%}
  {%- call statement('_') -%}drop temporary view if exists {{ staged.render() }}{%- endcall -%}
  {{ return(sql) }}
{%- endmacro %}
