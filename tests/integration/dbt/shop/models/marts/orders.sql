{% set methods = ['credit_card', 'coupon', 'bank_transfer', 'gift_card'] %}

{{ config(primary_key='order_id', buckets=1) }}

with paid as (
    select
        order_id,
        {% for method in methods -%}
        sum(case when payment_method = '{{ method }}' then amount else 0 end) as {{ method }}_amount,
        {% endfor -%}
        sum(amount) as total_amount
    from {{ ref('stg_payments') }}
    group by order_id
)

select
    orders.order_id,
    orders.customer_id,
    orders.order_date,
    orders.status,
    {% for method in methods -%}
    paid.{{ method }}_amount,
    {% endfor -%}
    paid.total_amount as amount
from {{ ref('stg_orders') }} as orders
left join paid on orders.order_id = paid.order_id
