{{ config(materialized='materialized_table', primary_key='order_date', target_freshness='5 minutes') }}

select order_date, sum(amount) as revenue, count(*) as orders from {{ ref('orders') }} group by order_date
