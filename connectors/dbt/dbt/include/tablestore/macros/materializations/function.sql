{# A function of SQL is one expression over its arguments. #}
{% macro tablestore__scalar_function_create_replace_signature_sql(target_relation) -%}
  {%- if model.config.get('volatility') -%}{%- do unsupported_volatility_warning(model.config.get('volatility')) -%}{%- endif -%}
  CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  returns {{ adapter.declared_type(model.returns.data_type) }}
{%- endmacro %}

{% macro tablestore__scalar_function_body_sql() -%}
  {%- set expression = model.compiled_code | trim -%}
  return {{ expression[6:] if expression[:6] | lower == 'select' else expression }}
{%- endmacro %}

{% macro tablestore__formatted_scalar_function_args_sql() -%}
  {%- set args = [] -%}
  {%- for arg in model.arguments -%}{%- do args.append(arg.name ~ ' ' ~ adapter.declared_type(arg.data_type)) -%}{%- endfor -%}
  {{ args | join(', ') }}
{%- endmacro %}
