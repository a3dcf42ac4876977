{% materialization incremental, adapter='tablestore' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set temp_relation = make_temp_relation(target_relation) -%}
  {%- set unique_key = config.get('unique_key') -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set strategy = config.get('incremental_strategy') or 'default' -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, strategy) -%}

  {{ run_hooks(pre_hooks) }}

  {%- if existing is none or should_full_refresh() or not existing.is_table -%}
    {%- do tablestore_drop_other_kind(existing, 'table') -%}
    {%- set build_sql = get_create_table_as_sql(False, target_relation, sql) -%}
  {%- else -%}
    {%- do run_query(get_create_table_as_sql(True, temp_relation, sql)) -%}
    {%- set contract = config.get('contract') -%}
    {%- if not contract or not contract.enforced -%}
      {%- do adapter.expand_target_column_types(from_relation=temp_relation, to_relation=target_relation) -%}
    {%- endif -%}
    {%- set dest_columns = process_schema_changes(on_schema_change, temp_relation, existing) -%}
    {%- if not dest_columns -%}
      {%- set dest_columns = adapter.get_columns_in_relation(existing) -%}
    {%- endif -%}
    {%- set predicates = config.get('predicates', none) or config.get('incremental_predicates', none) -%}
    {%- set build_sql = strategy_macro({
        'target_relation': target_relation, 'temp_relation': temp_relation, 'unique_key': unique_key,
        'dest_columns': dest_columns, 'incremental_predicates': predicates}) -%}
    {%- set staged = true -%}
  {%- endif -%}

  {% call statement('main') -%}
    {{ build_sql }}
  {%- endcall %}

  {%- if staged -%}
    {%- call statement('drop_temporary') -%}drop temporary view if exists {{ temp_relation.render() }}{%- endcall -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}

{% macro tablestore__get_incremental_default_sql(arg_dict) -%}
  {%- if arg_dict['unique_key'] -%}
    {{ return(get_incremental_merge_sql(arg_dict)) }}
  {%- else -%}
    {{ return(get_incremental_append_sql(arg_dict)) }}
  {%- endif -%}
{%- endmacro %}

{% macro tablestore_key_is(target, unique_key) -%}
  {{ return((adapter.primary_key_of(target) | map('lower') | sort | list)
            == (tablestore_list(unique_key) | map('lower') | sort | list)) }}
{%- endmacro %}

{% macro tablestore_insert(target, source, dest_columns, overwrite=false) -%}
  {%- set columns = dest_columns | map(attribute='quoted') | join(', ') -%}
  insert {{ 'overwrite' if overwrite else 'into' }} {{ target.render() }} ({{ columns }})
  select {{ columns }} from {{ source.render() }}
{%- endmacro %}

{# In a table whose primary key is the unique key of the model, an INSERT replaces the rows of equal keys: nothing is looked up. #}
{% macro tablestore__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates=none) -%}
  {%- set plain = not incremental_predicates and not config.get('merge_update_columns') and not config.get('merge_exclude_columns') -%}
  {%- if unique_key and plain and tablestore_key_is(target, unique_key) -%}
    {{ tablestore_insert(target, source, dest_columns) }}
  {%- elif not unique_key -%}
    {{ tablestore_insert(target, source, dest_columns) }}
  {%- else -%}
    {{ default__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) }}
  {%- endif -%}
{%- endmacro %}

{# One statement, so that nobody sees the table between the two: a row of the source comes once to delete, and once to be inserted. #}
{% macro tablestore__get_delete_insert_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
  {%- set keys = tablestore_list(unique_key) -%}
  {%- set columns = dest_columns | map(attribute='quoted') | list -%}
  {%- if not keys or (not incremental_predicates and tablestore_key_is(target, keys)) -%}
    {{ tablestore_insert(target, source, dest_columns) }}
  {%- elif adapter.primary_key_of(target) -%}
    {{ exceptions.raise_compiler_error(
        "delete+insert into " ~ target.render() ~ ": expected its primary key (" ~ adapter.primary_key_of(target) | join(', ')
        ~ ") as unique_key, without predicates, found (" ~ keys | join(', ') ~ "); use the strategy merge") }}
  {%- else -%}
  merge into {{ target.render() }} as DBT_INTERNAL_DEST
  using (
    with dbt_rows as (select * from {{ source.render() }})
    select distinct true as dbt_deletes
      {%- for key in keys %}, {{ key }} as dbt_key_{{ loop.index }}{% endfor %}
      {%- for column in dest_columns %}, cast(null as {{ column.data_type }}) as dbt_value_{{ loop.index }}{% endfor %}
    from dbt_rows
    union all
    select false as dbt_deletes
      {%- for key in keys %}, {{ key }} as dbt_key_{{ loop.index }}{% endfor %}
      {%- for column in columns %}, {{ column }} as dbt_value_{{ loop.index }}{% endfor %}
    from dbt_rows
  ) as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_SOURCE.dbt_deletes
    {%- for key in keys %} and DBT_INTERNAL_SOURCE.dbt_key_{{ loop.index }} = DBT_INTERNAL_DEST.{{ key }}{% endfor %}
    {%- for predicate in incremental_predicates or [] %} and ({{ predicate }}){% endfor %}
  when matched then delete
  when not matched and not DBT_INTERNAL_SOURCE.dbt_deletes then insert ({{ columns | join(', ') }})
  values ({% for column in columns %}DBT_INTERNAL_SOURCE.dbt_value_{{ loop.index }}{{ ', ' if not loop.last }}{% endfor %})
  {%- endif -%}
{%- endmacro %}

{# Replaces the partitions that the rows fall into, in an unpartitioned table all rows. #}
{% macro tablestore__get_insert_overwrite_merge_sql(target, source, dest_columns, predicates, include_sql_header=false) -%}
  {%- if predicates -%}
    {{ exceptions.raise_compiler_error("insert_overwrite takes no predicates: it replaces the partitions that the rows fall into") }}
  {%- endif -%}
  {{ tablestore_insert(target, source, dest_columns, overwrite=true) }}
{%- endmacro %}

{# One statement: the rows of the batch's time go, and those of the source come. #}
{% macro tablestore__get_incremental_microbatch_sql(arg_dict) -%}
  {%- set target = arg_dict['target_relation'] -%}
  {%- set columns = arg_dict['dest_columns'] | map(attribute='quoted') | list -%}
  {%- set predicates = [] + (arg_dict.get('incremental_predicates') or []) -%}
  {%- set time = 'DBT_INTERNAL_DEST.' ~ model.config.event_time -%}
  {%- if model.batch and model.batch.event_time_start -%}
    {%- do predicates.append("cast(" ~ time ~ " as timestamp) >= timestamp '" ~ model.batch.event_time_start ~ "'") -%}
  {%- endif -%}
  {%- if model.batch and model.batch.event_time_end -%}
    {%- do predicates.append("cast(" ~ time ~ " as timestamp) < timestamp '" ~ model.batch.event_time_end ~ "'") -%}
  {%- endif -%}
  merge into {{ target.render() }} as DBT_INTERNAL_DEST
  using {{ arg_dict['temp_relation'].render() }} as DBT_INTERNAL_SOURCE
  on false
  when not matched by source{% for predicate in predicates %} and ({{ predicate }}){% endfor %} then delete
  when not matched then insert ({{ columns | join(', ') }})
  values ({% for column in columns %}DBT_INTERNAL_SOURCE.{{ column }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro %}
