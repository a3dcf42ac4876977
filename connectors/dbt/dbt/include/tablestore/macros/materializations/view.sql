{% macro tablestore__create_view_as(relation, sql) -%}
  {%- set header = config.get('sql_header', none) -%}
  {{ header if header is not none }}
  create or replace view {{ relation.render() }}
  {%- set contract = config.get('contract') -%}
  {%- if contract and contract.enforced %}
  {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  {{ tablestore_comment_clause() }}
  as
  {{ sql }}
{%- endmacro %}

{% macro tablestore__get_replace_view_sql(relation, sql) -%}
  {{ get_create_view_as_sql(relation, sql) }}
{%- endmacro %}

{% materialization view, adapter='tablestore' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='view') -%}

  {{ run_hooks(pre_hooks) }}

  {%- do tablestore_drop_other_kind(existing, 'view') -%}
  {% call statement('main') -%}
    {{ get_create_view_as_sql(target_relation, sql) }}
  {%- endcall %}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
