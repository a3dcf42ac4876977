{# A table that tablestore keeps as fresh as the model says. `dbt run` declares it, and refreshes it now. #}

{% macro tablestore_materialized_clauses() -%}
  {%- set key = tablestore_key_line() -%}
  {%- if key %} ({{ key }}){% endif %}
  {{ tablestore_comment_clause() }}
  {{- tablestore_partition_clause() }}
  {{- tablestore_with_clause(tablestore_options()) }}
  {%- if config.get('target_freshness') %}
  freshness = {{ tablestore_interval(config.get('target_freshness')) }}
  {%- endif %}
  {%- if config.get('refresh_mode') %}
  refresh_mode = {{ config.get('refresh_mode') | upper }}
  {%- endif -%}
{%- endmacro %}

{# '5 minutes' as INTERVAL '5' MINUTE. #}
{% macro tablestore_interval(text) -%}
  {%- set words = text.split() -%}
  {%- if words | length != 2 -%}
    {{ exceptions.raise_compiler_error("target_freshness: expected a number and a unit, such as '5 minutes', found '" ~ text ~ "'") }}
  {%- endif -%}
  {%- set unit = words[1] | upper -%}
  interval '{{ words[0] }}' {{ unit[:-1] if unit.endswith('S') else unit }}
{%- endmacro %}

{% macro tablestore__get_create_materialized_view_as_sql(relation, sql) -%}
  create or alter materialized table {{ relation.render() }}{{ tablestore_materialized_clauses() }}
  as
  {{ sql }}
{%- endmacro %}

{% macro tablestore__refresh_materialized_view(relation) -%}
  alter materialized table {{ relation.render() }} refresh
{%- endmacro %}

{% macro tablestore_build_materialized_table() -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='materialized_view') -%}

  {{ run_hooks(pre_hooks) }}

  {%- if existing is not none and existing.is_materialized_view and should_full_refresh() -%}
    {%- do log('Applying REPLACE to: ' ~ target_relation) -%}
    {# Built beside the table and put in its place: columns, key and partitions may be others. #}
    {%- call statement('stage') -%}
      alter materialized table {{ target_relation.render() }} stage{{ tablestore_materialized_clauses() }}
      as
      {{ sql }}
    {%- endcall -%}
    {%- call statement('main') -%}
      alter materialized table {{ target_relation.render() }} promote
    {%- endcall -%}
    {%- call statement('discard') -%}
      alter materialized table {{ target_relation.render() }} discard
    {%- endcall -%}
  {%- else -%}
    {%- do tablestore_drop_other_kind(existing, 'materialized_view') -%}
    {%- call statement('declare') -%}
      {{ get_create_materialized_view_as_sql(target_relation, sql) }}
    {%- endcall -%}
    {%- call statement('main') -%}
      {{ refresh_materialized_view(target_relation) }}
    {%- endcall -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmacro %}

{% materialization materialized_table, adapter='tablestore' -%}
  {{ return(tablestore_build_materialized_table()) }}
{%- endmaterialization %}

{# The name that dbt has for it. #}
{% materialization materialized_view, adapter='tablestore' -%}
  {{ return(tablestore_build_materialized_table()) }}
{%- endmaterialization %}
