{{ config(materialized='incremental', unique_key='order_id', incremental_strategy='merge', primary_key='order_id') }}

select order_id, status, order_date from {{ ref('orders') }}
{% if is_incremental() %}
where order_date >= (select max(order_date) from {{ this }})
{% endif %}
