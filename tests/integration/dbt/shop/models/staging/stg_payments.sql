with source as (select * from {{ ref('raw_payments') }})

-- amounts are in cents
select id as payment_id, order_id, payment_method, {{ cents_to_units('amount') }} as amount from source
