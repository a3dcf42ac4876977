--- whole quotients of decimals
SELECT 7.5 DIV 2 AS a, -7.5 DIV 2 AS b, amount DIV 0.3 AS c, amount DIV id AS d, id DIV 3 AS e, -id DIV 3 AS f FROM orders
--- differences in units
SELECT datediff(HOUR, TIMESTAMP '2024-01-01 00:30:00', TIMESTAMP '2024-01-02 00:00:00') AS a, datediff(DAY, TIMESTAMP '2024-01-01 12:00:00', TIMESTAMP '2024-01-02 00:00:00') AS b, date_diff(WEEK, DATE '2024-01-01', DATE '2024-01-15') AS c, datediff(DATE '2024-01-31', day) AS d FROM orders
--- differences in months
SELECT x, y, timestampdiff(MONTH, a, b) AS months, timestampdiff(QUARTER, a, b) AS quarters, timestampdiff(YEAR, a, b) AS years, datediff(MONTH, b, a) AS back FROM (SELECT x, y, CAST(x AS TIMESTAMP) AS a, CAST(y AS TIMESTAMP) AS b FROM VALUES ('2024-01-31 00:00:00', '2024-02-29 00:00:00'), ('2024-02-29 00:00:00', '2025-02-28 00:00:00'), ('2024-02-29 00:00:00', '2028-02-29 00:00:00'), ('2024-01-31 12:00:00', '2024-03-01 10:00:00'), ('2024-01-15 12:00:00', '2024-02-15 11:59:59.999999'), ('2024-01-15 12:00:00', '2024-02-15 12:00:00'), ('1969-12-31 23:00:00', '2024-03-31 01:00:00'), ('2024-05-31 01:00:00', '2024-02-29 02:00:00'), (NULL, '2024-02-29 00:00:00') AS v (x, y)) AS t
--- months between dates
SELECT months_between(day, DATE '2024-02-14') AS a, months_between(day, DATE '2023-01-31', false) AS b, months_between(DATE '2024-03-31', day, true) AS c FROM orders
--- sizes
SELECT cardinality(tags) AS a, size(tags) AS b, array_size(tags) AS c, cardinality(props) AS d, size(props) AS e, cardinality(array()) AS f FROM customers
--- ends of texts
SELECT left(name, -1) AS a, left(name, id - 2) AS b, right(name, -1) AS c, right(name, id - 2) AS d, substr(name, 2, -1) AS e, substr(name, 2, id - 2) AS f, left(name, 99) AS g, left(name, NULL) AS h FROM people
--- array_contains with nulls
SELECT array_contains(array(1, NULL), 2) AS a, array_contains(array(1, NULL), 1) AS b, array_contains(array(1, 2), 3) AS c, array_contains(tags, 'x') AS d, id FROM customers
--- flatten with nulls
SELECT flatten(array(array(1), NULL)) AS a, flatten(array(array(1, NULL), array(2))) AS b, flatten(array(tags, array('z'))) AS c FROM customers
--- places in arrays
SELECT tags[0] AS a, element_at(tags, 1) AS b, try_element_at(tags, 9) AS c FROM customers WHERE size(tags) > 0
--- a place behind the end of an array is an error
SELECT array(id, 2)[5] FROM people
--- element_at behind the end of an array is an error
SELECT element_at(array(id, 2), 3) FROM people
--- reversed arrays
SELECT reverse(tags) AS a, reverse(array(id, 2)) AS b, reverse(name) AS c FROM customers
--- texts as whole numbers
SELECT x, try_cast(x AS INT) AS a, try_cast(x AS BIGINT) AS b, try_cast(x AS DOUBLE) AS c, try_cast(x AS DECIMAL(10, 2)) AS d, try_cast(x AS DATE) AS e FROM VALUES ('12'), (' 12 '), ('+5'), ('-0'), ('1_000'), ('1.5'), ('1e3'), ('0x10'), (''), (NULL), ('2024-01-05'), ('2024-1-5'), ('2024/01/05'), (' 2024-01-05 '), ('2024-01-05 10:00:00'), ('2024-01-05T10'), ('20240105'), ('2024-13-01'), ('infinity'), ('-infinity'), ('x') AS v (x)
--- a text with an underscore is no number
SELECT CAST(x AS DOUBLE) FROM VALUES ('1_000') AS v (x)
--- a text with slashes is no date
SELECT CAST(x AS DATE) FROM VALUES ('2024/01/05') AS v (x)
--- to_date of a text with slashes
SELECT to_date(x) FROM VALUES ('2024/01/05') AS v (x)
--- characters of numbers
SELECT chr(id + 64) AS a, chr(-id) AS b, chr(256 + 65) AS c FROM people
--- split_part from zero is an error
SELECT split_part(name, 'a', id - id) FROM people
--- replace without a replacement
SELECT replace(name, 'a') AS a, replace(name, 'a', 'bb') AS b FROM people
--- logarithms of what has none
SELECT ln(x) AS a, log10(x) AS b, log2(x) AS c, log(10, x) AS d, log(x, 10) AS e FROM VALUES (0D), (-1D), (100D), (NULL) AS v (x)
--- isnan of null
SELECT isnan(CAST(x AS DOUBLE)) AS a FROM VALUES ('NaN'), ('1'), (NULL) AS v (x)
--- timestamps as texts
SELECT CAST(at AS STRING) AS a, CAST(TIMESTAMP '2024-05-05 10:00:00.5' AS STRING) AS b FROM orders
--- letters that patterns do not have
SELECT date_format(at, 'SSS'), date_format(at, "yyyy'T'") FROM orders WHERE id < 3
--- rows and maps as texts
SELECT CAST(named_struct('a', id) AS STRING), CAST(map('a', id) AS STRING) FROM people
--- timestamps of texts
SELECT to_timestamp('2024-05-05 10:00:00') AS a, to_timestamp('05/05/2024', 'dd/MM/yyyy') AS b, CAST('2024-05-05 10:00:00' AS TIMESTAMP) = to_timestamp('2024-05-05 10:00:00') AS c FROM people WHERE id = 1
--- sequences are arrays of whole numbers
SELECT sequence(1, 3) AS a FROM people WHERE id = 1
