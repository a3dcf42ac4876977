{# The comment of a view or a materialized table is a clause of the statement that makes it. #}
{% macro tablestore_comment_clause() -%}
  {%- if config.persist_relation_docs() and model.description -%}
    comment {{ tablestore_text(model.description) }}
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- if for_relation and config.persist_relation_docs() and model.description and relation.is_table -%}
    {%- do run_query(alter_relation_comment(relation, model.description)) -%}
  {%- endif -%}
  {%- if for_columns and config.persist_column_docs() and model.columns and not relation.is_view -%}
    {%- set existing = adapter.get_columns_in_relation(relation) | map(attribute="name") | list -%}
    {%- set described = validate_doc_columns(relation, model.columns, existing) -%}
    {%- if described -%}
      {%- do alter_column_comment(relation, described) -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{% macro tablestore__alter_relation_comment(relation, relation_comment) -%}
  comment on table {{ relation.render() }} is {{ tablestore_text(relation_comment) }}
{%- endmacro %}

{% macro tablestore__alter_column_comment(relation, column_dict) -%}
  {%- set existing = tablestore_quoted_columns(relation) -%}
  {%- for name in column_dict -%}
    {%- set comment = column_dict[name]['description'] -%}
    {%- if comment -%}
      {%- call statement('alter_column_comment') -%}
        alter table {{ relation.render() }} alter column {{ existing[name | lower] }} comment {{ tablestore_text(comment) }}
      {%- endcall -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}
