--- row_number
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) FROM orders
--- rank and dense_rank
SELECT id, rank() OVER (ORDER BY qty), dense_rank() OVER (ORDER BY qty) FROM orders
--- a running sum
SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY id) FROM orders
--- a frame of rows
SELECT id, avg(qty) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM orders
--- a frame of values
SELECT id, count(*) OVER (ORDER BY qty RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders WHERE qty IS NOT NULL
--- lag and lead
SELECT id, lag(amount) OVER (ORDER BY id), lead(status, 2, 'none') OVER (ORDER BY id) FROM orders
--- first and last value
SELECT id, first_value(qty) OVER (PARTITION BY status ORDER BY id), last_value(qty) OVER (PARTITION BY status ORDER BY id) FROM orders
--- a named window
SELECT id, sum(qty) OVER w, count(*) OVER w FROM orders WINDOW w AS (PARTITION BY status ORDER BY id)
--- ntile
SELECT id, ntile(3) OVER (ORDER BY id) FROM orders
--- percent_rank and cume_dist
SELECT id, percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id) FROM orders
--- a window over an aggregate
SELECT status, sum(qty), sum(sum(qty)) OVER (ORDER BY status) FROM orders GROUP BY status
--- nulls come first in a window
SELECT id, row_number() OVER (ORDER BY note, id) FROM orders
--- the best of each group
SELECT * FROM (SELECT id, customer, rank() OVER (PARTITION BY customer ORDER BY amount DESC) AS r FROM orders) WHERE r = 1
--- QUALIFY
SELECT id, customer FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) = 1
--- a window with a condition
SELECT id, sum(qty) OVER (PARTITION BY customer) FROM orders WHERE status = 'open'
--- the share of a total
SELECT id, amount / sum(amount) OVER () FROM orders WHERE amount > 0
--- a filter in a window
SELECT id, count(*) FILTER (WHERE qty > 2) OVER (PARTITION BY status) FROM orders
