--- a hint
SELECT /*+ BROADCAST(c) */ o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id
--- several hints
SELECT /*+ REPARTITION(2), SHUFFLE_HASH(o) */ o.id FROM orders o JOIN items i ON i.order_id = o.id
--- TABLESAMPLE of all rows
SELECT count(*) FROM orders TABLESAMPLE (100 PERCENT)
--- TABLESAMPLE with an alias
SELECT count(o.id) FROM orders TABLESAMPLE (100 PERCENT) AS o WHERE o.qty > 1
--- TABLESAMPLE of rows
SELECT count(*) FROM orders TABLESAMPLE (3 ROWS)
--- PIVOT
SELECT * FROM (SELECT status, day, qty FROM orders) PIVOT (sum(qty) FOR status IN ('open' AS o, 'paid' AS p))
--- PIVOT of a table
SELECT id, Ada, Bo FROM people PIVOT (max(boss) FOR name IN ('Ada' AS Ada, 'Bo' AS Bo))
--- PIVOT with two aggregates
SELECT * FROM (SELECT status, day, qty, amount FROM orders) PIVOT (sum(qty) AS q, max(amount) AS a FOR status IN ('open', 'paid'))
--- UNPIVOT
SELECT * FROM (SELECT id, boss FROM people) UNPIVOT (v FOR k IN (id, boss))
--- UNPIVOT with nulls
SELECT * FROM (SELECT id, boss FROM people) UNPIVOT INCLUDE NULLS (v FOR k IN (id, boss))
--- pipes
FROM orders |> WHERE qty > 2 |> SELECT id, status
--- pipes with an aggregate [ordered]
FROM orders |> AGGREGATE sum(amount) AS total, count(*) AS n GROUP BY status |> ORDER BY status
--- pipes with a join
FROM orders |> AS o |> JOIN customers AS c ON o.customer = c.id |> SELECT o.id, c.name |> WHERE id < 5
--- pipes with a limit before a condition
FROM people |> ORDER BY id |> LIMIT 3 |> WHERE id > 1 |> SELECT name
--- pipes with a set
FROM people |> SELECT id |> UNION ALL (SELECT customer FROM orders)
--- pipes that change columns
TABLE people |> EXTEND id * 2 AS twice |> DROP boss |> SET name = upper(name)
--- SORT BY
SELECT id FROM orders SORT BY id
--- DISTRIBUTE BY
SELECT id FROM orders DISTRIBUTE BY customer SORT BY id
--- CLUSTER BY
SELECT id FROM orders CLUSTER BY id
--- GROUP BY WITH ROLLUP
SELECT status, count(*) FROM orders GROUP BY status WITH ROLLUP
--- a cast with two colons
SELECT id::STRING, '7'::INT FROM people
--- RLIKE
SELECT name FROM people WHERE name RLIKE '^[AB]'
--- LIKE ANY
SELECT name FROM people WHERE name LIKE ANY ('A%', '%o')
--- LIKE ALL
SELECT name FROM people WHERE name LIKE ALL ('%a', 'A%')
--- a not-equal sign of C
SELECT id FROM people WHERE id != 1 AND NOT id <> 2
--- two equal signs
SELECT id FROM people WHERE id == 1
--- an interval
SELECT id, day + INTERVAL 1 DAY, day - INTERVAL '2' MONTH FROM orders
--- a date moved by a number
SELECT id, date_add(day, 3), date_sub(day, 1), day + 1 FROM orders
--- a difference of dates
SELECT id, datediff(DATE '2024-02-01', day) FROM orders
--- IF and NVL
SELECT id, if(qty > 3, 'many', 'few'), nvl(note, '-'), ifnull(qty, 0), nvl2(note, 1, 0), nullif(qty, 3), coalesce(note, status) FROM orders
--- DECODE
SELECT decode(status, 'open', 1, 'paid', 2, 3) FROM orders
--- a subquery with a star and a join
SELECT a.*, b.n FROM (SELECT * FROM people) a JOIN (SELECT boss, count(*) AS n FROM people GROUP BY boss) b ON a.id = b.boss
--- percentiles
SELECT percentile(qty, 0.5), percentile(id, array(0.25, 0.75)) FROM orders
--- median
SELECT median(qty) FROM orders
--- statistics
SELECT stddev(qty), var_pop(qty), stddev_samp(id), variance(id), corr(id, qty), covar_pop(id, qty) FROM orders
--- max_by
SELECT max_by(id, amount), min_by(id, amount) FROM orders
--- any and every
SELECT bool_and(qty > 0), bool_or(qty > 8), every(id > 0), any(id > 100) FROM orders WHERE qty IS NOT NULL
--- count_if
SELECT count_if(qty > 3) FROM orders
--- first of a group
SELECT status, first(id) OVER (PARTITION BY status ORDER BY id) FROM orders
--- IDENTIFIER
SELECT id FROM IDENTIFIER('people')
--- inline table with an expression
SELECT * FROM VALUES (1 + 1, upper('a')) AS t (x, y) JOIN people p ON p.id = t.x
--- a group by an expression
SELECT upper(status), count(*) FROM orders GROUP BY upper(status)
--- a column of an outer query in an aggregate
SELECT c.id, (SELECT count(*) FROM orders o WHERE o.customer = c.id AND o.amount > c.id) FROM customers c
