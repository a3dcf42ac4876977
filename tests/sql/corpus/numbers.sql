--- a FLOAT is compared as a DOUBLE
SELECT id, f = 0.1 AS a, f > 0.1 AS b, f <= 0.1 AS c, f = d AS e, f = p AS g, f <> 0.1 AS h, f <=> 0.1 AS i, f BETWEEN 0.1 AND 1 AS j, NOT f = 0.1 AS k FROM (SELECT id, CAST(x AS FLOAT) AS f, CAST(x AS DOUBLE) AS d, CAST(x AS DECIMAL(10, 2)) AS p FROM VALUES (1, '0.1'), (2, '2.5'), (3, NULL), (4, '-16777217') AS v (id, x)) AS n
--- a FLOAT is looked for among others as a DOUBLE
SELECT id FROM (SELECT id, CAST(x AS FLOAT) AS f FROM VALUES (1, '0.1'), (2, '2.5'), (3, NULL) AS v (id, x)) AS n WHERE f IN (0.1, 2.5) OR f IN (SELECT 0.1D)
--- a CASE compares a FLOAT as a DOUBLE
SELECT id, CASE f WHEN 0.1 THEN 'same' WHEN 2.5 THEN 'half' ELSE 'other' END AS a FROM (SELECT id, CAST(x AS FLOAT) AS f FROM VALUES (1, '0.1'), (2, '2.5'), (3, NULL) AS v (id, x)) AS n
--- a FLOAT beside another number is a DOUBLE
SELECT f + 1 AS a, f * 0.1 AS b, f - p AS c, f % 0.3 AS d, f / 3 AS e, f * f AS g, f + f AS h, f / f AS i, b * f AS j, f * d AS k FROM (SELECT CAST(x AS FLOAT) AS f, CAST(x AS DOUBLE) AS d, CAST(x AS DECIMAL(10, 2)) AS p, CAST(x AS DECIMAL(10, 2)) * 3 AS b FROM VALUES ('0.1'), ('2.5'), (NULL), ('-16777217') AS v (x)) AS n
--- a FLOAT or another number is a DOUBLE
SELECT coalesce(f, 1) AS a, if(id = 1, f, 0.1) AS b, CASE WHEN id = 1 THEN f ELSE 0.1 END AS c, greatest(f, 0.1) AS e, least(f, 0.1D) AS g, nullif(f, 0.1) AS h, nvl(f, id) AS i FROM (SELECT id, CAST(x AS FLOAT) AS f FROM VALUES (1, '0.1'), (2, '2.5'), (3, NULL) AS v (id, x)) AS n
--- doubles are rounded as they are written
SELECT round(d, 2) AS a, round(d, 1) AS b, round(d) AS c, round(d, 15) AS e, round(d * 100, 1) AS g FROM (SELECT CAST(x AS DOUBLE) AS d FROM VALUES ('1.005'), ('0.285'), ('5.015'), ('-1.005'), ('0.145'), ('2.675'), ('1e-7'), ('-0.0'), ('9007199254740993'), ('3002399751580330.5'), ('1e300'), ('NaN'), ('-Infinity'), (NULL) AS v (x)) AS n
--- a FLOAT is rounded as a DOUBLE
SELECT round(f, 2) AS a, round(f, 1) AS b, round(f) AS c FROM (SELECT CAST(x AS FLOAT) AS f FROM VALUES ('1.005'), ('2.675'), ('0.145'), ('16777217'), (NULL) AS v (x)) AS n
--- decimals are rounded half up
SELECT round(p, 1) AS a, round(p) AS b, round(p, -1) AS c, floor(p) AS d, ceil(p) AS e, round(p, 3) AS g FROM (SELECT CAST(x AS DECIMAL(10, 2)) AS p FROM VALUES ('1.25'), ('-1.25'), ('99999999.99'), ('-99999999.99'), ('0.05'), (NULL) AS v (x)) AS n
--- floor and ceil of whole numbers and doubles are whole numbers
SELECT floor(b) AS a, ceil(b) AS c, floor(d) AS e, ceil(d) AS f, floor(-0.5D) AS g, ceil(-0.5D) AS h FROM VALUES (9007199254740993L, 1e15D), (-9007199254740993L, -2.5D), (NULL, NULL) AS v (b, d)
--- quotients of decimals have all their digits
SELECT p / b AS a, p / q AS c, p / 3 AS d, b / q AS e, p / 7 / 3 AS g, (p + q) / (b * 2) AS h FROM (SELECT CAST(x AS DECIMAL(10, 2)) AS p, CAST(y AS DECIMAL(18, 6)) AS q, z AS b FROM VALUES ('2.68', '0.000007', 16777217L), ('-2.65', '3', 9007199254740993L), ('99999999.99', '-999999999999.999999', 3L), ('0.01', '0.3', -7L), (NULL, '1', 1L) AS v (x, y, z)) AS n
--- a quotient of decimals is rounded half up
SELECT p / 2000000 AS a, -p / 2000000 AS b, p / 128 AS c FROM (SELECT CAST(x AS DECIMAL(4, 1)) AS p FROM VALUES ('1'), ('2.5'), ('999.9'), ('0.1') AS v (x)) AS n
--- wide decimals are divided
SELECT w / 3 AS a, s / 7 AS b, s / s AS c, 1 / w AS d FROM (SELECT CAST(x AS DECIMAL(38, 0)) AS w, CAST(y AS DECIMAL(38, 18)) AS s FROM VALUES ('1000000000000000000000000000001', '123456789012.123456789012345678'), ('-7', '-0.000000000000000001') AS v (x, y)) AS n
--- sums of decimals by counts
SELECT sum(amount) / count(*) AS a, sum(amount) / count(DISTINCT status) AS b, 100.0 * count(*) / sum(qty) AS c, sum(amount) / sum(qty) AS d, round(sum(amount) / count(*), 2) AS e, sum(amount) / sum(CASE WHEN status = 'open' THEN 1 ELSE 0 END) AS f, sum(DISTINCT amount) AS g, sum(amount) * sum(qty) AS h FROM orders
--- averages of decimals have all their digits
SELECT avg(w) AS a, avg(s) AS b, avg(p) AS c, avg(DISTINCT p) AS d, avg(p) FILTER (WHERE p > 0) AS e, avg(p) FILTER (WHERE p > 1000) AS f, avg(p) / 3 AS g, avg(p * p) AS h, round(avg(p), 3) AS i, avg(b) AS j FROM (SELECT CAST(x AS DECIMAL(38, 0)) AS w, CAST(y AS DECIMAL(38, 18)) AS s, CAST(z AS DECIMAL(5, 2)) AS p, CAST(z AS DOUBLE) AS b FROM VALUES ('100000000000000000000000000000001', '12345678901.123456789012345678', '0.10'), ('-7', '-0.000000000000000001', '999.99'), ('1', NULL, '0.10'), (NULL, '5', NULL), ('3', '0.3', '-999.99') AS v (x, y, z)) AS n
--- averages of decimals in windows and of no rows
SELECT id, avg(amount) OVER (PARTITION BY status ORDER BY id) AS a, avg(amount) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS b, amount - avg(amount) OVER () AS c, avg(amount) FILTER (WHERE id < 0) OVER () AS d FROM orders
--- averages of averages of decimals
SELECT status, avg(amount) AS a, avg(avg(amount)) OVER (ORDER BY status) AS b, rank() OVER (PARTITION BY avg(amount) ORDER BY status) AS c FROM orders GROUP BY status HAVING avg(amount) > 1
--- shares of a total
SELECT id, amount / sum(amount) OVER () AS a, sum(amount) OVER (ORDER BY id) / count(*) OVER (ORDER BY id) AS b, round(100 * amount / sum(amount) OVER (PARTITION BY status), 3) AS c FROM orders
--- parts of dates are whole numbers
SELECT year(day) + 1 AS a, amount / year(day) AS b, amount * length(status) AS c, extract(YEAR FROM day) * 2 AS d, datediff(day, DATE '2020-01-01') * 3 AS e, max(weekday(day)) OVER () AS f FROM orders
--- a star hands on
SELECT * FROM (SELECT id, year(day) AS y, amount / 3 AS a, round(amount) AS r, amount * 2 AS t FROM orders) AS q
