{# What config says of a table: key, partitions, buckets, properties. #}

{% macro tablestore_list(value) -%}
  {{ return([] if not value else ([value] if value is string else value | list)) }}
{%- endmacro %}

{% macro tablestore_quoted(names) -%}
  {%- set quoted = [] -%}
  {%- for name in names -%}{%- do quoted.append(adapter.quote(name)) -%}{%- endfor -%}
  {{ return(quoted | join(', ')) }}
{%- endmacro %}

{% macro tablestore_primary_key() -%}
  {%- set key = tablestore_list(config.get('primary_key')) -%}
  {%- if not key and config.get('contract') and config.get('contract').enforced -%}
    {%- set key = adapter.key_of_constraints(model['columns'], model['constraints']) -%}
  {%- endif -%}
  {{ return(key) }}
{%- endmacro %}

{% macro tablestore_options() -%}
  {%- set options = {} -%}
  {%- if config.get('buckets') is not none -%}{%- do options.update({'bucket': config.get('buckets')}) -%}{%- endif -%}
  {%- if config.get('bucket_by') -%}{%- do options.update({'bucket-key': tablestore_list(config.get('bucket_by')) | join(',')}) -%}{%- endif -%}
  {%- do options.update(config.get('properties') or {}) -%}
  {{ return(options) }}
{%- endmacro %}

{% macro tablestore_with_clause(options) -%}
  {%- if options %}
  with ({% for key in options %}{{ tablestore_text(key) }} = {{ tablestore_text(options[key] | lower if options[key] is boolean else options[key]) }}{{ ', ' if not loop.last }}{% endfor %})
  {%- endif -%}
{%- endmacro %}

{% macro tablestore_partition_clause() -%}
  {%- set columns = tablestore_list(config.get('partition_by')) -%}
  {%- if columns %}
  partitioned by ({{ tablestore_quoted(columns) }})
  {%- endif -%}
{%- endmacro %}

{% macro tablestore_key_line() -%}
  {%- set key = tablestore_primary_key() -%}
  {{ return('primary key (' ~ tablestore_quoted(key) ~ ') not enforced' if key else none) }}
{%- endmacro %}

{% macro tablestore__get_table_columns_and_constraints() -%}
  {%- set lines = adapter.render_raw_columns_constraints(raw_columns=model['columns']) -%}
  {%- set lines = lines + adapter.render_raw_model_constraints(raw_constraints=model['constraints']) -%}
  {%- set key = tablestore_key_line() -%}
  {%- if key -%}{%- set lines = lines + [key] -%}{%- endif -%}
  (
    {%- for line in lines %}
    {{ line }}{{ ',' if not loop.last }}
    {%- endfor %}
  )
{%- endmacro %}

{% macro tablestore__get_column_names() -%}
  {%- set names = [] -%}
  {%- for name in model['columns'] -%}{%- do names.append(model['columns'][name]['name']) -%}{%- endfor -%}
  {{ tablestore_quoted(names) }}
{%- endmacro %}

{# A temporary table is a temporary view: each statement of this adapter reads it once. #}
{% macro tablestore__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language != 'sql' -%}
    {{ exceptions.raise_compiler_error("tablestore has no models in " ~ language ~ "; write the model in SQL, or a function of Python that SQL calls") }}
  {%- endif -%}
  {%- set header = config.get('sql_header', none) -%}
  {{ header if header is not none }}
  {%- if temporary -%}
  create or replace temporary view {{ relation.render() }} as
  {{ compiled_code }}
  {%- else -%}
  create or replace table {{ relation.render() }}
  {%- set contract = config.get('contract') -%}
  {%- if contract and contract.enforced %}
  {{ get_assert_columns_equivalent(compiled_code) }}
  {{ get_table_columns_and_constraints() }}
  {%- set compiled_code = get_select_subquery(compiled_code) -%}
  {%- elif tablestore_key_line() %}
  ({{ tablestore_key_line() }})
  {%- endif %}
  {{- tablestore_partition_clause() }}
  {{- tablestore_with_clause(tablestore_options()) }}
  as
  {{ compiled_code }}
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__get_replace_table_sql(relation, sql) -%}
  {{ get_create_table_as_sql(False, relation, sql) }}
{%- endmacro %}

{# Drops what has the name and is of another kind: nothing replaces that in one step. #}
{% macro tablestore_drop_other_kind(existing, kind) -%}
  {%- if existing is not none and existing.type != kind -%}
    {%- do adapter.drop_relation(existing) -%}
  {%- endif -%}
{%- endmacro %}

{% materialization table, adapter='tablestore' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}

  {%- do tablestore_drop_other_kind(existing, 'table') -%}
  {% call statement('main') -%}
    {{ get_create_table_as_sql(False, target_relation, sql) }}
  {%- endcall %}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
