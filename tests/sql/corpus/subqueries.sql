--- IN a subquery
SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE status = 'open')
--- NOT IN a subquery
SELECT name FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE customer IS NOT NULL)
--- IN a subquery of two columns
SELECT id FROM orders WHERE (customer, day) IN (SELECT customer, max(day) FROM orders GROUP BY customer)
--- EXISTS
SELECT c.name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.qty > 5)
--- EXISTS with a star
SELECT c.name FROM customers c WHERE EXISTS (SELECT * FROM orders o WHERE o.customer = c.id)
--- NOT EXISTS
SELECT p.name FROM people p WHERE NOT EXISTS (SELECT * FROM people q WHERE q.boss = p.id)
--- scalar subquery
SELECT id, amount - (SELECT avg(amount) FROM orders) AS above FROM orders
--- correlated scalar subquery
SELECT id, (SELECT name FROM customers c WHERE c.id = o.customer) FROM orders o
--- correlated scalar subquery with an aggregate
SELECT o.id FROM orders o WHERE amount = (SELECT max(amount) FROM orders i WHERE i.customer = o.customer)
--- correlated name without a table
SELECT name FROM customers WHERE 2 < (SELECT count(*) FROM orders WHERE customer = customers.id)
--- a subquery in a subquery
SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE id IN (SELECT order_id FROM items WHERE product = 'pen'))
--- a derived table
SELECT status, total FROM (SELECT status, sum(amount) AS total, count(*) AS n FROM orders GROUP BY status) WHERE n > 1
--- a derived table with a star
SELECT q.id, q.status FROM (SELECT * FROM orders WHERE qty > 2) q WHERE q.amount > 10
--- a derived table with names of columns
SELECT a, c FROM (SELECT id, name, city FROM customers) AS t (a, b, c)
--- a derived table in a derived table
SELECT x.id FROM (SELECT * FROM (SELECT * FROM orders) y WHERE y.qty > 3) x WHERE x.day > '2024-01-01'
--- a derived table with ORDER BY and LIMIT [ordered]
SELECT id FROM (SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3) ORDER BY id
--- a WITH
WITH open AS (SELECT * FROM orders WHERE status = 'open') SELECT id, amount FROM open WHERE qty > 1
--- a WITH that is used twice
WITH totals AS (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer) SELECT a.customer, b.customer FROM totals a JOIN totals b ON a.total < b.total
--- a WITH that uses another
WITH a AS (SELECT * FROM orders), b AS (SELECT customer, count(*) AS n FROM a GROUP BY customer) SELECT c.name, b.n FROM b JOIN customers c ON c.id = b.customer
--- a WITH with the name of a table
WITH orders AS (SELECT id, qty FROM orders WHERE qty > 3) SELECT * FROM orders
--- a WITH in a WITH
WITH a AS (WITH b AS (SELECT id FROM people) SELECT id FROM b WHERE id > 2) SELECT a.id, p.name FROM a JOIN people p USING (id)
--- a WITH in a derived table
SELECT * FROM (WITH b AS (SELECT id, name FROM people) SELECT name FROM b WHERE id = 1)
--- a WITH in a subquery
SELECT id FROM orders WHERE customer = (WITH m AS (SELECT max(id) AS id FROM customers WHERE city = 'Paris') SELECT id FROM m)
--- an inner WITH hides an outer one
WITH t AS (SELECT id FROM people) SELECT * FROM (WITH t AS (SELECT id FROM customers WHERE id = 1) SELECT * FROM t) JOIN t USING (id)
--- a WITH with names of columns
WITH t (a, b) AS (SELECT id, name FROM people) SELECT b FROM t WHERE a > 1
--- a recursive WITH
WITH RECURSIVE chain (id, name, depth) AS (SELECT id, name, 0 FROM people WHERE boss IS NULL UNION ALL SELECT p.id, p.name, c.depth + 1 FROM people p JOIN chain c ON p.boss = c.id) SELECT * FROM chain
--- a recursive count
WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT sum(n) FROM r
--- a WITH that is never used
WITH unused AS (SELECT id FROM customers) SELECT id FROM people
--- a subquery in a CASE
SELECT id, CASE WHEN id IN (SELECT customer FROM orders) THEN 'buys' ELSE 'looks' END FROM customers
--- a subquery in ORDER BY [ordered]
SELECT id FROM people ORDER BY (SELECT max(n) FROM numbers) - id
--- a subquery in a join condition
SELECT o.id FROM orders o JOIN customers c ON o.customer = c.id AND c.id = (SELECT min(id) FROM people)
--- a comparison with a maximum of another table
SELECT id FROM people WHERE id >= (SELECT max(qty) - 5 FROM orders)
