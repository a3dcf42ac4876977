--- all columns
SELECT * FROM orders
--- no columns at all
SELECT count(*) FROM orders
--- a constant for each row
SELECT 1 AS one FROM people
--- some columns and an expression
SELECT id, amount * qty AS total, upper(status) FROM orders
--- a condition on a key
SELECT status, amount FROM orders WHERE id = 7
--- a condition on a partition
SELECT id FROM orders WHERE day = DATE '2024-01-02'
--- a range of dates as text
SELECT id, day FROM orders WHERE day BETWEEN '2024-01-02' AND '2024-01-03'
--- conditions with AND, OR and NOT
SELECT id FROM orders WHERE (status = 'open' OR qty > 5) AND NOT (amount < 10 OR note IS NULL)
--- IN with a null
SELECT id FROM orders WHERE status IN ('open', NULL)
--- NOT IN with a null has no rows
SELECT id FROM orders WHERE status NOT IN ('open', NULL)
--- null-safe comparison
SELECT id FROM orders WHERE note <=> NULL OR qty <=> 3
--- IS DISTINCT FROM
SELECT id FROM orders WHERE status IS DISTINCT FROM 'open'
--- LIKE with both wildcards
SELECT id, note FROM orders WHERE note LIKE '%a_e%'
--- LIKE with an escape
SELECT txt FROM numbers WHERE txt LIKE '10\\%%'
--- LIKE with a prefix
SELECT name FROM customers WHERE name LIKE 'A%'
--- ILIKE
SELECT name FROM customers WHERE name ILIKE 'a%'
--- a comparison that casts the literal
SELECT id FROM orders WHERE qty = '3'
--- a comparison that casts a text column
SELECT txt FROM numbers WHERE n = 1 AND txt = 'one'
--- decimals and doubles
SELECT id FROM orders WHERE amount > 19.99 AND amount < 1e2
--- NaN is the greatest number
SELECT id, score FROM customers WHERE score > 1.5
--- NaN equals NaN
SELECT a.id FROM customers a JOIN customers b ON a.score = b.score AND a.id = b.id
--- zero and minus zero are equal
SELECT id FROM customers WHERE score = 0
--- DISTINCT
SELECT DISTINCT status FROM orders
--- DISTINCT over all columns
SELECT DISTINCT * FROM items
--- ORDER BY puts nulls first [ordered]
SELECT id, note FROM orders ORDER BY note, id
--- ORDER BY descending puts nulls last [ordered]
SELECT id, note FROM orders ORDER BY note DESC, id DESC
--- ORDER BY with NULLS LAST and an ordinal [ordered]
SELECT id, note FROM orders ORDER BY 2 NULLS LAST, 1
--- ORDER BY a column that is not selected [ordered]
SELECT id FROM orders ORDER BY amount DESC, id
--- ORDER BY an alias [ordered]
SELECT id, -qty AS q FROM orders ORDER BY q, id
--- LIMIT and OFFSET [ordered]
SELECT id FROM orders ORDER BY id LIMIT 3 OFFSET 2
--- ORDER BY ALL [ordered]
SELECT status, id FROM orders ORDER BY ALL
--- GROUP BY
SELECT status, count(*), sum(qty), min(amount), max(day) FROM orders GROUP BY status
--- GROUP BY an ordinal
SELECT year(day), month(day), count(*) FROM orders GROUP BY 1, 2
--- GROUP BY an alias
SELECT qty % 2 AS odd, count(*) FROM orders GROUP BY odd
--- GROUP BY ALL
SELECT status, day, sum(qty) FROM orders GROUP BY ALL
--- HAVING
SELECT customer, sum(amount) AS total FROM orders GROUP BY customer HAVING sum(amount) > 50 AND count(*) > 1
--- HAVING with an alias
SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING n > 2
--- GROUP BY ROLLUP
SELECT status, day, count(*) FROM orders GROUP BY ROLLUP (status, day)
--- GROUP BY CUBE
SELECT status, day, sum(qty), grouping(status) FROM orders GROUP BY CUBE (status, day)
--- GROUPING SETS
SELECT status, day, count(*) FROM orders GROUP BY GROUPING SETS ((status), (day), ())
--- an aggregate without rows
SELECT count(*), sum(qty), max(amount) FROM orders WHERE id < 0
--- FILTER of an aggregate
SELECT count(*) FILTER (WHERE status = 'open'), sum(qty) FILTER (WHERE qty > 2) FROM orders
--- COUNT DISTINCT
SELECT count(DISTINCT status), count(DISTINCT customer, status), count(note) FROM orders
--- CASE in both forms
SELECT id, CASE status WHEN 'open' THEN 1 WHEN 'paid' THEN 2 ELSE 0 END, CASE WHEN qty > 3 THEN 'many' END FROM orders
--- a struct's field
SELECT id, address.street FROM customers WHERE address.zip = 10115
--- a qualified field of a struct
SELECT c.address.zip FROM customers c
--- columns that are called like functions and types
SELECT n AS count, x AS date, txt AS string FROM numbers
--- lateral alias
SELECT qty * 2 AS twice, twice + 1 AS more FROM orders WHERE id < 4
--- FROM first
FROM orders SELECT id, status WHERE qty > 4
--- VALUES
SELECT * FROM VALUES (1, 'a'), (2, NULL) AS v (k, w)
--- VALUES as a query
VALUES (1, 'a'), (2, 'b')
--- no table
SELECT 1 + 1, 'x'
--- TABLE
TABLE people
--- a range
SELECT id FROM range(3)
--- star except
SELECT * EXCEPT (note, at) FROM orders WHERE id <= 2
--- star of one table
SELECT p.*, o.id FROM people p JOIN orders o ON p.id = o.customer
--- arithmetic
SELECT n + 1, n - 1, n * 2, n / 2, n % 3, n DIV 2, -n FROM numbers WHERE n IS NOT NULL
--- division gives a fraction
SELECT qty / 4, amount / 3, 7 / 2, 7 DIV 2 FROM orders
--- booleans
SELECT n FROM numbers WHERE ok AND NOT (n > 3) OR ok IS NULL
--- IS TRUE
SELECT n, ok IS TRUE, ok IS NOT FALSE FROM numbers
--- a cast to text and back
SELECT CAST(qty AS STRING) || '!', CAST(CAST(id AS STRING) AS BIGINT) FROM orders
--- a cast that fails is null with TRY_CAST
SELECT txt, try_cast(txt AS INT) FROM numbers
--- a fraction is cut off by a cast to a whole number
SELECT CAST(2.7 AS INT), CAST(-2.7 AS INT), CAST(amount AS INT), CAST(y AS BIGINT) FROM orders CROSS JOIN (SELECT 3.99 AS y)
