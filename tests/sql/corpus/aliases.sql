--- an alias of what may raise an error
SELECT upper(name) AS b, b || 'x' AS c FROM customers
--- a chain of aliases, each used twice
SELECT upper(status) AS a, lower(a || a) AS b, initcap(b || b) AS c, upper(left(c || c, 9)) AS d, d || a AS e FROM orders WHERE id < 6
--- a column comes before an alias
SELECT upper(name) AS name, name || 'x' AS c FROM customers
--- an alias in other letters
SELECT upper(name) AS Bee, bEE || 'x' AS c FROM customers ORDER BY C
--- an alias in CASE [ordered]
SELECT upper(status) AS b, CASE WHEN b = 'OPEN' THEN b || '1' WHEN b IS NULL THEN 'none' END AS c FROM orders ORDER BY id
--- an alias of a number of a row [ordered]
SELECT id, row_number() OVER (ORDER BY id DESC) AS r, r + 1 AS s FROM people ORDER BY id
--- an alias of a struct
SELECT address AS a, a.street AS s, upper(s) AS u, u || a.zip AS z FROM customers
--- an alias of a sum
SELECT status, sum(qty) AS s, s * 2 AS d FROM orders GROUP BY status
--- an alias of an expression of a group
SELECT upper(status) AS b, sum(qty) AS s, b || s AS d FROM orders GROUP BY upper(status)
--- an alias by which rows are grouped
SELECT upper(status) AS b, sum(qty) AS s, b || s AS d FROM orders GROUP BY b
--- an alias of a group by its number
SELECT upper(status) AS b, sum(qty) AS s, s + 1 AS t FROM orders GROUP BY 1 HAVING s > 12
--- HAVING by an alias of an alias
SELECT upper(status) AS b, sum(qty) AS s, s + 1 AS t FROM orders GROUP BY 1 HAVING t > 12 ORDER BY t
--- an alias beside an aggregate
SELECT sum(qty) AS s, s / count(*) AS m, s + max(id) AS t FROM orders
--- an alias beside a column of a group
SELECT status, qty, count(*) AS n, n + qty AS z FROM orders GROUP BY status, qty
--- an alias beside an expression of a group
SELECT upper(status) || day AS k, count(*) AS n, n || upper(status) AS z FROM orders GROUP BY upper(status), day
--- an alias of a sum with FILTER over ROLLUP
SELECT status, sum(qty) FILTER (WHERE qty > 2) AS s, s + 1 AS z FROM orders GROUP BY ROLLUP (status)
--- an alias of a grouping
SELECT status, grouping(status) AS g, g + 1 AS z, count(*) AS c FROM orders GROUP BY ROLLUP (status)
--- an alias beside a window over groups
SELECT status, sum(qty) AS s, s + sum(sum(qty)) OVER () AS z FROM orders GROUP BY status
--- an alias in QUALIFY
SELECT upper(status) AS b, id FROM orders QUALIFY row_number() OVER (PARTITION BY b ORDER BY id) = 1
--- an alias and a window in QUALIFY
SELECT upper(status) AS b, id, row_number() OVER (PARTITION BY upper(status) ORDER BY id) AS r FROM orders QUALIFY r = 2 AND b = 'OPEN'
--- aliases behind a star
SELECT *, upper(name) AS b, b || 'x' AS c FROM people
--- aliases before a star
SELECT upper(name) AS b, b || 'x' AS c, * FROM people
--- aliases beside stars of two tables [ordered]
SELECT p.*, upper(o.status) AS b, b || p.name AS c FROM people p JOIN orders o ON o.id = p.id ORDER BY p.id
--- aliases beside a star of USING
SELECT *, upper(status) AS b, b || name AS c FROM people JOIN orders USING (id)
--- aliases of distinct rows [ordered]
SELECT DISTINCT upper(status) AS b, b || 'x' AS c FROM orders ORDER BY c DESC
--- an alias beside a query
SELECT upper(name) AS b, b IN (SELECT upper(name) FROM customers WHERE name IS NOT NULL) AS c FROM people
--- an alias beside a correlated query
SELECT upper(name) AS b, b || (SELECT max(status) FROM orders o WHERE o.customer = p.id) AS c FROM people p
--- an alias comes before a column around the query
SELECT p.id, (SELECT max(x || name) FROM (SELECT upper(status) AS name, name || '1' AS x FROM orders o WHERE o.id = p.id)) AS z FROM people p
--- an alias in a lambda
SELECT upper(name) AS b, transform(array('1', '2'), x -> x || b) AS c FROM people
--- an alias that is called as a variable of a lambda
SELECT upper(name) AS x, transform(array('1', '2'), x -> x || 'q') AS c FROM people
--- an alias of an element
SELECT explode(array(1, 2)) AS e, e + 1 AS f FROM people
--- aliases without a table
SELECT 1 AS one, one + 1 AS two, two + one AS three
--- aliases in a common query and around it
WITH v AS (SELECT upper(name) AS b, b || 'q' AS x FROM people) SELECT x, x || b AS y, y || y AS z FROM v
--- aliases in a part of a union
SELECT upper(name) AS b, b || 'x' AS c FROM people UNION ALL SELECT status, status FROM orders
--- aliases, ordered by what is not in the list [ordered]
SELECT upper(name) AS b, lower(b) AS c FROM people ORDER BY boss DESC NULLS LAST, id DESC LIMIT 3
--- aliases, ordered by an expression of an alias [ordered]
SELECT upper(name) AS b, b || boss AS c FROM people ORDER BY right(c, 1), id
--- aliases of groups, ordered by an aggregate [ordered]
SELECT status, count(*) AS c, c + 1 AS d FROM orders GROUP BY status ORDER BY max(id), d
--- a named window beside an alias
SELECT id, row_number() OVER w AS r, r + 1 AS s FROM people WINDOW w AS (ORDER BY id)
--- an alias that two expressions have
SELECT upper(name) AS b, lower(name) AS b, b || 'x' AS c FROM people
--- an alias in WHERE
SELECT upper(name) AS b FROM people WHERE b = 'ADA'
--- an alias of a quotient of what WHERE leaves
SELECT boss AS m, 10 / (m - 1) AS q, q + 1 AS r FROM people WHERE boss <> 1
--- an alias of a quotient in CASE
SELECT boss - 1 AS m, CASE WHEN m <> 0 THEN 10 / m END AS q, coalesce(q, 0) AS r FROM people
--- a window over partitions of what may raise an error
SELECT id, max(boss) OVER (PARTITION BY upper(left(name, 1))) AS m FROM people
--- a window over partitions of a quotient
SELECT id, count(*) OVER (PARTITION BY 10 DIV nullif(boss, 0)) AS m FROM people
--- a named window over partitions of what may raise an error
SELECT id, count(*) OVER w AS m FROM people WINDOW w AS (PARTITION BY upper(left(name, 1)))
--- an average of decimals over partitions of what may raise an error
SELECT id, avg(amount) OVER (PARTITION BY upper(status)) AS m FROM orders
--- groups of what may raise an error
SELECT upper(status) AS b, count(*) AS n FROM orders GROUP BY ALL
--- distinct rows of what may raise an error [ordered]
SELECT DISTINCT upper(status) AS b FROM orders ORDER BY upper(status)
--- a join by what may raise an error
SELECT p.id, q.id AS other FROM people p JOIN people q ON upper(left(p.name, 1)) = upper(right(q.name, 1))
--- IN a query of what may raise an error
SELECT id FROM people WHERE upper(name) IN (SELECT upper(name) FROM customers)
--- an error on a row that FILTER leaves out
SELECT sum(10 / (boss - 1)) FILTER (WHERE boss <> 1) AS s, avg(1 / (boss - 1)) FILTER (WHERE boss <> 1) AS a FROM people
--- errors of several arguments on rows that FILTER leaves out
SELECT max_by(10 / (boss - 1), 1 / (boss - 1)) FILTER (WHERE boss <> 1) AS s, count(DISTINCT 1 / (boss - 1)) FILTER (WHERE boss > 1) AS c FROM people
--- an error of a text on a row that FILTER leaves out
SELECT sum(CAST(txt AS INT)) FILTER (WHERE txt RLIKE '^[0-9]+$') AS s FROM numbers
--- an error in a branch that is not taken
SELECT id, CASE WHEN boss = 1 THEN 0 ELSE 10 / (boss - 1) END AS a, if(boss = 1, 0, 10 / (boss - 1)) AS b, coalesce(boss, 1 / (id - id)) AS c FROM people WHERE boss IS NOT NULL
--- an error on a row that an earlier condition leaves out
SELECT id FROM people WHERE boss <> 1 AND 10 / (boss - 1) > 2 AND upper(name) <> 'X'
--- an error on a row that a query below leaves out
SELECT id FROM (SELECT id, boss FROM people WHERE boss <> 1) WHERE 10 / (boss - 1) > 2
--- an error on a group that HAVING leaves out
SELECT boss, 10 / (boss - 1) AS q FROM people GROUP BY boss HAVING boss <> 1
--- an error on a row behind the limit [ordered]
SELECT 10 / (boss - 1) AS q FROM (SELECT boss FROM people ORDER BY id DESC LIMIT 2)
--- an error behind AND and OR
SELECT id, boss <> 1 AND 10 / (boss - 1) > 2 AS a, boss = 1 OR 10 / (boss - 1) > 2 AS b, (boss IS NULL OR boss <> 1) AND 10 / (boss - 1) > 2 AS c FROM people
--- an error behind OR in NOT
SELECT id FROM people WHERE NOT (boss = 1 OR 10 / (boss - 1) > 4)
--- a cast behind AND in a lambda
SELECT id, filter(array(boss, id), x -> x <> 1 AND 10 / (x - 1) > 2) AS a FROM people
--- a cast behind a pattern
SELECT txt RLIKE '^[0-9]+$' AND txt > 3 AS a, NOT txt RLIKE '^[0-9]+$' OR CAST(txt AS INT) > 3 AS b FROM numbers
--- an expression twice beside its alias
SELECT upper(name) AS b, upper(name) AS c, b || c AS d, name, name AS again FROM people
--- a star of a query with aliases, of which not all columns are used
SELECT id, c, c || c AS d, d || c AS e FROM (SELECT *, upper(name) AS b, b || 1 AS c FROM people)
--- a star of a query with aliases, of which only the aliases are used
SELECT c, count(*) AS n FROM (SELECT *, 'x' AS b, b || 1 AS c FROM people) GROUP BY c
--- ordered by what the rows are grouped by, beside an alias of an alias [ordered]
SELECT count(*) AS n, n + 1 AS m FROM orders GROUP BY status ORDER BY status
--- an alias that hides a column, in an expression of ORDER BY [ordered]
SELECT id, 100 - qty AS qty FROM orders ORDER BY qty + 1, id LIMIT 5
--- an alias that hides a column, in HAVING
SELECT status AS s, sum(qty) AS qty, s || 'x' AS t FROM orders GROUP BY status HAVING qty > 5 AND max(qty) > 1
